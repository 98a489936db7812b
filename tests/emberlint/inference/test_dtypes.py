"""Floating dtypes that are certain, and the operators that are safe by them."""

import ast

import pytest

from emberlint.config.settings import Settings
from emberlint.inference import FileInference
from emberlint.source.source_file import SourceFile

START = """
import functools
import math
import operator
import numpy as np
from emberharmony import nn, ops

x, y = ops.ones((2, 2)), ops.random.normal((2, 2))
double = ops.zeros((2, 2), dtype="float64")
half = ops.cast(x, "bfloat16")
whole, truth = ops.arange(2), ops.greater(x, 0)
p = nn.Parameter(x)
n, rate = 3, 0.1

def twice(value):
    return 2 * value

def load():
    return ops.array([[1.0, -2.0]]), 4

def given(a: float, flag: bool, unknown):
    {inside}

def differ(value):
    return value * 2

differ(x), differ(whole)
"""


def is_safe(expression: str) -> bool:
    """Returns whether the last operator of a program is safe; the expression stands in a function, if it uses one."""
    inside = f"return {expression}" if any(f"{{{name}}}" in expression for name in ("a", "flag", "unknown")) else "pass"
    text = START.replace("{inside}", inside.replace("{", "").replace("}", ""))
    if inside == "pass":
        text += f"({expression})\n"
    file = SourceFile("library/module.py", text, Settings())
    inference = FileInference(file)
    places = [node for node in ast.walk(file.tree) if isinstance(node, ast.Expr | ast.Return) and node.value]
    wanted = expression.replace("{", "").replace("}", "")
    [node] = [one.value for one in places if one.value is not None and ast.unparse(one.value) == wanted]
    return inference.is_safe_operator(node)


@pytest.mark.parametrize(
    "expression",
    [
        *("x + y", "x - 1", "2 * x", "x / rate", "x ** 2", "x @ y", "-x", "abs(x)", "x < y", "x == 0.5", "x != y"),
        *("double * double", "half + half", "x + 0.1 * y", "x[0] * 2", "x - ops.mean(y, axis=0)", "ops.exp(x) * y"),
        *("twice(x) + y", "load()[0] * 0.5", "x / math.sqrt(n)", "x * x.shape[0]", "x / len('abc')", "math.pi * x"),
        *("ops.stack([x, y]) - 1", "ops.reshape(x, (n, 1)) * 2", "x + ops.array([[1.0, 2.0], [3, 4]])"),
        *("ops.grad(twice)(x) * rate", "y - ops.value_and_grad(twice)(y)[1]", "x * {a}", "x + max(x, y)"),
        *("ops.sum(double, axis=0, keepdims=True) / double", "ops.full_like(x, 2) * x"),
    ],
)
def test_operators_on_one_floating_dtype_are_safe(expression: str) -> None:
    assert is_safe(expression)


@pytest.mark.parametrize(
    "expression",
    [
        *("x * whole", "whole / 2", "whole * whole", "x + double", "x - truth", "~truth", "x // y", "x % 2"),
        *("half @ half", "x * p", "x @ p", "p + p", "x * True", "x - {flag}", "x * {unknown}", "{unknown} + 1"),
        *("x * np.float64(2)", "x + np.ones(2)", "x & y", "0 < x < 1", "x.astype('int32') * 2", "differ(x) * 2"),
        *("ops.ones(2, 'int64') + 1", "ops.array([1, 2]) * 2", "ops.cast(x, 'int32') + 1", "ops.argmax(x) + 1"),
        *("ops.grad(twice, argnums=0)(x) * 2", "ops.where(truth, x, {unknown}) * 2", "ops.stack([x, double]) * 2"),
        *("ops.random.gamma({unknown}) * 2", "(x > 0) * 2", "x + [1.0]", "ops.ones(2, dtype={unknown}) * 2"),
        *("functools.reduce(ops.add, [x, whole]) * 2", "[*map(ops.sin, [whole])][0] * 2", "operator.add(x, whole) * 2"),
    ],
)
def test_other_operators_are_not(expression: str) -> None:
    assert not is_safe(expression)


def test_a_name_with_two_dtypes_has_none() -> None:
    for second, safe in (("ops.zeros(2)", True), ("ops.arange(2)", False), ("load()", False)):
        text = f"from emberharmony import ops\nx = ops.ones(2)\nif load:\n    x = {second}\nx * 2\n"
        file = SourceFile("library/module.py", text, Settings())
        last = file.tree.body[-1]
        assert isinstance(last, ast.Expr)
        assert FileInference(file).is_safe_operator(last.value) is safe, second
