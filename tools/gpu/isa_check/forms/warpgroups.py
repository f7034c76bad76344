"""`wgmma`: a warpgroup multiplies matrices in shared memory, or one in registers by one in shared memory.

32 KiB of shared memory are full of elements, so that whatever a descriptor means, what it means can be told from the sums."""

from ..form import Form
from .matrices import BITS, EIGHT, FLOAT8, factor, numbered, registers, result

GROUPS = {"grid": (32, 1, 1), "block": (128, 1, 1), "target": "sm_90a"}
# Words that each lane brings of what is in shared memory, which are there eight times with small changes.
WORDS = 16
COPIES = 4
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}
# Bytes that a swizzle's rows have.
WIDE = {0: 16, 32: 32, 64: 64, 128: 128}


def descriptor(start, leading, stride, swizzle=0, base=0):
    """What has to be added to a descriptor that has nothing but the start of shared memory."""
    return (start >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32 | base << 49 | SWIZZLES[swizzle] << 62


# Rows next to each other, without swizzle: 8 rows of 16 bytes, then the next 16 bytes of these rows, then the next rows.
def plain(k_bytes, start=0):
    return descriptor(start, 128, 8 * k_bytes)


def wgmma(shape, d, a, b, label="", *, in_registers=False, describe=None, scale_d="1", scales=(1, 1), trans=(0, 0), extra=""):
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    k_bytes = k * BITS[a] // 8
    of_a, of_b = describe or (plain(k_bytes), plain(k_bytes, 16384))
    sums = registers(d, m * n, 128)
    own = registers(a, m * k, 128) if in_registers else 0
    sources = (factor(a),) * (WORDS + own) + (f"sum {d}",) * sums
    kind = {"f16": "b32", "f64": "b64"}.get(d, d)
    before, behind = ("", extra[1:]) if extra.startswith("+") else ("", extra)
    name = f"wgmma.mma_async.sync.aligned.{shape}{before}.{d}.{a}.{b}{behind}"
    lines = ["mov.u32 %s, s;\n\tmov.u32 %part, %tid.x;\n\tmad.lo.u32 %part, %part, 4, %s;"]
    for copy in range(COPIES):
        for word in range(WORDS):
            place = (copy * WORDS + word) * 512
            lines.append(f"xor.b32 %bit, {{a{word}}}, {0x01010101 * copy:#x};\n\tst.shared.b32 [%part+{place}], %bit;")
    lines.append("fence.proxy.async.shared::cta;\n\tbar.sync 0;\n\tshr.u32 %s, %s, 4;\n\tcvt.u64.u32 %base, %s;")
    lines.append(f"add.u64 %of_a, %base, {of_a:#x};\n\tadd.u64 %of_b, %base, {of_b:#x};")
    lines += [f"mov.b32 {{d{at}}}, {{a{WORDS + own + at}}};" for at in range(sums)]
    lines.append(f"setp.ne.u32 %scale, {scale_d}, 0;\n\twgmma.fence.sync.aligned;")
    operands = [numbered("d", 0, sums), numbered("a", WORDS, own) if in_registers else "%of_a", "%of_b", "%scale"]
    if d != "s32":
        operands += [str(scale) for scale in scales]
    if a in ("f16", "bf16"):
        operands += [str(way) for way in trans[1 if in_registers else 0 :]]
    lines.append(f"{name} {', '.join(operands)};")
    lines.append("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;")
    declare = ".shared .align 1024 .b8 s[32768];\n\t.reg .b32 %s;\n\t.reg .b64 %base, %of_a, %of_b;\n\t.reg .pred %scale;"
    return Form(f"{name} {label}".strip(), sources, (result(d),) * sums, "\n\t".join(lines), declare=declare,
                version="8.7", **GROUPS)  # fmt: skip


def types():
    yield "m64n8k16", "f16", "f16", "f16"
    yield "m64n8k16", "f32", "f16", "f16"
    yield "m64n8k16", "f32", "bf16", "bf16"
    yield "m64n8k8", "f32", "tf32", "tf32"
    for a in FLOAT8:
        for b in FLOAT8:
            for d in ("f16", "f32"):
                yield "m64n8k32", d, a, b
    for a in EIGHT:
        for b in EIGHT:
            yield "m64n8k32", "s32", a, b


def forms():
    for shape, d, a, b in types():
        for in_registers in (False, True):
            where = "registers" if in_registers else ""
            yield wgmma(shape, d, a, b, where, in_registers=in_registers)
            yield wgmma(shape, d, a, b, f"{where} scale-d 0".strip(), in_registers=in_registers, scale_d="0")
            if d == "s32":
                yield wgmma(shape, d, a, b, where, in_registers=in_registers, extra=".satfinite")
            elif a == b and a != "e5m2":
                for scales in ((-1, 1), (1, -1)):
                    yield wgmma(shape, d, a, b, f"{where} scales {scales}".strip(), in_registers=in_registers, scales=scales)
    for in_registers in (False, True):
        where = "registers" if in_registers else ""
        yield wgmma("m64n8k256", "s32", "b1", "b1", where, in_registers=in_registers, extra=".and.popc")
    for n in (24, 64):
        yield wgmma(f"m64n{n}k16", "f32", "f16", "f16")
    for n in (16, 72, 256):
        yield wgmma(f"m64n{n}k16", "f16", "f16", "f16")
    yield wgmma("m64n48k32", "s32", "s8", "s8")
    yield wgmma("m64n16k8", "f32", "tf32", "tf32")
    yield from layouts()


def layouts():
    """Ways in which descriptors lay out matrices."""
    half = ("m64n32k16", "f16", "f16", "f16")
    for swizzle, wide in WIDE.items():
        rows = 8 * wide
        for start, leading in ((0, 128), (0, 4096), (32, 4096)):
            if start < wide - 16:
                one = descriptor(start, leading, rows, swizzle)
                label = f"swizzle {swizzle} start {start} leading {leading}"
                other = descriptor(16384 + start, leading, max(rows, 1024 if leading == 4096 else 0), swizzle)
                yield wgmma(*half, label, describe=(one, other))
                for trans in ((1, 0), (0, 1), (1, 1)):
                    yield wgmma(*half, f"{label} trans {trans}", describe=(one, other), trans=trans)
    # Sides of B that are longer than a row of the swizzle.
    for swizzle in WIDE:
        for leading, stride in ((2048, 1024),):
            one, other = descriptor(0, leading, stride, swizzle), descriptor(8192, leading, stride, swizzle)
            label = f"swizzle {swizzle} strides {leading} {stride} trans"
            yield wgmma("m64n136k16", "f16", "f16", "f16", label, describe=(one, other), trans=(1, 1))
    # Matrices that do not begin where the swizzle does.
    for base in (0, 1, 5):
        for off in (128, 640):
            one, other = descriptor(off, 16, 1024, 128, base), descriptor(16384 + off, 16, 1024, 128, base)
            yield wgmma(*half, f"swizzle 128 base {base} off {off}", describe=(one, other))
    for base in (0, 1, 3):
        one, other = descriptor(128, 16, 512, 64, base), descriptor(16384 + 128, 16, 512, 64, base)
        yield wgmma(*half, f"swizzle 64 base {base} off 128", describe=(one, other))
    for ty, shape in (("tf32", "m64n16k8"), ("e4m3", "m64n16k32"), ("s8", "m64n16k32")):
        d = "s32" if ty == "s8" else "f32"
        for swizzle, wide in WIDE.items():
            one, other = descriptor(0, 128, 8 * wide * (2 if not swizzle else 1), swizzle), descriptor(16384, 256, 1024, swizzle)
            yield wgmma(shape, d, ty, ty, f"swizzle {swizzle}", describe=(one, other))
