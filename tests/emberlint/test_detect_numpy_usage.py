"""The command `utils/detect_numpy_usage.py`: its switches, its exit statuses, and the files it skips."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "utils" / "detect_numpy_usage.py"
NUMPY, CONVERSION, PRECISION, OPERATORS = "EMB101", "EMB103", "EMB204", "EMB201"
BAD = """\
import numpy as np
from emberharmony import ops

x = ops.sin(np.asarray([1.0]))
y = x + 1
z = float(y)
"""
Main = Callable[[list[str]], int]


@pytest.fixture(scope="module")
def main() -> Main:
    spec = importlib.util.spec_from_file_location("detect_numpy_usage", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main  # type: ignore[no-any-return]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with one bad file, and bad files in folders that a user may want to exclude."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    for path in ("library/bad.py", "library/old/bad.py", "library/more/old/bad.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(BAD)
    (tmp_path / "library/good.py").write_text("n = 1\nm = float(n + 1)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(text: str) -> list[str]:
    return re.findall(r": (EMB\d{3}) ", text)


@pytest.mark.parametrize(
    "switches, codes",
    [
        ([], [NUMPY, CONVERSION, OPERATORS, PRECISION]),
        (["--numpy-only"], [NUMPY]),
        (["--conversion-only"], [CONVERSION]),
        (["--operators-only"], [OPERATORS]),
        (["--precision-only"], [PRECISION]),
    ],
)
def test_each_switch_chooses_its_rules(
    main: Main, project: Path, capsys: pytest.CaptureFixture[str], switches: list[str], codes: list[str]
) -> None:
    assert main(["library/bad.py", *switches]) == 1
    assert found(capsys.readouterr().out) == codes


def test_the_switches_exclude_each_other(main: Main, project: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["library", "--numpy-only", "--precision-only"])


def test_clean_files_exit_with_0(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["library/good.py"]) == 0
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "no findings in 1 file\n")


def test_findings_are_counted(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["library/bad.py"])
    counted = "4 findings (numpy 1, precision 1, conversion 1, operators 1) in 1 file\n"
    assert capsys.readouterr().err == counted


def test_a_missing_path_exits_with_2(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["libary"]) == 2
    assert capsys.readouterr().err == "detect_numpy_usage: no such file or folder: libary\n"


def test_a_wrong_configuration_exits_with_2(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint]\nbackend = []\n")
    assert main(["library"]) == 2
    assert "did you mean 'backends'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, left",
    [
        ([], {"library/bad.py", "library/old/bad.py", "library/more/old/bad.py"}),
        (["old"], {"library/bad.py"}),
        (["library/old"], {"library/bad.py", "library/more/old/bad.py"}),
        (["library/old/"], {"library/bad.py", "library/more/old/bad.py"}),
        (["library/old", "more"], {"library/bad.py"}),
        (["bad.py"], set()),
        (["**/*d.py"], set()),
    ],
)
def test_folders_are_excluded(
    main: Main, project: Path, capsys: pytest.CaptureFixture[str], words: list[str], left: set[str]
) -> None:
    assert main(["library", *(["--exclude", *words] if words else [])]) == (1 if left else 0)
    assert {line.partition(":")[0] for line in capsys.readouterr().out.splitlines()} == left


def test_exclude_may_be_repeated(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["library", "--exclude", "library/old", "--exclude", "more"])
    assert {line.partition(":")[0] for line in capsys.readouterr().out.splitlines()} == {"library/bad.py"}


def test_verbose_adds_the_evidence(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["library/bad.py", "--operators-only", "--verbose"])
    output = capsys.readouterr().out
    assert "    because " in output
    assert "ops.add" in output


def test_suppressions_and_roles_are_those_of_emberlint(main: Main, project: Path) -> None:
    (project / "library/bad.py").write_text("import numpy  # emberlint: ignore[backend-import] -- the oracle\n")
    assert main(["library/bad.py"]) == 0
    (project / "library/test_bad.py").write_text(BAD)
    assert main(["library/test_bad.py"]) == 0


def test_a_file_that_does_not_parse_is_a_finding(main: Main, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "library/bad.py").write_text("def f(:\n")
    assert main(["library/bad.py", "--precision-only"]) == 1
    output = capsys.readouterr()
    assert found(output.out) == ["EMB000"]
    assert output.err == "1 finding in 1 file\n"


@pytest.mark.fresh_process
def test_the_file_runs_as_a_script(project: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "library/bad.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(found(done.stdout)) == 4
