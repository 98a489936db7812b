"""The notebooks of docs/tutorials run from top to bottom, and are committed without results."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Any:
    return json.loads(request.param.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.fresh_process
@pytest.mark.filterwarnings("ignore")  # the clients of Jupyter warn about themselves
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel draws into the notebook
    found = nbformat.read(path, nbformat.current_nbformat)
    nbformat.validate(found)
    nbclient.NotebookClient(found, timeout=300, kernel_name="python3").execute()
    raised = [cell.source for cell in found.cells for each in cell.get("outputs", ()) if each.output_type == "error"]
    assert len(raised) == sum("raises-exception" in cell.metadata.get("tags", ()) for cell in found.cells)


def test_there_are_three_notebooks_and_each_leads_to_the_next() -> None:
    assert len(NOTEBOOKS) >= 3
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    texts = {path.name: path.read_text(encoding="utf-8") for path in NOTEBOOKS}
    for path in NOTEBOOKS:
        assert f"tutorials/{path.stem}" in page
    linked = {link for text in texts.values() for link in re.findall(r"\]\((\w+\.ipynb)\)", text)}
    assert linked <= texts.keys()
    assert len(linked) == len(NOTEBOOKS) - 1


def test_a_notebook_is_committed_without_results(notebook: Any) -> None:
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_the_code_of_a_notebook_is_formatted_and_uses_public_names(notebook: Any) -> None:
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert notebook["cells"][0]["source"][0].startswith("# ")
    assert not re.search(r"emberharmony\.(?:core|backend|transforms|rules|cli)\b", "\n".join(code))
    for cell in code:
        assert all(len(line) <= 120 for line in cell.splitlines())
        compile(cell, "cell", "exec")
