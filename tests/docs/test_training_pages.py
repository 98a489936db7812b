"""The pages on training: their examples run on every backend, and the tables of `autocast` are complete."""

import doctest
from pathlib import Path

import pytest

from emberharmony import ops  # noqa: F401  (declares the ops)
from emberharmony.core.registry import OPS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("training.md", "porting.md", "models.md", "pretrained.md", "switching.md", "layers.md", "observing.md"),
    *("differences.md", "distributed.md", "libraries.md", "faq.md"),
)
FOLDER = Path(__file__).parents[1] / "examples" / "models" / "gpt2"
"""What the page on models calls `folder`."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_give_the_results_that_they_show(page: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("models", "pretrained"):
        monkeypatch.syspath_prepend(DOCS.parent / "examples" / folder)
    text = (DOCS / page).read_text(encoding="utf-8")
    names = {"folder": str(FOLDER), "__name__": "page"}
    example = doctest.DocTestParser().get_doctest(text, names, page, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)


@pytest.mark.parametrize(("head", "word"), [("half precision", "half"), ("float32", "float32")])
def test_the_table_of_autocast_has_each_op(head: str, word: str) -> None:
    names = [name for name, spec in OPS.items() if spec.facts.autocast == word]
    text = (DOCS / "training.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {head} |"))
    assert row == f"| {head} | {', '.join(f'`{name}`' for name in sorted(names))} |"
