"""Ways out for names that no table has: spellings that follow a rule, and functions that another library alone has."""

import re
import sys
from typing import Any

from emberharmony.core.errors import suggest

_VERY_NEAR = 0.85
"""How alike two names must be for the one to be a misspelling of the other."""


def by_rule(name: str, space: str, names: list[str], known: dict[str, str]) -> str:
    """Returns the way out for a name that differs by a rule from one that is known, or an empty string.

    Args:
        name: the unknown name.
        space: where it was looked up, such as "ops" or "nn.init".
        names: the names that are there.
        known: what replaces the names of other libraries in `ops`.
    """
    if suggest(name, names, _VERY_NEAR) and not name.endswith("_"):
        return ""
    if space == "nn.init" and name.rstrip("_") in names:
        return f"use nn.init.apply(parameter, nn.init.{name.rstrip('_')}(...))"
    if name.endswith("_") and name.rstrip("_") in names:
        return f"use {space}.{name.rstrip('_')}(x), which returns a new tensor"
    if name.startswith("Lazy") and name[4:] in names:
        return f"use nn.{name[4:]}(None, ...) and nn.build(model, example)"
    base = re.sub(r"\d[dD]$", "", name)
    if space == "ops" and base != name and base in names:
        return f"use ops.{base}(x, ...)"
    inside = [each for each in names if len(each) > 4 and re.search(rf"(^|_){each}(_|$)", name)]
    if inside and not space.startswith("ops"):
        return f"did you mean {space}.{max(inside, key=len)}?"
    base = name.removesuffix("_like")
    if space.startswith("ops") and base != name and base in known:
        return f"use ops.{known[base].replace('shape', 'ops.shape(x)')}"
    return ""


def elsewhere_alone(name: str, space: str, names: list[str]) -> str:
    """Returns how a function of another library is called that has no counterpart here, or an empty string.

    Args:
        name: the unknown name.
        space: where it was looked up.
        names: the names that are there.
    """
    if space == "nn.metrics" and re.search(r"_(score|error|loss|curve|report|matrix|deviance)$", name):
        return f"scikit-learn has it, for arrays: sklearn.metrics.{name}(labels, ops.to_numpy(outputs))"
    if not space.startswith("ops"):
        return ""
    part = space.removeprefix("ops").lstrip(".")
    for library, text in (
        ("numpy", "ops.convert_to_tensor({}(ops.to_numpy(x))), without a gradient"),
        ("torch", "{}(x) takes tensors of the backend 'torch' alone"),
    ):
        for place in dict.fromkeys((f"{library}.{part}".rstrip("."), f"{library}.nn.functional")):
            if _is_function(getattr(sys.modules.get(place), name, None)):
                owner, closest = ("NumPy" if library == "numpy" else "PyTorch"), suggest(name, names, _VERY_NEAR)
                return f"only {owner} has it: {text.format(f'{place}.{name}')}{closest}"
    return ""


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)
