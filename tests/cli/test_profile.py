"""`emberharmony profile`: runs a program, keeps its exit status, and reports also after an interruption."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from emberharmony.cli.main import command
from emberharmony.transforms.logs import roofline
from emberharmony.transforms.logs.roofline import Rates

PROGRAM = """
import sys
from emberharmony import ops

def main():
    ops.exp(ops.ones((4, 4)))
    if sys.argv[1] == "stop":
        raise KeyboardInterrupt
    if sys.argv[1] == "fail":
        raise ValueError("a mistake of the program")
    sys.exit(int(sys.argv[1]))

if __name__ == "__main__":
    main()
"""


@pytest.fixture(autouse=True)
def _fixed_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "_SECONDS", 0.0)
    monkeypatch.setattr(roofline, "_WIDTH", 8)
    monkeypatch.setattr(roofline, "_LENGTH", 8)
    monkeypatch.setattr(roofline, "_MEASURED", dict[tuple[str, str], Rates]())


def run(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    before = list(sys.path), sys.argv
    result = CliRunner().invoke(command, ["profile", *arguments])
    assert (sys.path, sys.argv) == before
    return result.exit_code, result.output


def test_the_report_and_the_files_are_written(backend: str, tmp_path: Path) -> None:
    script = str(tmp_path / "program.py")
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json")]
    options = ["--json", files[0], "--chrome", files[1], "--speedscope", files[2], "--by", "line"]
    status, output = run(tmp_path, *options, script, "0")
    assert status == 0
    assert "program.py:6" in output
    assert "2 calls of ops" in output
    assert [row["name"] for row in json.loads(Path(files[0]).read_text())["line"]] == [f"{script}:6"]
    assert all(Path(file).stat().st_size for file in files)


@pytest.mark.parametrize(("argument", "status", "said"), [("stop", 130, "Interrupted"), ("fail", 1, ""), ("3", 3, "")])
def test_the_end_of_the_program_does_not_lose_the_report(argument: str, status: int, said: str, tmp_path: Path) -> None:
    found, output = run(tmp_path, str(tmp_path / "program.py"), argument)
    assert found == status
    assert "exp" in output
    assert said in output


def test_a_program_without_ops_and_a_missing_folder_are_reported(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    assert "called no op" in run(tmp_path, str(tmp_path / "empty.py"))[1]
    status, output = run(tmp_path, "--json", str(tmp_path / "no" / "a.json"), str(tmp_path / "empty.py"))
    assert status == 2
    assert "cannot write" in output
