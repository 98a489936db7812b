"""The short cut of the command: taken only where the whole command would say the same."""

from pathlib import Path

import pytest

from emberlint import __main__
from emberlint.cli import main
from emberlint.fast_path import is_clean
from emberlint.run import run_cache


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that was checked before, with one clean folder and one that is not."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    for folder, text in (("good", "x = 1\n"), ("bad", "import numpy\n"), ("rules", "x = 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_cache, "TICK", -1_000_000_000)
    for folder in ("good", "bad", "./rules"):
        main(["check", folder, "--exit-zero"], standalone_mode=False)
    return tmp_path


@pytest.mark.parametrize("words", [["good"], ["check", "good"], ["good", "--exit-zero"], ["-v", "good"], ["./rules"]])
def test_a_clean_check_is_remembered(project: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    capsys.readouterr()
    assert is_clean(words)
    quick = capsys.readouterr()
    main(words, standalone_mode=False)
    assert quick == capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [
        ["bad"],
        ["good", "bad"],  # never checked together
        ["missing"],
        ["rules"],  # a command, though there is such a folder
        ["good", "--format", "json"],
        ["good", "--min-tier", "C"],
        ["good", "--fix"],
        ["-"],
        ["--help"],
        [],
    ],
)
def test_all_else_is_left_to_the_command(project: Path, words: list[str]) -> None:
    assert not is_clean(words)


def test_a_baseline_is_left_to_the_command(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint]\nbaseline = 'accepted.json'\n")
    assert not is_clean(["good"])


def test_a_wrong_configuration_is_left_to_the_command(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint]\nbaselines = 'accepted.json'\n")
    assert not is_clean(["good"])


@pytest.mark.parametrize("folder, status", [("good", 0), ("bad", 1)])
def test_the_command_ends_with_the_status(
    project: Path, monkeypatch: pytest.MonkeyPatch, folder: str, status: int
) -> None:
    monkeypatch.setattr("sys.argv", ["emberlint", folder])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == status
