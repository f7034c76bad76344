"""All forms, by family. Each module here has a function `forms()`."""

from . import compares, conversions, floats, halves, integers, logic, matrices, simd, video, warpgroups, warps

FAMILIES = {
    "integer": integers,
    "logic": logic,
    "compare": compares,
    "convert": conversions,
    "float": floats,
    "half": halves,
    "packed": simd,
    "video": video,
    "warp": warps,
    "matrix": matrices,
    "wgmma": warpgroups,
}


def all_forms():
    """Every form once, with its family."""
    seen = {}
    for family, module in FAMILIES.items():
        for form in module.forms():
            form.family = family
            if form.name in seen:
                raise ValueError(f"`{form.name}` is there twice")
            seen[form.name] = form
    return list(seen.values())
