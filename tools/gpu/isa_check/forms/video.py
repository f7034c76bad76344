"""Video instructions: scalar, and on two or four parts of a word. All types, a choice of selectors."""

from ..form import Form

TYPES = ("u32", "s32")
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def triples():
    return [(d, a, b) for d in TYPES for a in TYPES for b in TYPES]


def scalar(name, label, text, sources=("b32", "b32", "b32")):
    return Form(f"{name} {label}" if label else name, sources, ("b32",), f"{name} {text};")


def forms():
    plain, third = "{d0}, {a0}, {a1}", "{d0}, {a0}, {a1}, {a2}"
    for op in SCALAR:
        for d, a, b in triples():
            for sat in ("", ".sat"):
                name = f"{op}.{d}.{a}.{b}{sat}"
                yield scalar(name, "", plain)
                yield scalar(name, "b1 h1", "{d0}, {a0}.b1, {a1}.h1")
            yield scalar(f"{op}.{d}.{a}.{b}.add", "", third)
        for name in (f"{op}.s32.s32.s32.min", f"{op}.u32.u32.u32.max", f"{op}.s32.u32.s32.sat.add"):
            yield scalar(name, "", third)
        for part in ("b0", "b3", "h0", "h1"):
            yield scalar(f"{op}.s32.s32.s32.sat", f"into {part}", f"{{d0}}.{part}, {{a0}}.b2, {{a1}}.h0, {{a2}}")
    for op in ("vshl", "vshr"):
        for d in TYPES:
            for a in TYPES:
                for mode in ("clamp", "wrap"):
                    for sat in ("", ".sat"):
                        name = f"{op}.{d}.{a}.u32{sat}.{mode}"
                        yield scalar(name, "", plain, ("b32", "count", "b32"))
        yield scalar(f"{op}.s32.s32.u32.clamp.add", "", third, ("b32", "count", "b32"))
        yield scalar(f"{op}.u32.u32.u32.wrap", "into h1", "{d0}.h1, {a0}.b1, {a1}.b0, {a2}")
    for a in TYPES:
        for b in TYPES:
            d = "s32" if "s32" in (a, b) else "u32"
            for extra in ("", ".sat", ".shr7", ".sat.shr15"):
                yield scalar(f"vmad.{d}.{a}.{b}{extra}", "", third)
            yield scalar(f"vmad.{d}.{a}.{b}", "b0 h1", "{d0}, {a0}.b0, {a1}.h1, {a2}")
            for cmp in COMPARE:
                yield scalar(f"vset.{a}.{b}.{cmp}", "", plain)
            yield scalar(f"vset.{a}.{b}.lt.add", "", third)
    yield scalar("vmad.u32.u32.u32.po", "", third)
    yield scalar("vmad.s32.s32.s32", "-c", "{d0}, {a0}, {a1}, -{a2}")
    yield scalar("vmad.s32.s32.s32", "-a", "{d0}, -{a0}, {a1}, {a2}")
    yield scalar("vset.s32.s32.ge", "into b2", "{d0}.b2, {a0}.h1, {a1}.b3, {a2}")
    yield from parts(2, ("h0", "h1", "h10"), ("h01", "h32"))
    yield from parts(4, ("b0", "b21", "b3210"), ("b0123", "b7540"))


def parts(count, masks, selectors):
    third = "{d0}, {a0}, {a1}, {a2}"
    for op in (f"vadd{count}", f"vsub{count}", f"vavrg{count}", f"vabsdiff{count}", f"vmin{count}", f"vmax{count}"):
        for d, a, b in triples():
            yield scalar(f"{op}.{d}.{a}.{b}", "", third)
        for name in (f"{op}.s32.s32.s32.sat", f"{op}.u32.u32.s32.sat", f"{op}.u32.u32.u32.add", f"{op}.s32.s32.s32.add"):
            yield scalar(name, "", third)
        for mask in masks:
            text = f"{{d0}}.{mask}, {{a0}}.{selectors[0]}, {{a1}}.{selectors[1]}, {{a2}}"
            yield scalar(f"{op}.s32.s32.u32.sat", mask, text)
    for a in TYPES:
        for b in TYPES:
            for cmp in COMPARE:
                yield scalar(f"vset{count}.{a}.{b}.{cmp}", "", third)
            yield scalar(f"vset{count}.{a}.{b}.lt.add", "", third)
    yield scalar(f"vset{count}.s32.u32.gt", masks[1], f"{{d0}}.{masks[1]}, {{a0}}, {{a1}}.{selectors[1]}, {{a2}}")
