"""Runs the examples of docs/weights.md and of the docstrings of `emberharmony.io` on every backend."""

import doctest
import inspect
from pathlib import Path

import pytest

from emberharmony import io

PAGE = Path(__file__).parents[2] / "docs" / "weights.md"
WITH_EXAMPLES = [name for name in io.__all__ if ">>>" in (inspect.getdoc(getattr(io, name)) or "")]


def require_results(text: str, name: str, least: int) -> None:
    """Runs the examples in a text, and checks that they give the results that they show."""
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "page"}, name, name, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted > least
    assert not failures, "".join(lines)


def test_the_examples_of_the_page_give_the_results_that_they_show(backend: str) -> None:
    require_results(PAGE.read_text(encoding="utf-8").replace("```", ""), PAGE.name, 10)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_docstring_give_the_results_that_they_show(backend: str, name: str) -> None:
    require_results(inspect.getdoc(getattr(io, name)) or "", name, 0)
