"""Operand values of matrix instructions: whole groups of lanes get numbers of one sort, because one infinity, or one number
far above all others, decides a sum of many products."""

import functools
import random

# Bits of the exponent and of the fraction.
FORMATS = {
    "f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2), "f32": (8, 23), "f64": (11, 52),
}  # fmt: skip

# Format and number of the elements of a register, and whether it holds sums. Formats that are no floats are bits.
KINDS = {
    "factor f16": ("f16", 2, False), "factor bf16": ("bf16", 2, False), "factor tf32": ("tf32", 1, False),
    "factor e4m3": ("e4m3", 4, False), "factor e5m2": ("e5m2", 4, False), "factor f64": ("f64", 1, False),
    "factor bits": ("bits", 1, False), "sum f16": ("f16", 2, True), "sum f32": ("f32", 1, True),
    "sum f64": ("f64", 1, True), "sum s32": ("s32", 1, True), "chosen 2 of 4": ("chosen", 1, False),
    "chosen 1 of 2": ("chosen", 1, False),
}  # fmt: skip

WIDTHS = {kind: 64 if kind.endswith("f64") else 32 for kind in KINDS}

# Lanes that get numbers of one sort: a warpgroup.
GROUP = 128
# Whole numbers; exponents ever farther apart; mostly zeros; few bits; subnormals; infinities and NaNs; anything.
WAYS = ("whole", "near", "spread", "wide", "sparse", "coarse", "tiny", "special", "any")
SPREAD = {"near": 1, "spread": 4, "wide": 14, "sparse": 9, "coarse": 7, "special": 3}


def whole(exponent, fraction, value):
    """A small integer as a float."""
    if value == 0:
        return 0
    power = abs(value).bit_length() - 1
    mantissa = (abs(value) << fraction >> power) - (1 << fraction)
    return (value < 0) << (exponent + fraction) | ((1 << (exponent - 1)) - 1 + power) << fraction | mantissa


def number(rng, name, way, is_sum):
    """The bits of a float."""
    exponent, fraction = FORMATS[name]
    bias, top = (1 << (exponent - 1)) - 1, (1 << exponent) - 1
    sign, mantissa = rng.getrandbits(1) << (exponent + fraction), rng.getrandbits(fraction)
    if way == "any":
        return rng.getrandbits(1 + exponent + fraction)
    if way == "whole":
        return whole(exponent, fraction, rng.randint(-200, 200) if is_sum else rng.randint(-4, 4))
    if way == "sparse" and rng.randrange(4) < (2 if is_sum else 3):
        return sign
    if way == "tiny":
        if rng.randrange(2):
            return sign
        # Sums as small as the products of small factors are.
        small = rng.choice((0, bias - 26, bias - 18)) if is_sum and exponent == 8 else 0
        field = small + rng.randrange(4) if rng.randrange(2) else bias + rng.randint(-2, 2)
        return sign | field << fraction | mantissa
    if way == "special" and rng.randrange(48) == 0:
        most = top << fraction
        return sign | rng.choice((most, most, most - 1, most | 1, most | mantissa, 0, 1))
    spread = SPREAD[way] * (2 if is_sum else 1)
    field = min(max(bias + rng.randint(-spread, spread), 1), top - 1)
    if way == "coarse":
        mantissa &= -1 << max(fraction - rng.randrange(3), 0)
    return sign | field << fraction | mantissa


def value(rng, kind, way):
    """The bits of a register."""
    name, count, is_sum = KINDS[kind]
    if name == "bits":
        return rng.choice((rng.getrandbits(32), rng.getrandbits(32), 0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F))
    if name == "s32":
        return rng.choice((rng.getrandbits(32), rng.getrandbits(12), 0x7FFFFFFF - rng.getrandbits(8), 0x80000000))
    if kind == "chosen 2 of 4":
        pairs = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
        return sum(rng.choice(pairs) << at for at in range(0, 32, 4))
    if kind == "chosen 1 of 2":
        return sum(rng.choice((0b1110, 0b0100)) << at for at in range(0, 32, 4))
    if name == "tf32":
        # The low bits do not count.
        return number(rng, name, way, is_sum) << 13 | rng.choice((0, rng.getrandbits(13)))
    bits = 1 + sum(FORMATS[name])
    return sum(number(rng, name, way, is_sum) << at * bits for at in range(count))


@functools.cache
def lanes(kinds, group):
    """One tuple of operands for each lane of a group."""
    rng = random.Random("/".join((*kinds, str(group))))
    way = WAYS[group % len(WAYS)]
    return [tuple(value(rng, kind, way) for kind in kinds) for _ in range(GROUP)]
