"""What the tests of the inference share: a word for what the last expression of a source is held to be."""

import ast
from collections.abc import Callable

import pytest

from emberlint.config.settings import Settings
from emberlint.inference import FileInference
from emberlint.inference.values import (
    NONE,
    NUMBER,
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

WORDS = {NONE: "none", NUMBER: "number", STRING: "string"}


@pytest.fixture
def held() -> Callable[..., str]:
    """Returns a function: source to `A`, `B`, `C` for a tensor of that tier, or to a word for all else."""
    return _held


def _held(source: str, **settings: object) -> str:
    file = SourceFile("library/module.py", source, Settings().with_(**settings))
    inference = FileInference(file)
    last = max((node for node in ast.walk(file.tree) if isinstance(node, ast.Expr)), key=lambda node: node.lineno)
    return _word(inference.values.get(last.value))


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
