"""`--watch`: rounds when something changes, errors that do not end it, the interrupt that does."""

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from emberlint.cli import main
from emberlint.commands import watch as module
from emberlint.config.errors import UsageError

LIMIT = 60  # seconds, for a round on a loaded machine


def test_each_change_is_a_round_and_an_error_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.0)
    looks: list[object] = [1, 1, 2, UsageError("wrong"), UsageError("wrong"), 3, 3, 4, KeyboardInterrupt()]
    acts: list[object] = [None, None, UsageError("no such rule"), None]
    done: list[object] = []

    def taken(values: list[object]) -> Callable[[], object]:
        def take() -> object:
            value = values.pop(0)
            if isinstance(value, BaseException):
                raise value
            return value

        return take

    with pytest.raises(KeyboardInterrupt):
        module.watch(taken(looks), lambda: done.append(len(looks)) or taken(acts)())
    assert done == [8, 6, 3, 1]
    assert capsys.readouterr().err == "emberlint: wrong\nemberlint: no such rule\n\n"


def test_an_error_in_the_first_round_ends_it() -> None:
    assert CliRunner().invoke(main, ["--watch", "missing"]).exit_code == 2


@pytest.mark.parametrize("words", [["--fix"], ["--diff"], ["--add-ignore"], ["--explain-inference", "a:1"], ["-"]])
def test_watching_changes_nothing(words: list[str]) -> None:
    result = CliRunner().invoke(main, ["--watch", *words])
    assert result.exit_code == 2
    assert "--watch only checks files" in result.stderr


@pytest.mark.fresh_process
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
def test_the_command_watches_files_and_settings_until_interrupted(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "m.py").write_text("import numpy\n")
    command = [sys.executable, "-u", "-m", "emberlint", "--watch", "."]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        found, errors = lines(process.stdout), lines(process.stderr)
        assert found.get(timeout=LIMIT).startswith("m.py:1:1: EMB101")
        assert errors.get(timeout=LIMIT) == "1 finding in 1 file\n"
        replace(tmp_path / "n.py", "import torch\n")
        assert [found.get(timeout=LIMIT)[:4] for _ in range(2)] == ["m.py", "n.py"]
        assert errors.get(timeout=LIMIT) == "2 findings in 2 files\n"
        replace(tmp_path / "pyproject.toml", "[tool.emberlint]\nignored = []\n")
        assert "has no key 'ignored'" in errors.get(timeout=LIMIT)
        replace(tmp_path / "pyproject.toml", "[tool.emberlint]\nignore = ['EMB101']\n")
        assert errors.get(timeout=LIMIT) == "no findings in 2 files\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LIMIT) == 130
        assert [errors.get(timeout=LIMIT) for _ in range(2)] == ["\n", "emberlint: interrupted\n"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def replace(file: Path, text: str) -> None:
    """Writes a file in one step, which is one change."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def lines(stream: IO[str]) -> "queue.Queue[str]":
    """Returns a queue that a thread fills with the lines of a stream."""
    found: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in stream:
            found.put(line)

    threading.Thread(target=read, daemon=True).start()
    return found
