"""Runs the examples in the docstrings of all ops on every backend, and looks for the page of each category."""

import doctest
from fnmatch import fnmatchcase
from pathlib import Path

from emberharmony import ops
from emberharmony.core.registry import OPS
from tests.together import together

PARSER = doctest.DocTestParser()
DOCUMENTED = sorted(name for name, spec in OPS.items() if ">>>" in (spec.declared.__doc__ or ""))


@together("name", DOCUMENTED)
def test_the_examples_of_a_docstring_give_the_results_that_they_show(name: str, backend: str) -> None:
    text = OPS[name].declared.__doc__ or ""
    example = PARSER.get_doctest(text, {"ops": ops}, name, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)


def test_the_index_shows_the_page_of_every_category_once() -> None:
    index = (Path(__file__).parents[1] / "docs" / "index.md").read_text(encoding="utf-8")
    patterns = [line for line in index.splitlines() if line.startswith("api/")]
    for category in sorted({spec.category for spec in OPS.values()}):
        assert sum(fnmatchcase(f"api/{category}", pattern) for pattern in patterns) == 1, category
