"""Repairs of the examples of the rules: they parse, have no finding left, keep comments, and give the same numbers."""

import ast
import inspect
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberlint.config.configuration import settings_from_table
from emberlint.config.settings import Settings
from emberlint.findings import Safety
from emberlint.rule import AnyRule, Example
from emberlint.run.engine import check_texts
from emberlint.run.registry import all_rules
from emberlint.run.repair import repair_text
from tests.together import together

CODES = frozenset(all_rules())
LIBRARIES = ("numpy", "torch", "mlx", "jax", "keras")
INSTALLED = [name for name in BUILTIN if is_installed(name)]


def parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


EXAMPLES = [
    pytest.param(rule, example, id=f"{code}-{number}")
    for code, rule in all_rules().items()
    for number, example in enumerate(rule.INVALID)
    if parses(example.source)
]
REPAIRED = [one for one in EXAMPLES if one.values[1].fixed is not None]


def settings(example: Example) -> Settings:
    return settings_from_table(dict(example.settings), Path("/nowhere"))


def repaired(example: Example, source: str | None = None, *, unsafe: bool | None = None) -> str:
    asked = example.unsafe if unsafe is None else unsafe
    return repair_text(example.path, source or example.source, settings(example), CODES, asked).after


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def commented(source: str) -> str:
    """Returns the source with one comment at the end of each line, and another one on the line above it."""
    lines = source.splitlines()
    ends = {token.start[0] for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.string == "\n"}
    for number, line in enumerate(lines, 1):
        if number in ends and line.strip():
            indent = line[: len(line) - len(line.lstrip())]
            lines[number - 1] = f"{indent}# above {number}\n{line}  # at the end of {number}"
    return "\n".join(lines) + "\n"


@together("rule, example", EXAMPLES)
def test_an_example_has_a_repaired_form_exactly_if_the_repair_changes_it(rule: AnyRule, example: Example) -> None:
    after = repaired(example, unsafe=True)
    assert (after != example.source) == (example.fixed is not None)


@together("rule, example", REPAIRED)
def test_the_repair_gives_the_repaired_form(rule: AnyRule, example: Example) -> None:
    assert repaired(example) == example.fixed
    if example.unsafe:
        assert repaired(example, unsafe=False) != example.fixed


@pytest.mark.parametrize("unsafe", [False, True])
@together("rule, example", EXAMPLES)
def test_a_repair_parses_and_a_second_repair_changes_nothing(rule: AnyRule, example: Example, unsafe: bool) -> None:
    after = repaired(example, unsafe=unsafe)
    ast.parse(after)
    assert repaired(example, after, unsafe=unsafe) == after


@together("rule, example", REPAIRED)
def test_repairs_leave_no_repairable_finding(rule: AnyRule, example: Example) -> None:
    done = {Safety.SAFE, Safety.UNSAFE} if example.unsafe else {Safety.SAFE}
    left = check_texts({example.path: repaired(example)}, settings(example), CODES).findings
    assert [one for one in left if one.code == rule.code] == []
    assert [one for one in left if one.fix is not None and one.fix.safety in done] == []


@together("rule, example", REPAIRED)
def test_comments_are_kept(rule: AnyRule, example: Example) -> None:
    source = commented(example.source)
    after = repaired(example, source)
    assert len(comments(source)) >= 2
    assert comments(after) == comments(source)
    left = check_texts({example.path: after}, settings(example), CODES).findings
    assert [one for one in left if one.code == rule.code] == []


def backends(example: Example) -> list[str]:
    """Returns the backends on which the example can run; if it calls a library, the backend of that library."""
    own = [name for name in LIBRARIES if name in example.source]
    return [name for name in INSTALLED if own in ([], [name])]


def argument(parameter: inspect.Parameter) -> Any:
    if parameter.name == "n":
        return 3
    return ops.convert_to_tensor(np.array([[0.5, 1.5], [-2.5, 3.0]], "float32"))


def called(function: FunctionType, *first: Any) -> Any:
    parameters = [*inspect.signature(function).parameters.values()][len(first) :]
    return function(*first, *(argument(one) for one in parameters if one.default in (None, inspect.Parameter.empty)))


def values(source: str) -> Iterator[Any]:
    """Yields the values that a program binds to names, and the results of its functions and of its methods."""
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, "<example>", "exec"), space)
    for name, value in [*space.items()]:
        if isinstance(value, FunctionType) and value.__module__ == "example":
            yield called(value)
        elif isinstance(value, type) and value.__module__ == "example":
            yield from (called(one, value()) for one in vars(value).values() if isinstance(one, FunctionType))
        elif name != "__builtins__" and (ops.is_tensor(value) or isinstance(value, float | np.generic)):
            yield value


EXECUTABLE = [
    pytest.param(one.values[1], backend, id=f"{one.id}-{backend}")
    for one in REPAIRED
    for backend in backends(one.values[1])
]


@pytest.mark.parametrize("example, backend", EXECUTABLE)
def test_the_repaired_form_gives_the_same_numbers(example: Example, backend: str) -> None:
    with ops.use_backend(backend):
        before, after = [*values(example.source)], [*values(example.fixed or "")]
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            if ops.is_tensor(old) or isinstance(old, float | np.generic):
                np.testing.assert_allclose(np.asarray(old), ops.to_numpy(new), rtol=1e-6)


@pytest.mark.skipif(not is_installed("torch"), reason="some examples run PyTorch")
def test_most_examples_are_executed() -> None:
    neither = {one.id for one in REPAIRED} - {str(one.id).rpartition("-")[0] for one in EXECUTABLE}
    assert len(neither) <= 2  # one example calls jax, another one is a layer of keras
    assert {one.values[0].code for one in REPAIRED} >= {"EMB102", "EMB106", "EMB107", "EMB201", "EMB202"}
