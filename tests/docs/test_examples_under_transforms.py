"""The examples of three pages run in checked mode, and their scalar functions have second derivatives, everywhere."""

import doctest
import functools
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.errors import EmberError

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
ROW = re.compile(r"\| `(.+?)` \| `(.+?)` \| ?.*? ?\|")


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


SECTIONS = {"gradients.md": _page("gradients.md").replace("```", "")} | {
    section.partition("\n")[0]: section
    for section in re.split(r"^## ", _page("recipes.md"), flags=re.MULTILINE)[1:]
    if ">>>" in section and "sklearn" not in section
}


@pytest.fixture
def example(title: str, monkeypatch: pytest.MonkeyPatch, own_ops: None) -> doctest.DocTest:
    section = SECTIONS[title]
    for package in re.findall(r"^>>> (?:from|import) (\w+)", section, re.MULTILINE):
        if package != "einops_backend":
            pytest.importorskip(package)
    monkeypatch.syspath_prepend(ROOT / "examples" / "adapters")
    return doctest.DocTestParser().get_doctest(section, {"__name__": "page"}, title, None, 0)


def _run(example: doctest.DocTest) -> None:
    lines: list[str] = []
    failures, _ = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(example, out=lines.append)
    assert not failures, "".join(lines)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_examples_give_their_results_in_checked_mode(example: doctest.DocTest, title: str, quick: str) -> None:
    with ops.checked():
        _run(example)


@pytest.mark.parametrize("title", [title for title, section in SECTIONS.items() if "ops.grad(" in section])
def test_the_functions_that_the_examples_differentiate_have_a_hessian(
    example: doctest.DocTest, title: str, quick: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grad, failed, count = ops.grad, [], 0

    def twice(fn: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
        first = grad(fn, argnums, has_aux)
        if argnums != 0 or has_aux:
            return first

        @functools.wraps(fn)
        def both(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            found = first(*args, **kwargs)  # what the example shows, perhaps an error
            count += 1
            try:
                ops.hessian(fn)(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  (any error is one too many)
                failed.append(repr(error))
            return found

        return both

    monkeypatch.setattr(ops, "grad", twice)
    _run(example)
    assert count
    assert not failed


LEFT_OUT = ("x.copy()", "x.size", "x[x > 0]")
"""Expressions in which the tensors of the libraries differ, also outside of transforms."""


def _rows() -> dict[str, Any]:
    """Returns the expressions of the page "Coming from NumPy" that need no NumPy."""
    found: dict[str, Any] = {}
    for match in map(ROW.fullmatch, _page("from_numpy.md").splitlines()):
        if match:
            for expression in match.groups():
                text = expression.replace(r"\|", "|")
                if text not in LEFT_OUT and not re.search(r"\b(np|random|default_rng|changed)\b", text):
                    found[text] = None
    return found


@functools.cache
def _derivatives(backend: str) -> dict[str, Any]:
    """Returns gradient in checked mode, and Hessian, by expression; in the place of an error stands its class."""
    code = re.search(r"```python\n(.*?)```", _page("from_numpy.md"), re.DOTALL)
    assert code is not None
    given: dict[str, Any] = {}
    exec(code[1], given)
    results: dict[str, Any] = {}
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {name: ops.array(x) for name, x in given.items() if isinstance(x, np.ndarray)}
        for expression in _rows():

            def scalar(x: Any, expression: str = expression) -> Any:
                found = eval(expression, {"ops": ops, **names, "x": x})
                return ops.sum(ops.square(ops.cast(found[0] if isinstance(found, tuple | list) else found, "float32")))

            with ops.checked():
                results[expression, "checked"] = _outcome(lambda: ops.grad(scalar)(names["x"]))
            results[expression, "hessian"] = _outcome(lambda: ops.hessian(scalar)(names["x"]))
    return results


def _outcome(run: Any) -> Any:
    try:
        return ops.to_numpy(run())
    except (EmberError, TypeError, ValueError, AttributeError, SyntaxError, NameError) as error:
        return type(error).__name__


def test_the_expressions_for_numpy_have_the_derivatives_of_numpy(backend: str) -> None:
    wanted, wrong = _derivatives("numpy"), []
    for key, found in _derivatives(backend).items():
        other = wanted[key]
        if isinstance(found, str) or isinstance(other, str):
            if str(found) != str(other):
                wrong.append((key, found, other))
        elif not np.allclose(found, other, rtol=1e-3, atol=1e-3, equal_nan=True):
            wrong.append((key, found.tolist(), other.tolist()))
    assert sum(not isinstance(x, str) for x in wanted.values()) > 60
    assert not wrong
