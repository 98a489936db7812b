"""The examples of docs/recipes.md run on every backend, each section if the packages that it imports are installed."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
SECTIONS = {section.partition("\n")[0]: section for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]}
RUNNING = [title for title, section in SECTIONS.items() if ">>>" in section]


@pytest.mark.parametrize("title", RUNNING)
def test_the_examples_give_the_results_that_they_show(
    title: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = SECTIONS[title]
    for package in re.findall(r"^>>> (?:from|import) (\w+)", section, re.MULTILINE):
        if package != "einops_backend":
            pytest.importorskip(package)
    monkeypatch.syspath_prepend(ROOT / "examples" / "adapters")
    example = doctest.DocTestParser().get_doctest(section, {"__name__": "page"}, title, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)


def test_every_link_of_the_table_leads_to_a_section() -> None:
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in SECTIONS}
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) == anchors


def test_the_page_names_every_adapter() -> None:
    named = set(re.findall(r"examples/adapters/(\w+\.py)", TEXT))
    assert named == {path.name for path in (ROOT / "examples" / "adapters").glob("*.py")}
