"""The fast path: taken only if the full command would give the same answer."""

import os
from pathlib import Path

import pytest

from emberlint import __main__
from emberlint.cli import main
from emberlint.fast_path import print_cached_report
from emberlint.run import run_cache


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project that was checked before, with clean folders and a folder with findings."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    for folder, text in (("good", "x = 1\n"), ("bad", "import numpy\n"), ("rules", "x = 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_cache, "TICK", -1_000_000_000)
    for folder in ("good", "bad", "./rules"):
        main(["check", folder, "--exit-zero"], standalone_mode=False)
    return tmp_path


CACHED = [["good"], ["check", "good"], ["good", "--exit-zero"], ["-v", "good"], ["./rules"], ["bad", "--exit-zero"]]
CACHED += [["-j", "1", "good"], ["good", "-j2"], ["--jobs", "3", "good"], ["check", "--jobs=1", "good"]]


@pytest.mark.parametrize("folder", ["good", "..", "."])
@pytest.mark.parametrize("words", [*CACHED, ["bad"]], ids=" ".join)
def test_a_repeated_check_is_answered_from_the_cache(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], folder: str
) -> None:
    monkeypatch.chdir(folder)
    words = [str(Path(project, word)) if word.strip("./") in ("good", "bad", "rules") else word for word in words]
    capsys.readouterr()
    status = print_cached_report(words)
    quick = capsys.readouterr()
    assert main(words, standalone_mode=False) == status == int(words[-1] == str(project / "bad"))
    assert quick == capsys.readouterr()


def test_a_reader_that_ends_early_stops_the_report(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`emberlint | head` must end without a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        monkeypatch.setattr("sys.argv", ["emberlint", "bad"])
        with pytest.raises(SystemExit) as ended:
            __main__.main()
    assert ended.value.code == 1


@pytest.mark.parametrize(
    "words",
    [
        ["bad", "--verbose"],
        ["good", "bad"],  # these were never checked together
        ["missing"],
        ["rules"],  # a command, although a folder of this name exists
        ["good", "--format", "json"],
        ["good", "--min-tier", "C"],
        ["good", "--fix"],
        ["good", "-j"],
        ["good", "-j", "0"],
        ["good", "-j", "many"],
        ["good", "--jobs=-1"],
        ["-"],
        ["--help"],
        [],
    ],
)
def test_other_calls_run_the_full_command(project: Path, words: list[str]) -> None:
    assert print_cached_report(words) is None


def test_with_a_baseline_the_full_command_runs(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint]\nbaseline = 'accepted.json'\n")
    assert print_cached_report(["good"]) is None


def test_with_a_wrong_configuration_the_full_command_runs(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint]\nbaselines = 'accepted.json'\n")
    assert print_cached_report(["good"]) is None


@pytest.mark.parametrize("folder, status", [("good", 0), ("bad", 1)])
def test_the_command_exits_with_the_status_of_the_check(
    project: Path, monkeypatch: pytest.MonkeyPatch, folder: str, status: int
) -> None:
    monkeypatch.setattr("sys.argv", ["emberlint", folder])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == status
