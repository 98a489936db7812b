"""The workflow files, issue templates and packages: they parse, and name only what exists."""

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from emberharmony import __version__

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workflow_uses_only_targets_and_extras_that_exist(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert commands
    for command in commands:
        assert set(re.findall(r"\bmake ([a-z-]+)", command)) <= targets
        for extra in re.findall(r"\.\[(\w+)\]", command):
            assert f"\n{extra} = [" in project


def test_the_workflow_covers_every_operating_system_and_python_version() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    for word in ("ubuntu", "macos", "windows", "3.11", "3.12", "3.13"):
        assert word in text


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_an_issue_template_asks_for_something(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    template = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert template["name"]
    assert any(field.get("validations", {}).get("required") for field in template["body"])
    commands = set(re.findall(r"`(ember\w+) (\w+)", path.read_text(encoding="utf-8")))
    known = {name.stem for name in (ROOT / "emberharmony" / "cli").glob("*.py")} | {"explain"}
    assert {command for _, command in commands} <= known


def test_the_citation_names_the_version() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__


@pytest.mark.slow
def test_wheels_and_source_archives_hold_what_they_should(tmp_path: Path) -> None:
    """Downloads the build backend, as every build of a wheel does."""
    pytest.importorskip("build")
    pytest.importorskip("twine")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "dist.py"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if line.endswith(" KiB")]) == 4


def test_what_is_wrong_with_a_wheel_is_found(tmp_path: Path) -> None:
    specification = importlib.util.spec_from_file_location("dist", ROOT / "tools" / "dist.py")
    assert specification is not None
    assert specification.loader is not None
    dist = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(dist)
    path = tmp_path / "emberharmony-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("emberharmony/__pycache__/a.pyc", "")
        wheel.writestr("tests/test_a.py", "")
        wheel.writestr("emberharmony-1.0.dist-info/METADATA", "Name: emberharmony\nVersion: 1.0\n\n")
    faults = dist.faults_of_wheel(path)
    for fault in (
        "lacks the field Summary",
        "lacks emberharmony/py.typed",
        "holds tests/test_a.py",
        "no long description",
    ):
        assert any(fault in found for found in faults), fault
