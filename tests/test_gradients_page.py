"""Runs the examples of docs/gradients.md on every backend."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "gradients.md"
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.usefixtures("own_ops")
def test_the_examples_of_the_page_give_the_results_that_they_show(backend: str) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "page"}, PAGE.name, str(PAGE), 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(example, out=lines.append)
    assert attempted > 20
    assert not failures, "".join(lines)
