"""Arithmetic on `.f32` and `.f64`, exact and approximate. Bounds are those that the PTX ISA states."""

from ..form import Bound, Form

ROUNDS = ("rn", "rz", "rm", "rp")
FLUSH = ("", ".ftz")


def one(name, ty="f32", source=None, bound=None):
    return Form(name, (source or ty,), (ty,), bound=bound)


def forms():
    for ftz in FLUSH:
        for sat in ("", ".sat"):
            for mode in ("", *(f".{mode}" for mode in ROUNDS)):
                for op in ("add", "sub", "mul"):
                    yield Form(f"{op}{mode}{ftz}{sat}.f32", ("f32",) * 2, ("f32",))
                if mode:
                    for op in ("fma", "mad"):
                        yield Form(f"{op}{mode}{ftz}{sat}.f32", ("f32",) * 3, ("f32",))
        for mode in ROUNDS:
            yield Form(f"div.{mode}{ftz}.f32", ("f32",) * 2, ("f32",))
            yield one(f"rcp.{mode}{ftz}.f32")
            yield one(f"sqrt.{mode}{ftz}.f32")
        for op in ("abs", "neg"):
            yield one(f"{op}{ftz}.f32")
        for op in ("min", "max"):
            for nan in ("", ".NaN"):
                for sign in ("", ".xorsign.abs"):
                    yield Form(f"{op}{ftz}{nan}{sign}.f32", ("f32",) * 2, ("f32",))
    for mode in ROUNDS:
        for op in ("add", "sub", "mul", "div"):
            yield Form(f"{op}.{mode}.f64", ("f64",) * 2, ("f64",))
        for op in ("fma", "mad"):
            yield Form(f"{op}.{mode}.f64", ("f64",) * 3, ("f64",))
        for op in ("rcp", "sqrt"):
            yield one(f"{op}.{mode}.f64", "f64")
    for op in ("add", "sub", "mul"):
        yield Form(f"{op}.f64", ("f64",) * 2, ("f64",))
    for op in ("abs", "neg"):
        yield one(f"{op}.f64", "f64")
    for op in ("min", "max"):
        yield Form(f"{op}.f64", ("f64",) * 2, ("f64",))
    for ty in ("f32", "f64"):
        yield Form(f"copysign.{ty}", (ty, ty), (ty,))
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield Form(f"testp.{test}.{ty}", (ty,), ("pred",))
    yield from approximate()


def approximate():
    for ftz in FLUSH:
        yield Form(f"div.approx{ftz}.f32", ("f32",) * 2, ("f32",), bound=Bound("f32", ulps=2))
        yield Form(f"div.full{ftz}.f32", ("f32",) * 2, ("f32",), bound=Bound("f32", ulps=2))
        yield one(f"rcp.approx{ftz}.f32", bound=Bound("f32", ulps=1))
        yield one(f"sqrt.approx{ftz}.f32", bound=Bound("f32", ulps=1, relative=2**-23))
        yield one(f"rsqrt.approx{ftz}.f32", bound=Bound("f32", ulps=2, relative=2**-22.9))
        for op in ("sin", "cos"):
            # Beyond 2 pi the bound is 2**-14.7; the operands go to 100 pi.
            yield one(f"{op}.approx{ftz}.f32", source="angle", bound=Bound("f32", absolute=2**-14.7))
        yield one(f"lg2.approx{ftz}.f32", bound=Bound("f32", relative=2**-22, absolute=2**-22))
        yield one(f"ex2.approx{ftz}.f32", bound=Bound("f32", ulps=2, relative=2**-22))
    yield one("tanh.approx.f32", bound=Bound("f32", relative=2**-11, absolute=2**-11))
    # The upper half of the operand counts, the lower half of the result is 0.
    yield one("rcp.approx.ftz.f64", "f64", bound=Bound("f64", relative=2**-19, pair=True))
    yield one("rsqrt.approx.ftz.f64", "f64", bound=Bound("f64", relative=2**-19, pair=True))
    yield one("rsqrt.approx.f64", "f64", bound=Bound("f64", ulps=4))
