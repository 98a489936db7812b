"""Which checkpoints there are, and which stay: whole ones only, the newest, and the best."""

import math
import os
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from emberharmony import Buffer, io, nn, ops
from emberharmony.errors import CheckpointError, CheckpointWarning
from emberharmony.io.checkpoints import folders


class Held(nn.Module):
    """One number."""

    def __init__(self, value: float) -> None:
        self.value = Buffer(value)


def saved(checkpoint: io.Checkpoint, *numbers: Any, start: int = 1) -> list[int]:
    """Saves a checkpoint for each number, and returns the steps that are left."""
    with ops.use_backend("numpy"):
        for step, number in enumerate(numbers, start):
            path = checkpoint.save(step, model=Held(float(step)), extra={"loss": number, "text": "x"})
            assert os.path.isdir(path)
    return checkpoint.steps()


def held(checkpoint: io.Checkpoint, step: int | None = None) -> float:
    with ops.use_backend("numpy"):
        model = Held(-1.0)
        checkpoint.restore(model=model, step=step)
        return float(model.value.value)


def test_the_newest_and_the_best_stay(tmp_path: Path) -> None:
    numbers = [5.0, 1.0, math.nan, 3.0, None, 1.0, 2.0, -math.inf]
    assert saved(io.Checkpoint(tmp_path / "all", keep=None), *numbers) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert saved(io.Checkpoint(tmp_path / "new", keep=2), *numbers) == [7, 8]
    least = io.Checkpoint(tmp_path / "least", keep=2, keep_best="loss")
    assert saved(least, *numbers[:7]) == [2, 6, 7]
    assert (least.best(), least.latest(), held(least), held(least, 2)) == (2, 7, 7.0, 2.0)
    assert saved(least, -math.inf, start=8) == [7, 8]
    assert least.extra() == {"loss": -math.inf, "text": "x"}
    most = io.Checkpoint(tmp_path / "most", keep=1, keep_best="loss", mode="max")
    assert saved(most, *numbers[:7]) == [1, 7]
    assert io.Checkpoint(tmp_path / "new", keep_best="other").best() is None
    assert repr(most) == f"Checkpoint({str(tmp_path / 'most')!r}, keep=1, keep_best='loss', mode='max')"


def test_extra_holds_numbers_text_and_tensors_with_one_element(backend: str, tmp_path: Path) -> None:
    checkpoint = io.Checkpoint(tmp_path)
    extra = {"loss": ops.mean(ops.array([1.5, 2.5])), "list": [1, (2, "x")], "by": {3: None}, "best": math.inf}
    checkpoint.save(0, model=Held(1.0), extra=extra)
    assert checkpoint.extra() == {**extra, "loss": 2.0}


def test_a_training_that_goes_back_makes_the_newest_checkpoints(tmp_path: Path) -> None:
    checkpoint = io.Checkpoint(tmp_path, keep=2)
    saved(checkpoint, 1.0, 1.0, 1.0)
    assert saved(checkpoint, 1.0, start=1) == [1, 3]
    assert (checkpoint.latest(), held(checkpoint)) == (1, 1.0)
    assert saved(checkpoint, 1.0, start=2) == [1, 2]


def test_a_step_that_is_saved_again_replaces_the_old_folder(tmp_path: Path) -> None:
    checkpoint = io.Checkpoint(tmp_path)
    with ops.use_backend("numpy"):
        for value in (1.0, 2.0, 3.0):
            checkpoint.save(4, model=Held(value))
            assert held(checkpoint) == value
            assert len(os.listdir(tmp_path)) == 1
    assert checkpoint.steps() == [4]


def test_steps_of_any_length_are_in_order(tmp_path: Path) -> None:
    checkpoint = io.Checkpoint(tmp_path, keep=None)
    with ops.use_backend("numpy"):
        for step in (1_000_000, 999_999, 0):
            checkpoint.save(step, model=Held(0.0))
    assert checkpoint.steps() == [0, 999_999, 1_000_000]
    assert sorted(os.listdir(tmp_path)) == ["step-000000", "step-1000000", "step-999999"]


def test_folders_that_ended_processes_left_are_removed_and_others_stay(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    here, there = (f"{zlib.crc32(name.encode()):08x}" for name in (socket.gethostname(), "elsewhere"))
    old = time.time() - 2 * 24 * 3600
    left = {
        f"step-000001.tmp-{ended.pid}-{here}-00000000": False,
        f"step-000001.tmp-{os.getpid()}-{here}-00000001": False,
        f"step-000001.tmp-{os.getppid()}-{here}-00000002": True,
        f"step-000001.tmp-{ended.pid}-{there}-00000003": True,
        f"step-000001.tmp-{ended.pid}-{there}-00000004": False,
        f"step-000001.tmp-{'9' * 30}-{here}-00000005": False,
        "step-000001.tmp": True,
        "notes": True,
    }
    for name in left:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"x")
    os.utime(tmp_path / f"step-000001.tmp-{ended.pid}-{there}-00000004", (old, old))
    checkpoint = io.Checkpoint(tmp_path)
    assert checkpoint.latest() is None
    with pytest.raises(CheckpointError, match="nothing was saved there"):
        held(checkpoint)
    saved(checkpoint, 1.0)
    assert set(os.listdir(tmp_path)) == {name for name, stays in left.items() if stays} | {"step-000001"}


def test_another_thread_of_the_process_may_be_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = folders._temporary_path(str(tmp_path), 1)
    os.mkdir(writing)
    monkeypatch.setattr(folders, "_WRITING", {writing})
    saved(io.Checkpoint(tmp_path), 1.0)
    assert os.path.isdir(writing)


def test_another_process_may_write_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = io.Checkpoint(tmp_path)
    saved(checkpoint, 1.0)
    exists = os.path.lexists
    asked: list[str] = []

    def late(path: str) -> bool:
        asked.append(path)
        return exists(path) and len(asked) > 1

    monkeypatch.setattr(os.path, "lexists", late)
    path = folders.write_folder(str(tmp_path), 1, lambda folder: Path(folder, "x").write_text("x") and None)
    assert Path(path).name == "step-000001.2"
    assert sorted(os.listdir(path)) == ["x"]


def test_a_checkpoint_that_cannot_be_removed_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = io.Checkpoint(tmp_path, keep=1)
    saved(checkpoint, 1.0)

    def refuse(path: str, step: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folders, "discard_folder", refuse)
    with pytest.warns(CheckpointWarning, match="step-000001 could not be removed"):
        saved(checkpoint, 1.0, start=2)
    assert checkpoint.steps() == [1, 2]
