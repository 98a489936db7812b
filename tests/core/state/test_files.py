"""A file is replaced as a whole and together with the further steps of the change, or not at all."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from emberharmony.core.state import files
from emberharmony.core.state.commits import assignment
from emberharmony.core.state.files import replace_bytes, replace_text


class State:
    value = "old"


def test_further_steps_run_when_the_file_is_replaced(tmp_path: Path) -> None:
    state, file = State(), tmp_path / "file"
    replace_text(str(file), "new\r\n", [assignment(state, "value", "new")])
    assert file.read_bytes() == b"new\r\n"
    assert state.value == "new"


def test_no_further_step_runs_when_the_file_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, file = State(), tmp_path / "file"
    file.write_text("old")

    def refuse(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        replace_text(str(file), "new", [assignment(state, "value", "new")])
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


def write(path: Path, content: bytes = b"new") -> None:
    with replace_bytes(str(path)) as stream:
        stream.write(content)


@pytest.fixture
def umask() -> Iterator[int]:
    """Sets an unusual umask for the test."""
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_bytes_replace_a_file_when_the_block_ends(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"", b"\x00\r\n", bytes(range(256)) * 1000):
        with replace_bytes(str(file)) as stream:
            stream.write(content[:5])
            stream.seek(0)
            stream.write(content)
            assert file.exists() == (content != b"")
        assert file.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_a_new_file_follows_the_umask_and_an_old_one_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    file = tmp_path / "file"
    write(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    for mode in (0o666, 0o400, 0o755):
        file.chmod(mode)
        write(file)
        assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_temporary_file_is_never_readable_by_more_users(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o600)
    with replace_bytes(str(file)):
        assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}


def test_links_stay_and_their_targets_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file, link, second = folder / "file", tmp_path / "link", tmp_path / "second"
    link.symlink_to(file)
    second.symlink_to("link")
    for content in (b"made", b"new"):  # at first the link refers to no file
        write(second, content)
        assert (file.read_bytes(), os.readlink(second), os.readlink(link)) == (content, "link", str(file))
    assert (os.listdir(folder), sorted(os.listdir(tmp_path))) == (["file"], ["folder", "link", "second"])
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match=r"symbolic links|File exists"):
        write(loop)


def test_a_name_may_have_the_greatest_length(tmp_path: Path) -> None:
    write(tmp_path / ("n" * 255))
    assert (tmp_path / ("n" * 255)).read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt(), MemoryError(), SystemExit()])
@pytest.mark.parametrize("step", ["open", "chmod", "fsync", "replace", "block", "flush"])
def test_an_error_at_any_step_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def fail(*args: object, **kwargs: object) -> NoReturn:
        raise error

    class Full:
        """A stream whose buffer cannot be written."""

        def __init__(self, stream: Any) -> None:
            self.write, self.fileno, self._close = stream.write, stream.fileno, stream.close
            self.flush = fail

        def close(self) -> None:
            self._close()
            raise OSError(errno.ENOSPC, "no space")

    if step in ("open", "chmod", "fsync", "replace"):
        monkeypatch.setattr(os, step, fail)
    if step == "flush":
        made = files._create_file
        monkeypatch.setattr(files, "_create_file", lambda *args: Full(made(*args)))
    with pytest.raises(type(error)) as raised, replace_bytes(str(file)) as stream:
        stream.write(b"new")
        if step == "block":
            fail()
    assert raised.value is error
    monkeypatch.undo()
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_block_that_is_dropped_leaves_the_old_file(tmp_path: Path) -> None:
    manager = replace_bytes(str(tmp_path / "file"))
    leave = manager.__exit__
    manager.__enter__().write(b"new")
    assert len(os.listdir(tmp_path)) == 1
    del leave
    assert os.listdir(tmp_path) == []


def test_a_stack_may_hold_the_block(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(replace_bytes(str(tmp_path / "file"))).write(b"new")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_becomes_too_large_leaves_the_old_one(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    file = tmp_path / "file"
    file.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        for size in (60_000, 10_000_000):
            with pytest.raises(OSError, match="File too large"):
                write(file, b"x" * size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.fresh_process
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_folder_that_cannot_be_written_is_refused() -> None:
    program = """
import os, sys
from emberharmony.core.state.files import replace_bytes
if os.geteuid() == 0:
    os.setuid(65534)  # root may write every folder
try:
    with replace_bytes(sys.argv[1]) as stream:
        stream.write(b"new")
except PermissionError as error:
    print(type(error).__name__)
"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "file").write_bytes(b"old")
        folder.chmod(0o555)
        command = [sys.executable, "-c", program, str(folder / "file")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # A tracer of coverage that starts with each process cannot write its file either, and says so in stderr.
        assert done.stdout == "PermissionError\n", done.stderr
        assert os.listdir(folder) == ["file"]
        assert (folder / "file").read_bytes() == b"old"
        folder.chmod(0o755)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "none" / "file")


def test_the_file_and_the_folder_are_flushed_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", lambda *names: (events.append("replace"), replace(*names)))
    write(tmp_path / "file")
    assert events == ["file", "replace", "folder"]
    monkeypatch.delattr(os, "O_DIRECTORY")
    write(tmp_path / "file")
    assert events[3:] == ["file", "replace"], "Windows cannot open a folder"


@pytest.mark.parametrize("kind", [errno.EINVAL, errno.EIO])
def test_a_folder_without_flush_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int) -> None:
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(kind, os.strerror(kind))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    if kind == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            write(tmp_path / "file")
    else:
        write(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_concurrent_writers_leave_the_content_of_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    contents = [bytes([i]) * 20_000 for i in range(8)]
    write(file, contents[0])
    seen: set[bytes] = set()

    def work(content: bytes) -> None:
        for _ in range(10):
            write(file, content)
            seen.add(file.read_bytes())

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= set(contents)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.fresh_process
@pytest.mark.skipif(sys.platform == "win32", reason="needs kill")
def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    program = f"""
import os, signal
from emberharmony.core.state.files import replace_bytes
with replace_bytes({str(file)!r}) as stream:
    stream.write(b"new" * 100_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -9
    assert file.read_bytes() == b"old"
