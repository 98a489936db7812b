"""The formats `junit` and `gitlab`, and projects inside of a project."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emberlint.cli import main
from emberlint.fast_path import print_cached_report

BAD = "import numpy as np\n\nx = np.sin(1.0)\n"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["check", *words])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with a project inside, and makes it the current folder."""
    (tmp_path / "pyproject.toml").write_text("[tool.emberlint]\nignore = ['EMB102']\n")
    (tmp_path / "a.py").write_text(BAD)
    inner = tmp_path / "inner"
    (inner / "library" / "skipped").mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.emberlint]\nselect = ['EMB102']\nexclude = ['library/skipped']\n")
    for path in ("library/b.py", "library/skipped/c.py"):
        (inner / path).write_text(BAD)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "pyproject.toml").write_text("[project]\nname = 'plain'\n")
    (tmp_path / "plain" / "d.py").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(result: Result) -> list[str]:
    return [" ".join(one.split(" ")[:2]) for one in result.stdout.splitlines()]


def test_a_project_inside_of_another_has_its_own_settings(project: Path) -> None:
    assert places(run()) == ["a.py:1:1: EMB101", "plain/d.py:1:1: EMB101", "inner/library/b.py:3:5: EMB102"]
    assert places(run("inner")) == ["inner/library/b.py:3:5: EMB102"]
    assert places(run("a.py", "inner/library/skipped/c.py")) == [
        "a.py:1:1: EMB101",
        "inner/library/skipped/c.py:3:5: EMB102",
    ]
    assert places(run("--force-exclude", "a.py", "inner/library/skipped/c.py")) == ["a.py:1:1: EMB101"]
    assert places(run("--select", "EMB101")) == [
        *(f"{one}:1:1: EMB101" for one in ("a.py", "plain/d.py", "inner/library/b.py"))
    ]
    assert print_cached_report(["check"]) is None  # which knows one project only


def test_repairs_of_a_project_inside_of_another_follow_its_settings(project: Path) -> None:
    assert run("--fix", "--unsafe-fixes").exit_code == 1
    assert "np.sin" in (project / "a.py").read_text()
    assert "ops.sin" in (project / "inner" / "library" / "b.py").read_text()


def test_gitlab_has_fingerprints_that_do_not_move_with_lines(project: Path) -> None:
    (project / "a.py").write_text(BAD + "import numpy as np\n")
    before = json.loads(run("--format", "gitlab", "a.py").stdout)
    assert [one["location"]["lines"] for one in before] == [{"begin": 1, "end": 1}, {"begin": 4, "end": 4}]
    assert before[0]["location"]["path"] == "a.py"
    assert (before[0]["check_name"], before[0]["severity"]) == ("backend-import", "major")
    (project / "a.py").write_text("y = 1\n" + BAD + "import numpy as np\n")
    after = json.loads(run("--format", "gitlab", "a.py").stdout)
    assert [one["fingerprint"] for one in before] == [one["fingerprint"] for one in after]
    assert len({one["fingerprint"] for one in before}) == 2
    (project / "a.py").write_text("x = 1\n")
    assert json.loads(run("--format", "gitlab", "a.py").stdout) == []


def test_junit_has_a_failure_for_each_finding(project: Path) -> None:
    (project / "a.py").write_text("import numpy as np  # <&\x0c\n")
    root = ElementTree.fromstring(run("--format", "junit").stdout)
    assert (root.get("tests"), root.get("failures")) == ("3", "3")
    assert [one.get("name") for one in root] == ["a.py", "plain/d.py", "inner/library/b.py"]
    (case,) = root[0]
    assert (case.get("classname"), case.get("line")) == ("a.py", "1")
    assert case[0].get("message", "").startswith("import of numpy")
    assert case[0].text == "a.py:1:1"
    (project / "a.py").write_text("x = 1\n")
    empty = ElementTree.fromstring(run("--format", "junit", "a.py").stdout)
    assert (empty.get("tests"), empty.get("failures")) == ("1", "0")
