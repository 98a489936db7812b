"""A file is replaced as a whole and together with the further steps of the change, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from emberharmony.core.state.commits import assigned
from emberharmony.core.state.files import replace_text


class State:
    value = "old"


def test_further_steps_run_when_the_file_is_replaced(tmp_path: Path) -> None:
    state, file = State(), tmp_path / "file"
    replace_text(str(file), "new\r\n", [assigned(state, "value", "new")])
    assert file.read_bytes() == b"new\r\n"
    assert state.value == "new"


def test_no_further_step_runs_when_the_file_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, file = State(), tmp_path / "file"
    file.write_text("old")

    def refuse(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        replace_text(str(file), "new", [assigned(state, "value", "new")])
    assert state.value == file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_backup_keeps_the_old_file_and_its_mode(tmp_path: Path) -> None:
    file, kept = tmp_path / "file", tmp_path / "kept"
    file.write_text("old")
    file.chmod(0o640)
    replace_text(str(file), "new", backup=str(kept))
    assert (file.read_text(), kept.read_text()) == ("new", "old")
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["file", "kept"]


def test_a_pipe_or_a_folder_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a file nor a link to one"):
        replace_text(str(tmp_path / "pipe"), "new")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    with pytest.raises(IsADirectoryError):
        replace_text(str(tmp_path), "new")
    assert os.listdir(tmp_path) == ["pipe"]
