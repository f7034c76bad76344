"""Pairs of 16-bit integers."""

from ..form import Form


def forms():
    for ty in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            yield Form(f"{op}.{ty}", (ty, ty), (ty,))
    for op in ("min", "max"):
        yield Form(f"{op}.relu.s16x2", ("s16x2", "s16x2"), ("s16x2",))
