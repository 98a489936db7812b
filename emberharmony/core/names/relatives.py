"""Hints for names that no table has: spellings that follow a rule, and functions that another library alone has."""

import re
import sys
from typing import Any

from emberharmony.core.errors import suggest

_VERY_NEAR = 0.85
"""How alike two names must be for the one to be a misspelling of the other."""
_NO_PART = re.compile(r"(loss|layer|initializer|scheduler|schedule|decay|lr)$")
"""What one library puts at the end of a name, and another leaves out."""
_WRITTEN = {
    "_": "",
    "averagepooling": "avgpool",
    "averagepool": "avgpool",
    "pooling": "pool",
    "normalization": "norm",
    "convolution": "conv",
    "similarity": "",
}
"""Parts of names that libraries write in different ways, each with the form that is compared."""


def comparison_forms(name: str) -> list[str]:
    """Returns the forms in which a name is compared with others: without case and underscores, then without an ending.

    Args:
        name: a name, such as "Conv2D", "SmoothL1Loss" or "cosine_decay_schedule".
    """
    normalized_name = name.lower()
    for spelling, compared in _WRITTEN.items():
        normalized_name = normalized_name.replace(spelling, compared)
    compared_forms = [normalized_name]
    while (shorter := _NO_PART.sub("", compared_forms[-1])) not in ("", compared_forms[-1]):
        compared_forms.append(shorter)
    return compared_forms


def matching_name(name: str, names: list[str]) -> str:
    """Returns the name in a list that is spelled otherwise, as "Conv2d" for "Conv2D", or an empty string."""
    name_by_form = {comparison_forms(listed_name)[0]: listed_name for listed_name in names}
    return next((name_by_form[form] for form in comparison_forms(name) if form in name_by_form), "")


def hint_by_rule(name: str, space: str, names: list[str], known: dict[str, str]) -> str:
    """Returns a hint for a name that differs by a rule from one that is known, or an empty string.

    Args:
        name: the unknown name.
        space: where it was looked up, such as "ops" or "nn.init".
        names: the names that are there.
        known: what replaces the names of other libraries in `ops`.
    """
    similar_name = matching_name(re.sub(r"\d[dD]$", "", name), names)
    if space == "ops" and re.search(r"(pool|conv|transpose|norm|dropout)\dd$", name) and similar_name:
        return f"use ops.{similar_name}(x, ...)"
    if space == "ops" and name.removeprefix("reduce_") in names:
        return f"use ops.{name.removeprefix('reduce_')}(x, axis)"
    if suggest(name, names, _VERY_NEAR) and not name.endswith("_"):
        return ""
    if space == "nn.init" and name.rstrip("_") in names:
        return f"use nn.init.apply(parameter, nn.init.{name.rstrip('_')}(...))"
    if name.endswith("_") and name.rstrip("_") in names:
        return f"use {space}.{name.rstrip('_')}(x), which returns a new tensor"
    if name.startswith("Lazy") and name[4:] in names:
        return f"use nn.{name[4:]}(None, ...) and nn.build(model, example)"
    names_in_name = [each for each in names if len(each) > 4 and re.search(rf"(^|_){each}(_|$)", name)]
    if names_in_name and not space.startswith("ops"):
        return f"did you mean {space}.{max(names_in_name, key=len)}?"
    base_name = name.removesuffix("_like")
    if space.startswith("ops") and base_name != name and base_name in known:
        return f"use ops.{known[base_name].replace('shape', 'ops.shape(x)')}"
    return ""


def hint_for_other_library(name: str, space: str, names: list[str]) -> str:
    """Returns a hint on how to call a function that only another library has, or an empty string.

    Args:
        name: the unknown name.
        space: where it was looked up.
        names: the names that are there.
    """
    if space == "nn.metrics" and re.search(r"_(score|error|loss|curve|report|matrix|deviance)$", name):
        return f"scikit-learn has it, for arrays: sklearn.metrics.{name}(labels, ops.to_numpy(outputs))"
    if not space.startswith("ops"):
        return ""
    submodule = space.removeprefix("ops").lstrip(".")
    for library, advice_template in (
        ("numpy", "ops.convert_to_tensor({}(ops.to_numpy(x))), without a gradient"),
        ("torch", "{}(x) takes tensors of the backend 'torch', and dir(ops) lists what runs on each"),
    ):
        for module_name in dict.fromkeys((f"{library}.{submodule}".rstrip("."), f"{library}.nn.functional")):
            if _is_function(getattr(sys.modules.get(module_name), name, None)):
                library_title, closest_hint = (
                    ("NumPy" if library == "numpy" else "PyTorch"),
                    suggest(name, names, _VERY_NEAR),
                )
                return f"only {library_title} has it: {advice_template.format(f'{module_name}.{name}')}{closest_hint}"
    return ""


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)
