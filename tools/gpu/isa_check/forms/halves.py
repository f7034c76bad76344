"""Arithmetic on `.f16`, `.bf16` and pairs of them."""

from ..form import Bound, Form

HALF = ("f16", "f16x2")
BRAIN = ("bf16", "bf16x2")


def forms():
    for ty in HALF:
        for ftz in ("", ".ftz"):
            for mode in ("", ".rn"):
                for sat in ("", ".sat"):
                    for op in ("add", "sub", "mul"):
                        yield Form(f"{op}{mode}{ftz}{sat}.{ty}", (ty, ty), (ty,))
            for extra in ("", ".sat", ".relu"):
                yield Form(f"fma.rn{ftz}{extra}.{ty}", (ty,) * 3, (ty,))
            for op in ("abs", "neg"):
                yield Form(f"{op}{ftz}.{ty}", (ty,), (ty,))
            for op in ("min", "max"):
                for extra in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                    yield Form(f"{op}{ftz}{extra}.{ty}", (ty, ty), (ty,))
        bound = Bound(ty, ulps=1, relative=2**-9.9)
        yield Form(f"ex2.approx.{ty}", (ty,), (ty,), bound=bound)
        yield Form(f"tanh.approx.{ty}", (ty,), (ty,), bound=Bound(ty, ulps=1, absolute=2**-10.987))
    for ty in BRAIN:
        for mode in ("", ".rn"):
            for op in ("add", "sub", "mul"):
                yield Form(f"{op}{mode}.{ty}", (ty, ty), (ty,))
        for extra in ("", ".relu"):
            yield Form(f"fma.rn{extra}.{ty}", (ty,) * 3, (ty,))
        for op in ("abs", "neg"):
            yield Form(f"{op}.{ty}", (ty,), (ty,))
        for op in ("min", "max"):
            for extra in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield Form(f"{op}{extra}.{ty}", (ty, ty), (ty,))
        yield Form(f"ex2.approx.ftz.{ty}", (ty,), (ty,), bound=Bound(ty, ulps=1, relative=2**-7))
        yield Form(f"tanh.approx.{ty}", (ty,), (ty,), bound=Bound(ty, ulps=1, absolute=2**-8))
    for ty in (*HALF, *BRAIN):
        for extra in ("", ".relu"):
            yield Form(f"fma.rn.oob{extra}.{ty}", (ty,) * 3, (ty,), version="8.1")
