"""Operand values: edges of each kind, crossed, then seeded random ones."""

import functools
import itertools
import random
import struct

from . import tiles

LANES = 4096

# Bits that a kind has in its register. Kinds of 8 bits are in registers of 32, whose upper bits are noise.
REGISTER = {
    "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "e4m3x2": 16, "e5m2x2": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32,
    "u8": 32, "s8": 32, "count": 32, "lane": 32, "few": 32, "angle": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64,
    "pred": 1, **tiles.WIDTHS,
}  # fmt: skip

# Exponent and fraction bits.
FLOATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def float_edges(exponent, fraction):
    """Bit patterns of a float format at which something changes."""
    sign = 1 << (exponent + fraction)
    top = ((1 << exponent) - 1) << fraction
    bias = (1 << (exponent - 1)) - 1
    one = bias << fraction
    quiet = 1 << (fraction - 1)

    def power(n, extra=0):
        return ((bias + n) << fraction) + extra

    positive = [0, 1, 2, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1]
    positive += [one, one + 1, one - 1, power(-1), power(-1, 1), power(1), power(-2), power(0, quiet), power(1, quiet // 2)]
    # Halfway between integers, and around the ends of integer types.
    positive += [power(1, quiet // 2 + 1), power(-1, -1), power(fraction), power(fraction - 1, 1), power(fraction + 1, 1)]
    positive += [power(n, extra) for n in (7, 8, 15, 16, 31, 32, 63, 64) if n <= bias for extra in (-1, 0, 1)]
    # Halfway cases of narrower formats, and of the narrowest normal and largest numbers there.
    for narrow in (2, 3, 7, 10, 23):
        if narrow < fraction:
            half = 1 << (fraction - narrow - 1)
            positive += [one + half, one + half - 1, one + half + 1, one + 3 * half, one + 3 * half - 1]
    for n in (-9, -14, -15, -16, -24, -25, -126, -127, -149, -150, 8, 15, 16, 126, 127, 128):
        if 1 - bias <= n <= bias:
            positive += [power(n), power(n, -1), power(n, 1), power(n, (1 << fraction) - 1), power(n, quiet)]
    positive += [top - 1, top - 2, top, top | 1, top | quiet, top | quiet | 5, top | (quiet - 1), top | ((1 << fraction) - 1)]
    return [bits for value in dict.fromkeys(positive) for bits in (value, value | sign)]


def integer_edges(bits):
    full = (1 << bits) - 1
    values = [0, 1, full, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1, full - 1, 2, 3, 5, 7, 10]
    for n in range(2, bits, 1 if bits <= 16 else 5):
        values += [(1 << n) - 1, 1 << n, (1 << n) + 1, full ^ (1 << n)]
    values += [0x5555555555555555 & full, 0xAAAAAAAAAAAAAAAA & full, 0x0123456789ABCDEF & full, 0x80FF7F0180FF7F01 & full]
    return list(dict.fromkeys(values))


def pairs(edges, width):
    """Two elements in a word: each edge with itself, its neighbour in the list, and one far away."""
    count = len(edges)
    for index, low in enumerate(edges):
        for high in (low, edges[(index + 1) % count], edges[(index * 7 + 3) % count]):
            yield low | high << width


def edges(kind):
    if kind in FLOATS:
        return float_edges(*FLOATS[kind])
    if kind in ("f16x2", "bf16x2"):
        return list(dict.fromkeys(pairs(float_edges(*FLOATS[kind[:-2]]), 16)))
    if kind in ("u16x2", "s16x2"):
        return list(dict.fromkeys(pairs(integer_edges(16), 16)))
    if kind in ("u8", "s8"):
        return [v | 0x5A << 8 for v in integer_edges(8)] + integer_edges(8)
    if kind in ("e4m3x2", "e5m2x2"):
        return list(range(256)) + [v << 8 for v in range(256)]
    if kind == "count":
        return [0, 1, 2, 7, 8, 15, 16, 17, 24, 30, 31, 32, 33, 48, 63, 64, 65, 127, 128, 255, 256, 257, 0xFFFFFFFF, 0x80000000]
    if kind == "lane":
        return list(range(32))
    if kind == "few":
        return [v & 0xFFFFFFFF for v in (*range(-6, 7), 31, 32, 33, -32, -33, 0x7FFFFFFF, -0x80000000)]
    if kind == "pred":
        return [0, 1]
    if kind == "angle":
        small = [0.0, 1e-30, 1e-40, 0.5, 1.0, 2.0, 3.0, 6.0, 0.7853982, 1.5707964, 3.1415927, 4.712389, 6.2831855, 100.0, 300.0]
        special = [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 1, 0x80000001]
        return [f32_bits(sign * v) for v in small for sign in (1, -1)] + special
    return integer_edges(REGISTER[kind])


def f32_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def random_float(rng, exponent, fraction):
    """Any bits, or of nearby exponents so that sums and products matter, or few bits so that ties come up."""
    bias = (1 << (exponent - 1)) - 1
    bits = rng.getrandbits(exponent + fraction + 1)
    way = rng.randrange(4)
    if way == 0:
        return bits
    spread = min(12 if way == 1 else 40, bias - 1)
    field = bias + rng.randint(-spread, spread)
    mantissa = bits & ((1 << fraction) - 1)
    if way == 3:
        mantissa &= -1 << max(fraction - rng.randrange(1, 12), 0)
    return (bits >> (exponent + fraction)) << (exponent + fraction) | field << fraction | mantissa


def random_value(rng, kind):
    if kind in FLOATS:
        return random_float(rng, *FLOATS[kind])
    if kind in ("f16x2", "bf16x2"):
        return random_float(rng, *FLOATS[kind[:-2]]) | random_float(rng, *FLOATS[kind[:-2]]) << 16
    if kind == "count":
        return rng.randrange(72) if rng.randrange(4) else rng.getrandbits(32)
    if kind == "lane":
        return rng.randrange(32)
    if kind == "few":
        return rng.randint(-34, 34) & 0xFFFFFFFF
    if kind == "angle":
        return f32_bits(rng.uniform(-7, 7) if rng.randrange(2) else rng.uniform(-310, 310))
    bits = REGISTER[kind]
    value = rng.getrandbits(bits)
    # A third is small, positive or negative: full-width ones make most products and sums alike.
    if bits > 8 and rng.randrange(3) == 0:
        value = (rng.getrandbits(rng.randrange(1, bits)) * rng.choice((1, -1))) & ((1 << bits) - 1)
    return value


def as_float(kind, bits):
    code = {"f32": ("<I", "<f"), "f64": ("<Q", "<d"), "f16": ("<H", "<e")}[kind]
    return struct.unpack(code[1], struct.pack(code[0], bits))[0]


def cancelling(kind, a, b):
    """`-(a * b)` rounded, which makes a sum of which little is left; `None` where there is none."""
    try:
        value = -(as_float(kind, a) * as_float(kind, b))
        code = {"f32": ("<f", "<I"), "f64": ("<d", "<Q"), "f16": ("<e", "<H")}[kind]
        return struct.unpack(code[1], struct.pack(code[0], value))[0]
    except (OverflowError, KeyError):
        return None


@functools.cache
def lanes(kinds):
    """One tuple of operands for each lane."""
    if not kinds:
        return [()] * LANES
    rng = random.Random("/".join(kinds))
    lists = [edges(kind) for kind in kinds]
    size = 1
    for values in lists:
        size *= len(values)
    if size <= LANES * 3 // 4:
        rows = list(itertools.product(*lists))
    elif len(kinds) == 1:
        rows = [(value,) for value in rng.sample(lists[0], LANES * 3 // 4)]
    else:
        # Too many to cross: three quarters are drawn from the edges of all operands.
        rows = [tuple(rng.choice(values) for values in lists) for _ in range(LANES * 3 // 4)]
        for kind, values in {(kind, tuple(values)) for kind, values in zip(kinds, lists)} if len(set(kinds)) == 1 else ():
            rows[: len(values)] = [(value,) * len(kinds) for value in values[: LANES // 2]]
    while len(rows) < LANES:
        row = [random_value(rng, kind) for kind in kinds]
        if len(kinds) == 3 and len(set(kinds)) == 1 and kinds[0] in FLOATS and rng.randrange(3) == 0:
            near = cancelling(kinds[0], row[0], row[1])
            row[2] = row[2] if near is None else near
        rows.append(tuple(row))
    return rows[:LANES]


def rows(kinds, some):
    """The operands of some lanes."""
    if kinds and kinds[0] in tiles.KINDS:
        groups = {group: tiles.lanes(kinds, group) for group in {lane // tiles.GROUP for lane in some}}
        return [groups[lane // tiles.GROUP][lane % tiles.GROUP] for lane in some]
    every = lanes(kinds)
    return [every[lane] for lane in some]


def packed(kinds, some):
    """The operands of some lanes as bytes: 8 for each, all lanes of the first operand, then all of the second."""
    these = rows(kinds, some)
    return b"".join(struct.pack(f"<{len(some)}Q", *(row[at] for row in these)) for at in range(len(kinds)))
