"""Integer arithmetic, bit fields and carry chains."""

from ..form import Form

WIDTHS = (16, 32, 64)
SIGNED = ("s16", "s32", "s64")
ALL = ("u16", "u32", "u64", *SIGNED)
WORDS = ("u32", "s32", "u64", "s64")


def forms():
    for ty in ALL:
        for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
            yield Form(f"{op}.{ty}", (ty, ty), (ty,))
        for op in ("mad.lo", "mad.hi", "sad"):
            yield Form(f"{op}.{ty}", (ty, ty, ty), (ty,))
    for ty in SIGNED:
        for op in ("abs", "neg"):
            yield Form(f"{op}.{ty}", (ty,), (ty,))
    for ty in ("u16", "s16", "u32", "s32"):
        wide = ty[0] + str(2 * int(ty[1:]))
        yield Form(f"mul.wide.{ty}", (ty, ty), (wide,))
        yield Form(f"mad.wide.{ty}", (ty, ty, wide), (wide,))
    for op in ("add", "sub"):
        yield Form(f"{op}.sat.s32", ("s32", "s32"), ("s32",))
    yield Form("mad.hi.sat.s32", ("s32", "s32", "s32"), ("s32",))
    for op in ("min", "max"):
        yield Form(f"{op}.relu.s32", ("s32", "s32"), ("s32",))
    for half in ("lo", "hi"):
        for ty in ("u32", "s32"):
            yield Form(f"mul24.{half}.{ty}", (ty, ty), (ty,))
            yield Form(f"mad24.{half}.{ty}", (ty, ty, ty), (ty,))
    yield Form("mad24.hi.sat.s32", ("s32", "s32", "s32"), ("s32",))
    for bits in ("b32", "b64"):
        yield Form(f"popc.{bits}", (bits,), ("b32",))
        yield Form(f"clz.{bits}", (bits,), ("b32",))
        yield Form(f"brev.{bits}", (bits,), (bits,))
        yield Form(f"bfi.{bits}", (bits, bits, "count", "count"), (bits,))
    for ty in WORDS:
        yield Form(f"bfind.{ty}", (ty,), ("b32",))
        yield Form(f"bfind.shiftamt.{ty}", (ty,), ("b32",))
        yield Form(f"bfe.{ty}", (ty, "count", "count"), (ty,))
    yield Form("fns.b32", ("b32", "lane", "few"), ("b32",))
    for mode in ("clamp", "wrap"):
        yield Form(f"bmsk.{mode}.b32", ("count", "count"), ("b32",))
        for ty in ("u32", "s32"):
            yield Form(f"szext.{mode}.{ty}", (ty, "count"), (ty,))
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            result = "s32" if "s32" in (a, b) else "u32"
            yield Form(f"dp4a.{a}.{b}", (a, b, result), (result,))
            for half in ("lo", "hi"):
                yield Form(f"dp2a.{half}.{a}.{b}", (a, b, result), (result,))
    yield from carries()


def carries():
    """Each sets the flag in one instruction and shows it by a further one."""
    for ty in WORDS:
        for op, next_op in (("add", "addc"), ("sub", "subc")):
            show = f"{next_op}.{ty} {{d1}}, {{a2}}, 0;"
            yield Form(f"{op}.cc.{ty}", (ty, ty, ty), (ty, ty), f"{op}.cc.{ty} {{d0}}, {{a0}}, {{a1}};\n\t{show}")
            chain = (
                f"{op}.cc.{ty} {{d0}}, {{a0}}, {{a1}};\n\t{next_op}.cc.{ty} {{d1}}, {{a0}}, {{a2}};\n\t"
                f"{next_op}.cc.{ty} {{d2}}, {{a1}}, {{a2}};\n\t{next_op}.{ty} {{d3}}, {{a1}}, {{a1}};"
            )
            yield Form(f"{next_op}.cc.{ty}", (ty, ty, ty), (ty, ty, ty, ty), chain)
        for half in ("lo", "hi"):
            text = f"mad.{half}.cc.{ty} {{d0}}, {{a0}}, {{a1}}, {{a2}};\n\taddc.{ty} {{d1}}, {{a0}}, 0;"
            yield Form(f"mad.{half}.cc.{ty}", (ty, ty, ty), (ty, ty), text)
            text = (
                f"add.cc.{ty} {{d0}}, {{a0}}, {{a1}};\n\tmadc.{half}.cc.{ty} {{d1}}, {{a0}}, {{a1}}, {{a2}};\n\t"
                f"madc.{half}.{ty} {{d2}}, {{a2}}, {{a1}}, {{a0}};"
            )
            yield Form(f"madc.{half}.cc.{ty}", (ty, ty, ty), (ty, ty, ty), text)
