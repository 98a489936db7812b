"""Signatures: how they are shown, and when a definition differs from its declaration."""

import ast

import pytest

from emberlint.parity.signature import Signature, signature, signature_difference, signature_text


def of(arguments: str) -> Signature:
    function = ast.parse(f"def f({arguments}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    return signature(function.args)


@pytest.mark.parametrize(
    "arguments", ["", "x", "x, y=1", "x, /, y", "x, *, axis=None", "*xs, axis=0", "x, /", "x, **kw"]
)
def test_a_signature_is_shown_as_written(arguments: str) -> None:
    assert signature_text(of(arguments)) == f"({arguments})"


def test_a_method_is_shown_without_self() -> None:
    function = ast.parse("def f(self, x): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert signature_text(signature(function.args, bound=True)) == "(x)"


@pytest.mark.parametrize(
    ("declared", "defined"),
    [
        ("x", "x"),
        ("x, axis=None", "x, axis=None"),
        ("x, eps=0", "x, eps=0.0"),
        ("x, dtype=float32", "x, dtype=torch.float32"),
        ("x, *, axis=None", "x, axis=None"),  # it accepts more calls than are declared
        ("x, axis=None", "*args, **kwargs"),
        ("x, *, axis=None", "x, **kwargs"),
        ("*xs", "*arrays"),
        ("*args, **kwargs", "x, y"),  # it passes all arguments on, so any definition fits
        ("x, axis=-1", "x, axis=-1"),
    ],
)
def test_a_definition_that_accepts_every_declared_call_does_not_differ(declared: str, defined: str) -> None:
    assert signature_difference(of(declared), of(defined)) is None


@pytest.mark.parametrize(
    ("declared", "defined", "how"),
    [
        ("x, axis=None", "x", "lacks axis"),
        ("x", "x, out=None", "adds out"),
        ("x, axis=None", "x, dim=None", "names differ: dim for axis"),
        ("x, y", "y, x", "the order of the parameters differs"),
        ("x, axis=None", "x, axis", "axis has no default"),
        ("x, axis", "x, axis=0", "axis has a default, 0"),
        ("x, axis=None", "x, axis=0", "axis is 0 by default, not None"),
        ("x, axis=None", "x, *, axis=None", "axis is keyword-only"),
        ("x", "x, /", "x is positional-only"),
        ("*xs", "xs", "lacks *args"),
    ],
)
def test_a_difference_is_described(declared: str, defined: str, how: str) -> None:
    assert signature_difference(of(declared), of(defined)) == how
