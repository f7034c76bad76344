"""Exchanges between lanes, and special registers whose value does not depend on the device."""

from ..form import Form

FULL = "0xffffffff"
# Lanes that take part where not all do.
SOME = "0x8f3c5a71"


def some(body, results):
    """The instruction in lanes of `SOME` alone; the others store 0."""
    zeros = "\n\t".join(
        f"setp.ne.u32 {{d{at}}}, 0, 0;" if kind == "pred" else f"mov.b32 {{d{at}}}, 0;" for at, kind in enumerate(results)
    )
    test = f"mov.u32 %lane, %laneid;\n\tshr.u32 %lane, {SOME}, %lane;\n\tand.b32 %lane, %lane, 1;"
    test += "\n\tsetp.eq.u32 %out_of, %lane, 0;"
    return f"{zeros}\n\t{test}\n\t@%out_of bra skip;\n\t{body}\nskip:"


def form(name, sources, results, operands):
    """With all lanes, and with some."""
    yield Form(name, sources, results, f"{name} {operands}, {FULL};")
    declare = ".reg .b32 %lane;\n\t.reg .pred %out_of;"
    body = some(f"{name} {operands}, {SOME};", results)
    yield Form(f"{name} in some lanes", sources, results, body, declare=declare)


def forms():
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in (0x1F, 0, 0x181F, 0x1C07, 0x1807, 0x0F0F):
            name = f"shfl.sync.{mode}.b32"
            text = f"{name} {{d0}}|{{d1}}, {{a0}}, {{a1}}, {clamp}, {FULL};"
            yield Form(f"{name} {clamp:#x}", ("b32", "count"), ("b32", "pred"), text)
    for mode in ("any", "all", "uni"):
        yield from form(f"vote.sync.{mode}.pred", ("pred",), ("pred",), "{d0}, {a0}")
    yield from form("vote.sync.ballot.b32", ("pred",), ("b32",), "{d0}, {a0}")
    for bits in ("b32", "b64"):
        yield from form(f"match.any.sync.{bits}", (bits,), ("b32",), "{d0}, {a0}")
        yield from form(f"match.all.sync.{bits}", (bits,), ("b32", "pred"), "{d0}|{d1}, {a0}")
        # Random words are hardly ever alike.
        text = f"and.{bits} %few, {{a0}}, 3;\n\tmatch.any.sync.{bits} {{d0}}, %few, {FULL};"
        yield Form(f"match.any.sync.{bits} of 0..3", (bits,), ("b32",), text, declare=f".reg .{bits} %few;")
        text = f"and.{bits} %few, {{a0}}, 0;\n\tmatch.all.sync.{bits} {{d0}}|{{d1}}, %few, {FULL};"
        yield Form(f"match.all.sync.{bits} of 0", (bits,), ("b32", "pred"), text, declare=f".reg .{bits} %few;")
    for op in ("add", "min", "max"):
        for ty in ("u32", "s32"):
            yield from form(f"redux.sync.{op}.{ty}", (ty,), (ty,), "{d0}, {a0}")
    for op in ("and", "or", "xor"):
        yield from form(f"redux.sync.{op}.b32", ("b32",), ("b32",), "{d0}, {a0}")
    yield from form("elect.sync", (), ("b32", "pred"), "{d0}|{d1}")
    yield Form("activemask.b32", (), ("b32",), "activemask.b32 {d0};")
    body = some("activemask.b32 {d0};", ("b32",))
    yield Form("activemask.b32 in some lanes", (), ("b32",), body, declare=".reg .b32 %lane;\n\t.reg .pred %out_of;")
    yield from special()


def special():
    shapes = {"x": ((16, 1, 1), (256, 1, 1)), "xyz": ((4, 2, 2), (8, 8, 4)), "zyx": ((2, 4, 8), (4, 4, 4))}
    for label, (grid, block) in shapes.items():
        for register in ("tid", "ntid", "ctaid", "nctaid", "cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid"):
            text = "\n\t".join(f"mov.u32 {{d{at}}}, %{register}.{axis};" for at, axis in enumerate("xyz"))
            yield Form(f"mov.u32 %{register} {label}", (), ("b32",) * 3, text, grid=grid, block=block, whole=True)
        for register in ("laneid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
                         "cluster_ctarank", "cluster_nctarank", "dynamic_smem_size", "total_smem_size"):  # fmt: skip
            text = f"mov.u32 {{d0}}, %{register};"
            yield Form(f"mov.u32 %{register} {label}", (), ("b32",), text, grid=grid, block=block, whole=True)
        text = "mov.pred {d0}, %is_explicit_cluster;"
        yield Form(f"mov.pred %is_explicit_cluster {label}", (), ("pred",), text, grid=grid, block=block, whole=True)
