"""The workflow files, issue templates and packages: they parse, and name only what exists."""

import ast
import importlib.util
import itertools
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import pytest

from emberharmony import __version__
from emberharmony.cli.main import command as emberharmony

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


def sessions() -> dict[str, list[str]]:
    """Returns the sessions of noxfile.py, each with the values of its parameter."""
    found = {}
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and "nox.session" in str(list(map(ast.unparse, node.decorator_list))):
            values = [one for one in node.decorator_list if "parametrize" in ast.unparse(one)]
            found[node.name] = ast.literal_eval(values[0].args[1]) if values else []  # type: ignore[attr-defined]
    return found


def combinations(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the values of `matrix` in each run of a job."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = matrix.pop("include", [])
    product = [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]
    return [*(one for one in product if one or not included), *included]


def lines_of(job: dict[str, Any], matrix: dict[str, Any]) -> list[str]:
    """Returns the commands of a job; an expression without a value is an error."""
    text = "\n".join(step["run"] for step in job["steps"] if "run" in step)
    env = {**job.get("env", {}), **{k: v for step in job["steps"] for k, v in step.get("env", {}).items()}}
    for name, value in env.items():
        text = re.sub(rf"\$\{{?{name}\b\}}?", str(value), text)
    text = re.sub(r"\$\{\{ *matrix\.(\w+) *\}\}", lambda found: str(matrix[found[1]]), text)
    return text.splitlines()


def check_options(words: list[str]) -> None:
    """Checks that a subcommand of `emberharmony` has the options that follow it."""
    assert isinstance(emberharmony, click.Group)
    known = {option for part in emberharmony.commands[words[0]].params for option in part.opts}
    assert {word for word in words[1:] if word.startswith("--")} <= known


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_commands_of_a_workflow_exist_for_each_entry_of_its_matrix(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        for line in itertools.chain.from_iterable(lines_of(job, matrix) for matrix in combinations(job)):
            for name in re.findall(r"(?:^| )((?:utils|tools|tests|docs|benchmarks)/[\w./-]+)", line):
                assert (ROOT / name).exists(), line
            if line.startswith("emberharmony"):
                check_options(shlex.split(line)[1:])
            if line.startswith("nox"):
                name, _, rest = shlex.split(line)[2].partition("(")
                assert name in sessions(), line
                assert not rest or re.findall("'(.*)'", rest)[0] in sessions()[name], line


def test_the_matrix_of_the_documentation_is_that_of_nox_and_its_floors_those_of_the_package() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    matrix = page.partition("### Where the tests run")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", matrix, re.MULTILINE)) == sessions().keys()
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    floors = dict(re.findall(r"^\| (\w+)(?:, for the \w+)? \| ([\d.]+) \|", page, re.MULTILINE))
    assert floors.keys() == {"NumPy", "PyTorch", "MLX", "SciPy", "hypothesis"}
    for name, floor in floors.items():
        package = {"PyTorch": "torch"}.get(name, name.lower())
        assert set(re.findall(rf'"{package}(?:\[\w+\])?>=([\d.]+)', project)) == {floor}, name


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
