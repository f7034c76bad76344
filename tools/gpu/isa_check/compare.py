"""Compares what two backends stored for a form."""

import math
import struct

from . import values

EXAMPLES = 4


def words(output, form):
    """A list of values for each result."""
    every = struct.unpack(f"<{len(output) // 8}Q", output)
    count = len(every) // len(form.results)
    return [every[at * count : (at + 1) * count] for at in range(len(form.results))]


def decode(ty, bits):
    """A float of a 16-, 32- or 64-bit format."""
    if ty == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    code = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}[ty]
    return struct.unpack(code[1], struct.pack(code[0], bits))[0]


def elements(ty, bits):
    if ty.endswith("x2"):
        return [(ty[:-2], bits & 0xFFFF), (ty[:-2], bits >> 16)]
    return [(ty, bits)]


def distance(ty, one, other):
    """How many floats lie between two."""
    width = values.REGISTER[ty]

    def ordered(bits):
        magnitude = bits & ((1 << (width - 1)) - 1)
        return -magnitude if bits >> (width - 1) else magnitude

    return abs(ordered(one) - ordered(other))


def error(bound, one, other):
    """Ulps between two results, and whether that is within the bound."""
    worst, within = 0, True
    for (ty, x), (_, y) in zip(elements(bound.type, one), elements(bound.type, other)):
        a, b = decode(ty, x), decode(ty, y)
        if x == y:
            continue
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
            # Special values are exact; a NaN is one NaN.
            return math.inf, False
        apart = distance(ty, x, y)
        worst = max(worst, apart)
        gap = abs(a - b)
        within &= apart <= bound.ulps or gap <= bound.absolute or gap <= bound.relative * max(abs(a), abs(b))
    return worst, within


def compare(form, gpu, emu, lanes):
    """The state of a form and what to say about it, by the results of those lanes that are kept."""
    if gpu == emu:
        return {"state": "equal"}
    gpu, emu = words(gpu, form), words(emu, form)
    count = len(lanes.kept)
    numbers = [lanes.run[at] for at in lanes.kept]
    operands = values.rows(form.sources, numbers)
    wrong, examples, worst, unlike = 0, [], 0, 0
    for at in range(count):
        one, other = [word[at] for word in gpu], [word[at] for word in emu]
        if one == other:
            continue
        unlike += 1
        if form.bound:
            apart, within = error(form.bound, one[0], other[0])
            if within:
                worst = max(worst, apart)
                continue
        wrong += 1
        # Examples of different operands: the first, and then ever farther apart.
        if len(examples) < EXAMPLES and wrong in (1, 2, 8, 64):
            examples.append(example(form, numbers[at], operands[at], one, other))
    if not wrong:
        return {"state": "within", "values": unlike, "ulps": worst}
    return {"state": "differs", "values": wrong, "of": count, "examples": examples}


def example(form, lane, operands, gpu, emu):
    def hexes(kinds, all_bits):
        return ", ".join(f"{bits:#0{2 + max(values.REGISTER[kind] // 4, 1)}x}" for kind, bits in zip(kinds, all_bits))

    given = hexes(form.sources, operands) or f"lane {lane}"
    return f"{given} -> gpu {hexes(form.results, gpu)}, emu {hexes(form.results, emu)}"
