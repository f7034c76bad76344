"""Which lanes a form is run with, and which of them are compared: all, or for a test that is to be quick and small, some."""

from dataclasses import dataclass

from . import tiles, values

# Lanes of operands of a sort that decides little by itself, and of one with infinities and NaNs.
GROUPS = (tiles.WAYS.index("spread"), tiles.WAYS.index("special"))


@dataclass(frozen=True)
class Lanes:
    """`kept` are indices into `run`."""

    run: tuple
    kept: tuple
    # A form's own grid and block are for all lanes.
    grid: tuple | None = None
    block: tuple | None = None


ALL = Lanes(tuple(range(values.LANES)), tuple(range(values.LANES)))
SPREAD = tuple(at * 128 + at * 5 % 128 for at in range(32))


def whole_groups(size, every):
    """So many lanes of each group."""
    run = tuple(group * tiles.GROUP + lane for group in GROUPS for lane in range(size))
    return Lanes(run, tuple(range(0, len(run), every)), (len(GROUPS), 1, 1), (size, 1, 1))


TRIMMED = {
    "warp": Lanes(tuple(range(3072, 3104)), tuple(range(32)), (1, 1, 1), (32, 1, 1)),
    "matrix": whole_groups(32, 3),
    "wgmma": whole_groups(tiles.GROUP, 13),
}
SCALAR = Lanes(SPREAD, tuple(range(32)), (1, 1, 1), (32, 1, 1))


def lanes(form, trimmed):
    if not trimmed:
        return ALL
    if form.whole:
        return Lanes(ALL.run, SPREAD)
    return TRIMMED.get(form.family, SCALAR)
