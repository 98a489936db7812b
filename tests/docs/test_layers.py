"""The page of the layers: it has each class of `nn`, and all that is left out of `torch.nn`, with the reasons."""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from emberharmony import nn
from tests.nn.omissions import CLASSES, EVERYWHERE, OPTIONS

TEXT = (Path(__file__).parents[2] / "docs" / "layers.md").read_text(encoding="utf-8")
FAMILIES = {
    "Modules and state": (
        "module",
        "emberharmony",
        "state",
        "rngs",
        "fitting",
        "history",
        "progress",
        "functional",
        "lazy",
    ),
    "Containers": ("containers", "data_parallel"),
    "Linear layers": ("linear", "lora"),
    "Embeddings": ("embedding",),
    "Quantised layers": ("quantized",),
    "Convolutions": ("convolution", "transposed"),
    "Pooling": ("pooling",),
    "Padding": ("padding",),
    "Normalization": ("normalization",),
    "Dropout and noise": ("dropout",),
    "Activations": ("activations", "thresholds"),
    "Recurrent layers": ("recurrent", "recurrent_cells", "convolutional_recurrent"),
    "Attention and positions": ("attention", "cache", "positional"),
    "Transformers": ("transformer",),
    "Generation": ("generation",),
    "Shapes and sizes": ("shaping", "upsampling"),
    "Losses": ("modules",),
}
"""The sections of the page, and the files whose public classes and functions they list."""
NAMESPACES = {"Initial values": nn.init, "Parametrized weights": nn.parametrize, "Data": nn.data, "Metrics": nn.metrics}
"""The sections of the page that list a namespace."""
PUBLIC: dict[str, Any] = {name: getattr(nn, name) for name in nn.__all__ if not inspect.ismodule(getattr(nn, name))}


def rows(found: Mapping[str, Any]) -> list[str]:
    """Returns rows with the first lines of the docstrings of classes and functions; a loss has that of its function."""
    first = {name: (inspect.getdoc(getattr(x, "function", x)) or "").split("\n")[0] for name, x in found.items()}
    return [f"| `{name}` | {line} |" for name, line in ((name, x.replace("|", "\\|")) for name, x in first.items())]


def homes(public: Any) -> set[str]:
    """Returns the names of the module and of the folder that a class or function is written in."""
    return {*public.__module__.split(".")[-2:]}


def family(title: str) -> dict[str, Any]:
    """Returns the classes and functions of a section, in the order of `nn.__all__` or of the namespace."""
    if title in FAMILIES:
        return {name: x for name, x in PUBLIC.items() if homes(x) & {*FAMILIES[title]}}
    home = NAMESPACES[title].__name__
    return {
        f"{home.removeprefix('emberharmony.')}.{name}": x
        for name, x in vars(NAMESPACES[title]).items()
        if name[0] != "_" and (inspect.isfunction(x) or isinstance(x, type)) and x.__module__.startswith(home)
    }


def section(title: str) -> list[str]:
    """Returns the rows of the table below a heading of the page."""
    text = re.split(rf"^##+ {re.escape(title)}\n", TEXT, flags=re.MULTILINE)[1]
    return re.findall(r"^\| `.*$", re.split(r"^#", text, flags=re.MULTILINE)[0], re.MULTILINE)


@pytest.mark.parametrize("title", [*FAMILIES, *NAMESPACES])
def test_a_section_has_each_class_with_the_first_line_of_its_docstring(title: str) -> None:
    wanted = rows(family(title))
    assert section(title) == wanted, "\n".join(wanted)


def test_every_public_class_is_in_a_section() -> None:
    files = {file for each in FAMILIES.values() for file in each}
    assert {name for name, x in PUBLIC.items() if not homes(x) & files} == set()


def test_the_options_that_are_left_out_are_those_of_the_tests() -> None:
    wanted = [f"| all | `{option}` | {reason} |" for option, reason in EVERYWHERE.items()]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, options in OPTIONS.items():
        for option, reason in options.items():
            by_reason.setdefault((option, reason), []).append(f"`{name}`")
    wanted += [f"| {', '.join(names)} | `{option}` | {reason} |" for (option, reason), names in by_reason.items()]
    text = re.split(r"^## Options of PyTorch", TEXT, flags=re.MULTILINE)[1]
    found = re.findall(r"^\| (?:all|`).*$", re.split(r"^#", text, flags=re.MULTILINE)[0], re.MULTILINE)
    assert found == wanted, "\n".join(wanted)


def test_the_classes_that_are_left_out_are_those_of_the_tests() -> None:
    by_reason: dict[str, list[str]] = {}
    for name, reason in CLASSES.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    wanted = [f"| {', '.join(names)} | {reason} |" for reason, names in by_reason.items()]
    assert section("Classes of PyTorch that are left out") == wanted, "\n".join(wanted)
