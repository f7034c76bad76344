"""Matrix instructions of a warp: `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.

Fragments of `wmma` are each implementation's own, so its forms load, multiply and store."""

from ..form import Form

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
    "b1": 1, "s32": 32,
}  # fmt: skip
EIGHT = ("s8", "u8")
FOUR = ("s4", "u4")
FLOAT8 = ("e4m3", "e5m2")


def factor(ty):
    """The kind of a register of factors."""
    return f"factor {ty}" if ty in ("f16", "bf16", "tf32", "e4m3", "e5m2", "f64") else "factor bits"


def numbered(prefix, first, count):
    return "{{" + ", ".join(f"{{{prefix}{first + at}}}" for at in range(count)) + "}}"


def registers(ty, elements, lanes=32):
    """How many registers of a lane hold a matrix."""
    return elements * BITS[ty] // (lanes * max(32, BITS[ty]))


def mma(shape, d, a, b, c, *, extra="", layouts="row.col", version="8.0"):
    """`extra` stands before the types, or if it begins with `+` behind them."""
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    # With an inner size of 4, four groups of lanes multiply matrices of their own.
    copies = 4 if shape == "m8n8k4" and a == "f16" else 1
    counts = [registers(ty, elements * copies) for ty, elements in ((d, m * n), (a, m * k), (b, k * n), (c, m * n))]
    before, behind = ("", extra[1:]) if extra.startswith("+") else (extra, "")
    name = f"mma.sync.aligned.{shape}.{layouts}{before}.{d}.{a}.{b}.{c}{behind}"
    sources = (factor(a),) * counts[1] + (factor(b),) * counts[2] + (f"sum {c}",) * counts[3]
    at = [0, counts[1], counts[1] + counts[2]]
    parts = [numbered("a", first, count) for first, count in zip(at, counts[1:])]
    return Form(name, sources, (result(d),) * counts[0], f"{name} {numbered('d', 0, counts[0])}, {', '.join(parts)};",
                version=version)  # fmt: skip


def result(ty):
    return {"f16": "f16x2", "f64": "f64", "f32": "f32", "s32": "s32"}[ty]


def floats():
    for ty in ("f16", "f32"):
        for other in ("f16", "f32"):
            for layouts in ("row.row", "row.col", "col.row", "col.col"):
                if (ty, other) != ("f16", "f32"):
                    yield mma("m8n8k4", ty, "f16", "f16", other, layouts=layouts)
        for shape in ("m16n8k8", "m16n8k16"):
            yield mma(shape, ty, "f16", "f16", ty)
    for shape in ("m16n8k8", "m16n8k16"):
        yield mma(shape, "f32", "bf16", "bf16", "f32")
    for shape in ("m16n8k4", "m16n8k8"):
        yield mma(shape, "f32", "tf32", "tf32", "f32")
    for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
        yield mma(shape, "f64", "f64", "f64", "f64")
        if shape == "m16n8k16":
            for mode in (".rz", ".rm", ".rp"):
                yield mma(shape, "f64", "f64", "f64", "f64", extra=mode)
    for a in FLOAT8:
        for b in FLOAT8:
            yield mma("m16n8k32", "f32", a, b, "f32", version="8.4")
            for shape in ("m16n8k16", "m16n8k32"):
                yield mma(shape, "f16", a, b, "f16", version="8.7")
            yield mma("m16n8k16", "f32", a, b, "f32", version="8.7")


def integers():
    for a in EIGHT:
        for b in EIGHT:
            for shape in ("m8n8k16", "m16n8k16", "m16n8k32"):
                for saturate in ("", ".satfinite"):
                    yield mma(shape, "s32", a, b, "s32", extra=saturate)
    for a in FOUR:
        for b in FOUR:
            for shape in ("m8n8k32", "m16n8k32", "m16n8k64"):
                for saturate in ("", ".satfinite"):
                    yield mma(shape, "s32", a, b, "s32", extra=saturate)
    for shape in ("m8n8k128", "m16n8k128", "m16n8k256"):
        for op in ("xor", "and"):
            yield mma(shape, "s32", "b1", "b1", "s32", extra=f"+.{op}.popc")


