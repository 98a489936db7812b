"""Runs the examples of docs/weights.md on every backend."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "weights.md"


def test_the_examples_of_the_page_give_the_results_that_they_show(backend: str) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "page"}, PAGE.name, str(PAGE), 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted > 10
    assert not failures, "".join(lines)
