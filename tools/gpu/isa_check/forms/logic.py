"""Bitwise logic, shifts, permutations, selections and moves."""

from ..form import Form

BITS = ("b16", "b32", "b64")
SHIFTED = (*BITS, "u16", "u32", "u64", "s16", "s32", "s64")


def forms():
    for ty in ("pred", *BITS):
        for op in ("and", "or", "xor"):
            yield Form(f"{op}.{ty}", (ty, ty), (ty,))
        yield Form(f"not.{ty}", (ty,), (ty,))
    for ty in BITS:
        yield Form(f"cnot.{ty}", (ty,), (ty,))
        yield Form(f"shl.{ty}", (ty, "count"), (ty,))
    for ty in SHIFTED:
        yield Form(f"shr.{ty}", (ty, "count"), (ty,))
    for way in ("l", "r"):
        for mode in ("clamp", "wrap"):
            yield Form(f"shf.{way}.{mode}.b32", ("b32", "b32", "count"), ("b32",))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        # Bits of the selector above the fields in use are to be left alone.
        text = f"prmt.b32{mode} {{d0}}, {{a0}}, {{a1}}, {{a2}};"
        yield Form(f"prmt.b32{mode}", ("b32", "b32", "b32"), ("b32",), text)
    for first in range(0, 256, 8):
        tables = range(first, first + 8)
        text = "\n\t".join(f"lop3.b32 {{d{at}}}, {{a0}}, {{a1}}, {{a2}}, {table};" for at, table in enumerate(tables))
        yield Form(f"lop3.b32 {first}..{first + 7}", ("b32", "b32", "b32"), ("b32",) * 8, text)
    for op in ("or", "and"):
        for table in (0x80, 0x96, 0xFE, 0x01):
            text = f"lop3.{op}.b32 {{d0}}|{{d1}}, {{a0}}, {{a1}}, {{a2}}, {table}, {{a3}};"
            sources, results = ("b32", "b32", "b32", "pred"), ("b32", "pred")
            yield Form(f"lop3.{op}.b32 {table}", sources, results, text, version="8.2")
    for ty in (*SHIFTED, "f32", "f64"):
        yield Form(f"selp.{ty}", (ty, ty, "pred"), (ty,))
        for by in ("s32", "f32"):
            yield Form(f"slct.{ty}.{by}", (ty, ty, by), (ty,))
        yield Form(f"slct.ftz.{ty}.f32", (ty, ty, "f32"), (ty,))
    yield from moves()


def moves():
    for ty in ("pred", *SHIFTED, "f32", "f64"):
        yield Form(f"mov.{ty}", (ty,), (ty,))
    shapes = (("b32", "b16", 2), ("b64", "b32", 2), ("b64", "b16", 4))
    for whole, part, count in shapes:
        parts = (part,) * count
        sources = "{{" + ", ".join(f"{{a{i}}}" for i in range(count)) + "}}"
        results = "{{" + ", ".join(f"{{d{i}}}" for i in range(count)) + "}}"
        yield Form(f"mov.{whole} pack {count} {part}", parts, (whole,), f"mov.{whole} {{d0}}, {sources};")
        yield Form(f"mov.{whole} unpack {count} {part}", (whole,), parts, f"mov.{whole} {results}, {{a0}};")
    text = "mov.b64 {{_, {d0}}}, {a0};"
    yield Form("mov.b64 unpack with sink", ("b64",), ("b32",), text)
    text = "mov.b128 %wide, {{{a0}, {a1}}};\n\tmov.b128 {{{d0}, {d1}}}, %wide;"
    yield Form("mov.b128 pack and unpack", ("b64", "b64"), ("b64", "b64"), text, version="8.3", declare=".reg .b128 %wide;")
    # Loads and conversions of register width: what fills the upper bits.
    for ty in ("u8", "s8", "u16", "s16", "b8", "b16"):
        text = f"st.local.b64 [%keep], {{a0}};\n\tld.local.{ty} {{d0}}, [%keep];\n\tld.local.{ty} {{d1}}, [%keep+3];"
        if ty[1:] == "16":
            text = text.replace("+3", "+6")
        yield Form(f"ld.{ty} into 32 and 64 bits", ("b64",), ("b32", "b64"), text, declare=".local .align 8 .b8 %keep[8];")
