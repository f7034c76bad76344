"""`setp` and `set` with all comparisons, types and combinations."""

from ..form import Form

ORDER = ("eq", "ne", "lt", "le", "gt", "ge")
UNSIGNED = (*ORDER, "lo", "ls", "hi", "hs")
FLOAT = (*ORDER, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
PACKED = ("f16x2", "bf16x2")
HALVES = ("f16", "bf16", *PACKED)


def comparisons(ty):
    if ty[0] == "b" and not ty.startswith("bf"):
        return ("eq", "ne")
    return {"s": ORDER, "u": UNSIGNED}.get(ty[0], FLOAT)


def flushes(ty):
    return ("", ".ftz") if ty in ("f32", "f16", "f16x2") else ("",)


TYPES = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64", *HALVES)


def forms():
    for ty in TYPES:
        for ftz in flushes(ty):
            for cmp in comparisons(ty):
                name = f"setp.{cmp}{ftz}.{ty}"
                both = ("{d0}", 1) if ty in ("f16", "bf16") else ("{d0}|{d1}", 2)
                yield Form(name, (ty, ty), ("pred",) * both[1], f"{name} {both[0]}, {{a0}}, {{a1}};")
        for join in ("and", "or", "xor"):
            for cmp in comparisons(ty)[:: 3 if ty[0] in "fb" else 2]:
                name = f"setp.{cmp}.{join}.{ty}"
                if ty in ("f16", "bf16"):
                    # These have one result.
                    text, results = f"{name} {{d0}}, {{a0}}, {{a1}}, {{a2}};\n\t{name} {{d1}}, {{a0}}, {{a1}}, !{{a2}};", 2
                else:
                    text = f"{name} {{d0}}|{{d1}}, {{a0}}, {{a1}}, {{a2}};\n\t{name} {{d2}}|{{d3}}, {{a0}}, {{a1}}, !{{a2}};"
                    results = 4
                yield Form(name, (ty, ty, "pred"), ("pred",) * results, text)
    yield from sets()


def sets():
    for ty in TYPES:
        results = {"f16": ("f16", "u16", "s16", "u32", "s32"), "bf16": ("bf16", "u16", "s16", "u32", "s32")}
        for result in results.get(ty, (ty, "u32", "s32") if ty in PACKED else ("u32", "s32", "f32")):
            for ftz in flushes(ty):
                # The comparisons are `setp`'s; here all of them are done for one result, some for the others.
                some = comparisons(ty)
                some = some if result == "u32" and not ftz else some[::3]
                for cmp in some:
                    name = f"set.{cmp}{ftz}.{result}.{ty}"
                    yield Form(name, (ty, ty), (result,))
            name = f"set.{comparisons(ty)[-1]}.xor.{result}.{ty}"
            yield Form(name, (ty, ty, "pred"), (result,))
