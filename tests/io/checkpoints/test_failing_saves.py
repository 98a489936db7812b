"""Whatever ends a save leaves the old checkpoint or the new one, never neither, and nothing else."""

import errno
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops, optim
from emberharmony.errors import CheckpointError
from tests.interruptions.harness import moments, trace


class Held(nn.Module):
    """Many numbers, all of which are equal."""

    def __init__(self, value: float, size: int = 20_000) -> None:
        self.weight = nn.Parameter(np.full(size, value, "float32"))
        self.other = nn.Parameter(np.full(7, value, "float32"))


def parts(value: float) -> dict[str, Any]:
    model = Held(value)
    optimizer = optim.SGD(model, lr=0.0, momentum=0.9)
    optimizer.step({model.weight: model.weight.value, model.other: model.other.value})
    return {"model": model, "optimizer": optimizer}


def whole(folder: Path) -> set[float]:
    """Returns the numbers of the newest checkpoint after a check of all of them: one number, if it is whole."""
    checkpoint, found = io.Checkpoint(folder), parts(-1.0)
    step = checkpoint.restore(**found)
    momenta = [entry["momentum_buffer"].value for entry in found["optimizer"].state.values()]
    cells = [found["model"].weight.value, found["model"].other.value, *momenta]
    return {float(step), *(float(x) for cell in cells for x in np.unique(cell))}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def error_of(folder: Path, step: int = 2) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        io.Checkpoint(folder).save(step, **parts(step))
    assert caught.value.kind == "unwritable"
    assert "the older checkpoints stay" in str(caught.value)
    return caught.value


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    with ops.use_backend("numpy"):
        yield


def test_an_error_at_any_step_of_a_save_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    io.Checkpoint(tmp_path).save(1, **parts(1))
    before = files(tmp_path)
    new = parts(2)
    for owner, name, times in ((os, "mkdir", 1), (os, "replace", 3), (os, "rename", 1), (os, "fsync", 7)):
        real = getattr(owner, name)
        for at in range(times):
            for error in (OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()):
                left = [at]

                def failing(*args: Any, left: list[int] = left, error: BaseException = error, real: Any = real) -> Any:
                    left[0] -= 1
                    if left[0] == -1:
                        raise error
                    return real(*args)

                with monkeypatch.context() as patch:
                    patch.setattr(owner, name, failing)
                    with pytest.raises(CheckpointError if isinstance(error, OSError) else type(error)):
                        io.Checkpoint(tmp_path).save(2, **new)
                assert left[0] < 0, name
                assert files(tmp_path) == before, (name, at, error)
                assert os.listdir(tmp_path) == ["step-000001"], (name, at, error)
    assert whole(tmp_path) == {1.0}