# Of types that can be sparse: shape, and how many lanes of four are asked which elements are there, one, two or all.
SPARSE = {
    "f16": (("m16n8k16", 1), ("m16n8k32", 2)), "bf16": (("m16n8k16", 1), ("m16n8k32", 2)),
    "tf32": (("m16n8k8", 1), ("m16n8k16", 2)), "e4m3": (("m16n8k64", 4),),
    "s8": (("m16n8k32", 2), ("m16n8k64", 4)), "u4": (("m16n8k64", 2), ("m16n8k128", 4)),
}  # fmt: skip


def sparse():
    """Half of the elements of A are there; a register says which."""
    for ty, shapes in SPARSE.items():
        for d in ("f16", "f32") if ty == "f16" else ("s32",) if ty in ("s8", "u4") else ("f32",):
            for shape, asked in shapes:
                yield from chosen(shape, d, ty, asked)


def chosen(shape, d, ty, asked):
    k = int(shape.split("k")[1])
    counts = registers(d, 128), registers(ty, 8 * k), registers(ty, 8 * k), registers(d, 128)
    kind = "chosen 1 of 2" if ty == "tf32" else "chosen 2 of 4"
    sources = (factor(ty),) * (counts[1] + counts[2]) + (f"sum {d}",) * counts[3] + (kind,)
    at = [0, counts[1], counts[1] + counts[2]]
    parts = [numbered("a", first, count) for first, count in zip(at, counts[1:])]
    name = f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.{d}.{ty}.{ty}.{d}"
    for selector in range(4 // asked):
        operands = f"{numbered('d', 0, counts[0])}, {', '.join(parts)}, {{a{len(sources) - 1}}}, {selector:#x}"
        yield Form(f"{name} {selector}", sources, (result(d),) * counts[0], f"{name} {operands};", version="8.5")


WARPS = {"grid": (128, 1, 1), "block": (32, 1, 1)}


def rows():
    """Rows of small matrices, in an order of their own."""
    declare = ".shared .align 128 .b8 s[512];\n\t.reg .b32 %s, %row;"
    places = (
        "mov.u32 %s, s;\n\tmov.u32 %row, %laneid;\n\tmad.lo.u32 %row, %row, 5, 3;\n\tand.b32 %row, %row, 31;\n\t"
        "mad.lo.u32 %row, %row, 16, %s;\n\tmov.u32 %part, %laneid;\n\tmad.lo.u32 %s, %part, 16, %s;"
    )
    words = ("b32",) * 4
    for count in (1, 2, 4):
        for trans in ("", ".trans"):
            name = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            text = (
                f"{places}\n\tst.shared.v4.b32 [%s], {numbered('a', 0, 4)};\n\tbar.warp.sync -1;\n\t"
                f"{name} {numbered('d', 0, count)}, [%row];"
            )
            yield Form(name, words, ("b32",) * count, text, declare=declare, **WARPS)
            name = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            text = (
                f"{places}\n\tmov.u32 %part, 0;\n\tst.shared.v4.b32 [%s], {{{{%part, %part, %part, %part}}}};\n\t"
                f"bar.warp.sync -1;\n\t{name} [%row], {numbered('a', 0, count)};\n\tbar.warp.sync -1;\n\t"
                f"ld.shared.v4.b32 {numbered('d', 0, 4)}, [%s];"
            )
            yield Form(name, words, words, text, declare=declare, **WARPS)
    name = "movmatrix.sync.aligned.m8n8.trans.b16"
    yield Form(name, ("b32",), ("b32",), f"{name} {{d0}}, {{a0}};")


def wmma(shape, d, a, b, c, *, layouts="row.col", op="", tail="", fragments=None):
    """Each lane brings its share of the bytes of A, B and C, in the order of memory."""
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    sizes = [m * k * BITS[a] // 8, k * n * BITS[b] // 8, m * n * BITS[c] // 8, m * n * BITS[d] // 8]
    kinds = [factor(a), factor(b), f"sum {c}"]
    words = [size // (256 if ty == "f64" else 128) for size, ty in zip(sizes, (a, b, c, d))]
    sources = tuple(kind for kind, count in zip(kinds, words) for _ in range(count))
    starts = [0, sizes[0], sizes[0] + sizes[1], sum(sizes[:3])]
    row = "mov.u32 %s, s;\n\tmov.u32 %part, %laneid;\n\tmad.lo.u32 %own, %part, {}, %s;"
    width = 8 if a == "f64" else 4
    lines, at = [row.format(width)], 0
    for start, count in zip(starts, words):
        for word in range(count if start != starts[3] else 0):
            lines.append(f"st.shared.b{width * 8} [%own+{start + word * 32 * width}], {{a{at}}};")
            at += 1
    lines.append("bar.warp.sync -1;")
    rows_of_a, rows_of_b = layouts.split(".")
    regs = {}
    declared = []
    for part, ty, (count, bits) in zip("abcd", (a, b, c, d), fragments):
        regs[part] = [f"%{part}{part}{index}" for index in range(count)]
        declared.append(f".reg .b{bits} {', '.join(regs[part])};")
    lists = {part: "{{" + ", ".join(names) + "}}" for part, names in regs.items()}
    strides = [k if rows_of_a == "row" else m, n if rows_of_b == "row" else k, n]
    for part, ty, start, layout, stride in zip("abc", (a, b, c), starts, (rows_of_a, rows_of_b, "row"), strides):
        lines.append(f"mov.u32 %part, {stride};\n\tadd.u32 %own, %s, {start};")
        lines.append(f"wmma.load.{part}.sync.aligned.{layout}.{shape}.shared.{ty} {lists[part]}, [%own], %part;")
    types = f".{d}.{a}.{b}.{c}" if a != "f16" else f".{d}.{c}"
    name = f"wmma.mma{op}.sync.aligned.{layouts}.{shape}{types}{tail}"
    lines.append(f"{name} {lists['d']}, {lists['a']}, {lists['b']}, {lists['c']};")
    lines.append(f"mov.u32 %part, {n};\n\tadd.u32 %own, %s, {starts[3]};")
    lines.append(f"wmma.store.d.sync.aligned.row.{shape}.shared.{d} [%own], {lists['d']}, %part;\n\tbar.warp.sync -1;")
    lines.append(row.format(width))
    lines += [f"ld.shared.b{width * 8} {{d{at}}}, [%own+{starts[3] + at * 32 * width}];" for at in range(words[3])]
    declare = f".shared .align 128 .b8 s[{sum(sizes)}];\n\t.reg .b32 %s, %own;\n\t" + "\n\t".join(declared)
    return Form(name, sources, (result(d),) * words[3], "\n\t".join(lines), declare=declare, **WARPS)


def warp_matrices():
    shapes = ("m16n16k16", "m8n32k16", "m32n8k16")
    for shape in shapes:
        for layouts in ("row.row", "row.col", "col.row", "col.col"):
            for c in ("f16", "f32"):
                for d in ("f16", "f32"):
                    if c == d or layouts == "row.col":
                        sums = [(4, 32) if ty == "f16" else (8, 32) for ty in (c, d)]
                        yield wmma(shape, d, "f16", "f16", c, layouts=layouts, fragments=[(8, 32), (8, 32), *sums])
        halves = {"m16n16k16": (4, 4), "m8n32k16": (2, 8), "m32n8k16": (8, 2)}[shape]
        fragments = [(halves[0], 32), (halves[1], 32), (8, 32), (8, 32)]
        yield wmma(shape, "f32", "bf16", "bf16", "f32", fragments=fragments)
        yield wmma(shape, "f32", "bf16", "bf16", "f32", layouts="col.row", fragments=fragments)
        bytes_ = [(count // 2, 32) for count in halves] + [(8, 32), (8, 32)]
        for ty in EIGHT:
            for tail in ("", ".satfinite"):
                yield wmma(shape, "s32", ty, ty, "s32", tail=tail, fragments=bytes_)
    yield wmma("m16n16k8", "f32", "tf32", "tf32", "f32", fragments=[(4, 32), (4, 32), (8, 32), (8, 32)])
    yield wmma("m8n8k4", "f64", "f64", "f64", "f64", fragments=[(1, 64), (1, 64), (2, 64), (2, 64)])
    small = [(1, 32), (1, 32), (2, 32), (2, 32)]
    for ty in FOUR:
        for tail in ("", ".satfinite"):
            yield wmma("m8n8k32", "s32", ty, ty, "s32", tail=tail, fragments=small)
    for op in ("xor", "and"):
        yield wmma("m8n8k128", "s32", "b1", "b1", "s32", op=f".{op}.popc", fragments=small)


def forms():
    yield from floats()
    yield from integers()
    yield from sparse()
    yield from rows()
    yield from warp_matrices()
