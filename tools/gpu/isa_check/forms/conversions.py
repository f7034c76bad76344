"""`cvt`: all pairs of types with their roundings, flushing and saturation."""

from ..form import Form

UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = (*UNSIGNED, "s8", "s16", "s32", "s64")
BYTES = ("u8", "s8")
ROUNDS = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")


def contains(to, of):
    """Whether a type has all values of another, so that there is nothing to saturate."""
    wider = int(to[1:]) - int(of[1:])
    return wider >= 0 if to[0] == of[0] else to[0] == "s" and wider > 0


def wide(ty):
    """The kind of a destination: 8-bit results have registers of 32 bits, as other kinds of 8 bits do."""
    return "b32" if ty in ("tf32",) else ty


def cvt(words, to, of, sources=None, version="8.0"):
    name = ".".join(["cvt", *filter(None, words.split(".")), to, of])
    return Form(name, sources or (of,), (wide(to),), version=version)


def forms():
    for of in INTEGERS:
        for to in INTEGERS:
            yield cvt("", to, of)
            if not contains(to, of):
                yield cvt("sat", to, of)
        for to in ("f16", "bf16", "f32", "f64"):
            if to == "bf16" and of in BYTES:
                continue
            for mode in ROUNDS:
                yield cvt(mode, to, of)
                if to in ("f16", "f32"):
                    yield cvt(f"{mode}.sat", to, of)
    for to in ("u16", "s16"):
        # A register that is wider than the type.
        for of in ("s8", "s32", "u8"):
            yield Form(f"cvt.{to}.{of} into 32 bits", (of,), ("b32",), f"cvt.{to}.{of} {{d0}}, {{a0}};")
    for of in ("f16", "bf16", "f32", "f64"):
        for to in INTEGERS:
            if of == "bf16" and to in BYTES:
                continue
            for mode in INTEGRAL:
                for ftz in ("", ".ftz") if of == "f32" else ("",):
                    yield cvt(mode + ftz, to, of)
                    if of != "bf16":
                        yield cvt(f"{mode}{ftz}.sat", to, of)
    yield from between_floats()
    yield from packed()


def between_floats():
    for to, of in (("f16", "f32"), ("f16", "f64"), ("f32", "f64")):
        for mode in ROUNDS:
            ftz = ("", ".ftz") if (to, of) != ("f16", "f64") else ("",)
            for flush in ftz:
                yield cvt(mode + flush, to, of)
                yield cvt(f"{mode}{flush}.sat", to, of)
    for to, of in (("f32", "f16"), ("f64", "f16"), ("f64", "f32")):
        for flush in ("", ".ftz") if "f32" in (to, of) else ("",):
            yield cvt(flush, to, of)
            yield cvt(f"{flush}.sat", to, of)
    for ty in ("f16", "f32", "f64"):
        for flush in ("", ".ftz") if ty == "f32" else ("",):
            for mode in INTEGRAL:
                yield cvt(mode + flush, ty, ty)
                yield cvt(f"{mode}{flush}.sat", ty, ty)
            yield cvt(flush + ".sat", ty, ty)
    for mode in ROUNDS:
        for of in ("f16", "f32", "f64"):
            yield cvt(mode, "bf16", of)
        yield cvt(mode, "f16", "bf16")
    for mode in INTEGRAL:
        yield cvt(mode, "bf16", "bf16")
    for to in ("f32", "f64"):
        yield cvt("", to, "bf16")
    for mode in ("rn", "rz"):
        for to in ("f16", "bf16"):
            for extra in (".relu", ".satfinite", ".relu.satfinite"):
                yield cvt(mode + extra, to, "f32", version="8.1")
        for extra in ("", ".relu"):
            yield cvt(mode + extra, "tf32", "f32")
    yield cvt("rna", "tf32", "f32")
    yield cvt("rna.satfinite", "tf32", "f32", version="8.1")


def packed():
    for to in ("f16x2", "bf16x2"):
        for mode in ("rn", "rz"):
            for extra in ("", ".relu", ".satfinite", ".relu.satfinite"):
                yield cvt(mode + extra, to, "f32", ("f32", "f32"), version="8.1")
    for to in ("e4m3x2", "e5m2x2"):
        for extra in ("", ".relu"):
            yield cvt(f"rn.satfinite{extra}", to, "f32", ("f32", "f32"), version="8.1")
            yield cvt(f"rn.satfinite{extra}", to, "f16x2", version="8.1")
            yield cvt(f"rn{extra}", "f16x2", to, version="8.1")
    for to in ("u16", "s16"):
        yield Form(f"cvt.pack.sat.{to}.s32", ("s32", "s32"), ("b32",))
    for to in ("u8", "s8", "u4", "s4", "u2", "s2"):
        yield Form(f"cvt.pack.sat.{to}.s32.b32", ("s32", "s32", "b32"), ("b32",))
