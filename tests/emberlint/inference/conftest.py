"""The shared fixture of the inference tests: it names the inferred kind of the last expression of a source."""

import ast
from collections.abc import Callable

import pytest

from emberlint.config.settings import Settings
from emberlint.inference import FileInference
from emberlint.inference.values import (
    NONE,
    NUMBER,
    REAL,
    STRING,
    Class,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Value,
    holds_tensor,
)
from emberlint.source.source_file import SourceFile

WORDS = {NONE: "none", NUMBER: "number", REAL: "number", STRING: "string"}


@pytest.fixture
def held() -> Callable[..., str]:
    """Returns the function from a source to `A`, `B` or `C`, the tier of a tensor, or to a word for another kind."""
    return _held


def _held(source: str, **settings: object) -> str:
    file = SourceFile("library/module.py", source, Settings().with_changes(**settings))
    inference = FileInference(file)
    last = max((node for node in ast.walk(file.tree) if isinstance(node, ast.Expr)), key=lambda node: node.lineno)
    return _word(inference.value_by_node.get(last.value))


def _word(value: Value) -> str:
    if isinstance(value, Tensor):
        return value.tier.name
    if isinstance(value, Sequence | Mapping):
        return "tensors" if holds_tensor(value) else "container"
    if isinstance(value, Instance):
        return "instance"
    if isinstance(value, Class):
        return "class"
    return WORDS.get(value, "unknown" if value is None else "other")
