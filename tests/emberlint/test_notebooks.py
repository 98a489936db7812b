"""Notebooks on the command line: findings by cell and line, repairs, comments, formats."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emberlint.cli import main
from tests.emberlint.notebooks import cell, notebook

FIRST = ["%matplotlib inline\n", "from emberharmony import ops\n"]
SECOND = ["x = ops.ones(3)\n", "y = x + 1\n", "ops.sin?\n", "z = -y"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with one notebook, and makes it the current folder."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "notes").mkdir()
    write(tmp_path, cell(FIRST), cell(["text\n"], kind="markdown"), cell(SECOND))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(project: Path, *cells: dict[str, object], **options: object) -> None:
    (project / "notes" / "n.ipynb").write_bytes(notebook(*cells, **options).encode())


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=stdin)


def places(result: Result) -> list[str]:
    return [" ".join(line.split(" ")[:3]) for line in result.stdout.splitlines()]


def test_notebooks_in_folders_are_checked(project: Path) -> None:
    for _ in range(2):  # the second answer comes from the cache
        result = run(".")
        assert places(result) == ["notes/n.ipynb:cell 3:2:5: EMB201", "notes/n.ipynb:cell 3:4:5: EMB201"]
        assert "2 findings in 1 file" in result.stderr
    assert places(run("--verbose", "notes/n.ipynb"))[0] == "notes/n.ipynb:cell 3:2:5: EMB201"
    (project / "notes" / ".ipynb_checkpoints").mkdir()
    (project / "notes" / ".ipynb_checkpoints" / "n.ipynb").write_text("")
    assert "in 1 file" in run(".").stderr
    assert run("--exclude", "**/*.ipynb").exit_code == 0


def test_the_lines_in_the_evidence_count_in_the_cell(project: Path) -> None:
    (reason,) = {one["reason"] for one in json.loads(run("--format", "json").stdout)["findings"][:1]}
    assert "(cell 3, line 1)" in reason
    for place in ("notes/n.ipynb:3:2", "notes/n.ipynb:cell 3:2"):
        shown = run("--explain-inference", place).stdout
        assert "x + 1: a tensor, tier B, the default float\n" in shown
        assert "(cell 3, line 1)" in shown
    assert "cell 2 has no Python code" in run("--explain-inference", "notes/n.ipynb:2:1").stderr


def test_structured_formats_name_the_cell_or_the_line_of_the_file(project: Path) -> None:
    lines = (project / "notes" / "n.ipynb").read_text().splitlines()
    for line in run("--format", "jsonl").stdout.splitlines():
        one = json.loads(line)
        assert (one["cell"], one["end_line"]) == (3, one["line"])
    (sarif,) = json.loads(run("--format", "sarif").stdout)["runs"]
    found = [one["locations"][0] for one in sarif["results"]]
    numbers = [one["physicalLocation"]["region"]["startLine"] for one in found]
    assert [lines[number - 1].strip() for number in numbers] == ['"y = x + 1\\n",', '"z = -y"']
    assert [one["logicalLocations"][0]["name"] for one in found] == ["cell 3, line 2", "cell 3, line 4"]
    assert "fixes" not in sarif["results"][0]
    github = run("--format", "github").stdout.splitlines()
    assert [line.split(",title")[0] for line in github] == [
        f"::error file=notes/n.ipynb,line={number},endLine={number}" for number in numbers
    ]


@pytest.mark.parametrize("options", [{}, {"indent": 4, "end": ""}, {"line_end": "\r\n"}], ids=str)
def test_a_repair_changes_only_the_lines_found(project: Path, options: dict[str, object]) -> None:
    cells = [cell(FIRST), cell(["# é\n"], kind="markdown"), cell(SECOND)]
    write(project, *cells, **options)
    before = (project / "notes" / "n.ipynb").read_bytes()
    shown = run("--diff", ".")
    assert shown.exit_code == 1
    assert '+ "y = ops.add(x, 1)\\n",' in " ".join(shown.stdout.split())
    assert (project / "notes" / "n.ipynb").read_bytes() == before
    assert run("fix").exit_code == 0
    after = before.replace(b"x + 1", b"ops.add(x, 1)").replace(b"-y", b"ops.negative(y)")
    assert (project / "notes" / "n.ipynb").read_bytes() == after
    assert run("fix").exit_code == 0
    assert (project / "notes" / "n.ipynb").read_bytes() == after


def test_a_repair_adds_the_import_to_the_first_cell(project: Path) -> None:
    write(project, cell(["%%time\n", "import torch\n", "x = torch.ones(3)\n"]), cell(["y = torch.sin(x)"]))
    run("fix", "--unsafe-fixes")
    sources = [one["source"] for one in json.loads((project / "notes" / "n.ipynb").read_text())["cells"]]
    assert sources[0][0] == "%%time\n"
    assert "from emberharmony import ops\n" in sources[0]
    assert sources[1] == ["y = ops.sin(x)"]


def test_comments_silence_findings_in_cells(project: Path) -> None:
    write(
        project, cell(FIRST), cell(["x = ops.ones(3) + 1  # noqa: EMB201\n", "y = x + 1  # emberlint: ignore[EMB201]"])
    )
    assert run(".").exit_code == 0
    write(project, cell(["x = 1\n", "y = x + 1  # noqa: EMB201\n"]))
    assert places(run(".")) == ["notes/n.ipynb:cell 1:2:12: EMB901"]


@pytest.mark.parametrize(
    "content, place, message",
    [
        (b"", "1:1", "not a notebook: Expecting '{'"),
        (b"\xff\xfe", "1:1", "invalid or missing encoding"),
        (notebook(cell(["x = 1\n"]), cell(["y = (\n"])).encode(), "cell 2:1:5", "'(' was never closed"),
        (notebook(cell(["x = 1\n"]), cell(["\n", "def\n"])).encode(), "cell 2:2:4", "invalid syntax"),
    ],
)
def test_a_broken_notebook_is_a_finding(project: Path, content: bytes, place: str, message: str) -> None:
    (project / "notes" / "n.ipynb").write_bytes(content)
    for words in ((".",), ("fix", "."), ("--fix", "--unsafe-fixes", "notes/n.ipynb")):
        result = run(*words)
        assert result.exit_code == 1
        assert f"notes/n.ipynb:{place}: EMB000 syntax-error: cannot be read as Python: {message}" in result.stdout
    assert (project / "notes" / "n.ipynb").read_bytes() == content


def test_a_notebook_on_standard_input(project: Path) -> None:
    content = notebook(cell(FIRST), cell(SECOND))
    named = ["-", "--stdin-filename", "notes/n.ipynb"]
    assert places(run(*named, stdin=content))[0] == "notes/n.ipynb:cell 2:2:5: EMB201"
    fixed = run("fix", *named, stdin=content)
    assert fixed.stdout == content.replace("x + 1", "ops.add(x, 1)").replace("-y", "ops.negative(y)")
    assert "EMB000" in run(*named, stdin="{").stdout


def test_a_baseline_and_statistics_count_findings_in_notebooks(project: Path) -> None:
    assert run("--baseline", "accepted.json", "--baseline-update").exit_code == 0
    content = (project / "notes" / "n.ipynb").read_text()
    (project / "notes" / "n.ipynb").write_text(content.replace("cells", "cells", 1).replace("[1, 2]", "[]"))
    assert run("--baseline", "accepted.json").exit_code == 0
    assert "2 EMB201" in run("--statistics", "--exit-zero").stdout


def test_inventory_names_the_cell(project: Path) -> None:
    write(project, cell(["%matplotlib inline\n", "import numpy as np\n"]), cell(["\n", "x = np.sin(1.0)\n"]))
    assert "notes/n.ipynb:cell 2:2" in run("inventory").stdout


@pytest.mark.fresh_process
def test_diff_base_compares_the_lines_of_the_file(project: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "trunk")
    git("add", "notes")
    git("commit", "-q", "-m", "start")
    write(project, cell(FIRST), cell(["text\n"], kind="markdown"), cell([*SECOND[:3], "z = abs(y)"]))
    assert places(run("--diff-base", "HEAD")) == ["notes/n.ipynb:cell 3:4:5: EMB201"]
