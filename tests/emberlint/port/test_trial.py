"""`emberlint port --check-run`: the tests run before and after, in copies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emberlint.cli import main
from emberlint.config.errors import UsageError
from emberlint.port.trial import run_trial

COMMAND = f"{sys.executable} -m pytest -q -p no:cacheprovider"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project whose second test ends otherwise once the code is ported, and makes it the current folder."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "library.py").write_text(
        "import numpy as np\n\n\ndef f(x):\n    return np.sin(x)\n\n\ndef g(x):\n    return round(np.sum(x), 1)\n"
    )
    (tmp_path / "test_library.py").write_text(
        "import numpy as np\nfrom library import f, g\n\n\n"
        "def test_f():\n    assert f(np.zeros(2))[0] == 0\n\n\n"
        "def test_g():\n    assert g(np.ones(2)) == 2\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["port", "--check-run", COMMAND, *words])


@pytest.mark.slow
def test_the_tests_that_part_are_listed_and_the_project_is_only_ported(project: Path) -> None:
    files = sorted(one.name for one in project.iterdir())
    result = run("library.py")
    assert result.exit_code == 1
    assert "before: 2 passed" in result.stdout
    assert "numpy: test_library::test_g: passed before, failure after" in result.stdout
    assert "test_f" not in result.stdout
    assert "ops.sin(x)" in (project / "library.py").read_text()
    assert sorted(one.name for one in project.iterdir()) == files


@pytest.mark.slow
def test_a_check_writes_nothing_and_reports_as_json_and_html(project: Path) -> None:
    before = (project / "library.py").read_text()
    document = json.loads(run("--check", "--format", "json", "library.py").stdout)["check-run"]
    assert document["before"]["outcomes"] == {"test_library::test_f": "passed", "test_library::test_g": "passed"}
    assert [one["test"] for one in document["parted"]] == ["test_library::test_g"]
    assert "<td>test_library::test_g</td>" in run("--check", "--format", "html", "library.py").stdout
    assert (project / "library.py").read_text() == before


def test_a_command_without_tests_parts_by_its_exit_status(project: Path) -> None:
    script = "import pathlib, sys; sys.exit('ops' in pathlib.Path('library.py').read_text())"
    found = run_trial(f'{sys.executable} -c "{script}"', project, (), {"library.py": "import ops\n"}, ["numpy"])
    assert [(one.test, one.before, one.after) for one in found.changed_outcomes] == [
        ("the command", "exit status 0", "exit status 1")
    ]
    assert "import numpy" in (project / "library.py").read_text()


def test_a_backend_that_is_not_installed_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlint.port.trial.find_spec", lambda name: None if name == "mlx" else name)
    found = run_trial(f"{sys.executable} -c pass", project, (), {}, ["numpy", "mlx"])
    assert list(found.after) == ["numpy"]
    assert found.absent == ("mlx",)
    assert found.changed_outcomes == ()


@pytest.mark.parametrize("command", ["no-such-command-here", "", "'"])
def test_a_command_that_cannot_start_is_a_usage_error(project: Path, command: str) -> None:
    with pytest.raises(UsageError, match="--check-run"):
        run_trial(command, project, (), {}, ["numpy"])


def test_a_backend_without_a_command_is_a_usage_error(project: Path) -> None:
    result = CliRunner().invoke(main, ["port", "--backend", "torch", "library.py"])
    assert result.exit_code == 2
    assert "--check-run" in result.output


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interruption_ends_the_command_and_leaves_the_project(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = (project / "library.py").read_text()
    temporary, started = tmp_path_factory.mktemp("copies"), tmp_path_factory.mktemp("marks") / "pid"
    script = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    words = [sys.executable, "-m", "emberlint", "port", "--check-run", f'{sys.executable} -c "{script}"', "library.py"]
    process = subprocess.Popen(words, env=os.environ | {"TMPDIR": str(temporary)}, stderr=subprocess.PIPE)
    while not (started.exists() and started.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode not in (0, None)
    assert b"Traceback" not in errors
    assert [*temporary.iterdir()] == []
    assert (project / "library.py").read_text() == before
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
