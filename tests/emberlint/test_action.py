"""The GitHub action: its steps, run by the shell that it names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2] / "emberlint"
yaml = pytest.importorskip("yaml")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, CHECK = ACTION["runs"]["steps"]


def environment(step: dict[str, Any], **given: str) -> dict[str, str]:
    """Returns the variables of a step, as the runner fills in its expressions."""
    values = {f"inputs.{name}": given.get(name, one["default"]) for name, one in ACTION["inputs"].items()}
    values["github.action_path"] = str(ROOT)
    return {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: values[match[1]], text) for name, text in step["env"].items()
    }


def test_the_action_installs_the_linter_beside_it() -> None:
    assert INSTALL["run"] == 'python -m pip install --quiet "$SOURCE"'
    assert (Path(environment(INSTALL)["SOURCE"]) / "pyproject.toml").is_file()
    assert {one["shell"] for one in (INSTALL, CHECK)} == {"bash"}


@pytest.mark.fresh_process
@pytest.mark.skipif(shutil.which("bash") is None, reason="the action runs in bash")
def test_the_check_annotates_the_lines(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "m.py").write_text("import numpy\n\nx = numpy.sin(1.0)\n")
    (tmp_path / "pyproject.toml").write_text("")

    def run(**given: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
        python = {"PYTHONPATH": os.pathsep.join(sys.path)}
        variables = {**os.environ, **python, **environment(CHECK, **given), "PATH": path}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]]  # as the runner calls it
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 1
    assert [line.split(",title")[0] for line in done.stdout.splitlines()] == [
        "::error file=library/m.py,line=1,endLine=1,col=1,endColumn=13",
        "::error file=library/m.py,line=3,endLine=3,col=5,endColumn=14",
    ]
    assert run(paths="library", options="--ignore EMB1 --min-tier A").returncode == 0