def test_an_error_after_the_folder_has_its_name_leaves_the_new_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emberharmony.io.checkpoints import folders

    io.Checkpoint(tmp_path).save(1, **parts(1))

    def failing(folder: str) -> None:
        if folder == str(tmp_path):
            raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "flush_folder", failing)
        error_of(tmp_path)
    assert whole(tmp_path) == {2.0}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yields a file system of 1 MB, which only root of a Linux system can mount."""
    place = tmp_path / "disk"
    place.mkdir()
    if not _mounted("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)):
        pytest.skip("a tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _mounted(*options: str) -> bool:
    mount = shutil.which("mount")
    return mount is not None and not subprocess.run([mount, *options], capture_output=True, check=False).returncode


def test_a_full_disk_leaves_the_old_checkpoint(small_disk: Path) -> None:
    folder = small_disk / "run"
    checkpoint = io.Checkpoint(folder)
    checkpoint.save(1, **parts(1))
    before = files(folder)
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    for space in (0, 50_000, 100_000, 160_000):  # for nothing, a part of the model, it, all but the record
        (small_disk / "filler").write_bytes(b"x" * (free - space - 4096))
        assert "No space left" in str(error_of(folder))
        assert files(folder) == before
        assert os.listdir(folder) == ["step-000001"]
        (small_disk / "filler").unlink()
    checkpoint.save(2, **parts(2))
    assert whole(folder) == {2.0}


def test_a_limit_of_the_size_of_files_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    io.Checkpoint(tmp_path).save(1, **parts(1))
    before, limits = files(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (100, 10_000, 80_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            assert "File too large" in str(error_of(tmp_path))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert files(tmp_path) == before


def test_a_file_system_that_became_read_only_leaves_the_old_checkpoint(small_disk: Path) -> None:
    folder = small_disk / "run"
    io.Checkpoint(folder).save(1, **parts(1))
    if not _mounted("-o", "remount,ro", str(small_disk)):
        pytest.skip("a tmpfs cannot be mounted again here")
    assert "Read-only file system" in str(error_of(folder))
    assert whole(folder) == {1.0}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        error_of(folder)
    if os.path.isdir("/proc/self"):  # where not even root can make a folder
        error_of(Path("/proc/self/run"))
    if os.geteuid():  # permissions do not bind root
        locked = tmp_path / "locked"
        io.Checkpoint(locked).save(1, **parts(1))
        locked.chmod(0o500)
        error_of(locked)
        assert whole(locked) == {1.0}
    assert (tmp_path / "file").read_text() == "mine"


@contextmanager
def _saving(folder: Path) -> Iterator[None]:
    """Runs a block while another process, which has saved a checkpoint, saves one after the other; then kills it."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            checkpoint = io.Checkpoint(folder, keep=2)
            start = (checkpoint.latest() or 0) + 1
            for i in range(100_000):
                checkpoint.save(start + i // 2, **parts(start + i // 2))  # each step twice
                if i == 0:
                    os.write(writing, b"x")
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read(1) == b"x"
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _killed(folder: Path, times: int) -> None:
    checkpoint = io.Checkpoint(folder)
    began = time.perf_counter()
    checkpoint.save(1, **parts(1))
    longest = 3 * (time.perf_counter() - began)
    choose, newest = random.Random(0), 1
    for trial in range(times):
        with _saving(folder):
            time.sleep(choose.uniform(0.0, longest))
        step, *_ = numbers = whole(folder)
        assert len(numbers) == 1, trial
        assert step > newest, trial
        newest = int(step)
    checkpoint.save(newest + 1, **parts(newest + 1))
    assert not list(folder.glob("*.tmp-*"))
    assert whole(folder) == {newest + 1.0}


@pytest.mark.fresh_process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("times", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_save_leaves_a_whole_checkpoint(tmp_path: Path, times: int) -> None:
    """The process that forks has one thread only, which that of the tests may not have."""
    program = (
        "import sys; from pathlib import Path; from emberharmony import ops; ops.set_backend('numpy'); "
        "from tests.io.checkpoints.test_failing_saves import _killed; _killed(Path(sys.argv[1]), int(sys.argv[2]))"
    )
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(times)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _interrupted(folder: Path, count: int) -> None:
    """Raises before about `count` of the instructions of a save."""
    checkpoint = io.Checkpoint(folder, keep=1)
    old, new = parts(1), parts(2)

    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        checkpoint.save(1, **old)

    def run() -> None:
        checkpoint.save(2, **new)

    prepare()
    instants = moments(run)
    for at in instants[:: -(-len(instants) // count)]:
        prepare()
        where, _ = trace(run, at)
        assert whole(folder) in ({1.0}, {2.0}), where[-1:]
        run()
        assert [path.name for path in folder.iterdir() if ".tmp" not in path.name] in (
            ["step-000002"],
            ["step-000002.2"],
        ), where[-1:]


# Python warns when the garbage collector frees an open file that an interruption left behind.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("count", [4, pytest.param(400, marks=pytest.mark.slow)])
def test_an_interruption_at_any_instruction_of_a_save_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # it takes most of the time, and matters not here
    _interrupted(tmp_path / "run", count)
    gc.collect()
