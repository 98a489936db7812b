"""The board says which rank is missing, and where the others wait."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from emberharmony.distributed import board


@pytest.fixture
def three(tmp_path: Path) -> list[board.Board]:
    path = str(tmp_path / "board")
    board.create_file(path, 3)
    return [board.Board(path, rank, 3) for rank in range(3)]


def test_ranks_that_are_where_they_should_be(three: list[board.Board]) -> None:
    for one in three:
        one.write(board.INSIDE, 7, "all_sum")
    three[2].write(board.INSIDE, 8, "barrier")  # it has left the call already
    assert three[0].missing_rank_reasons(7, "all_sum", wait=0.0) == {}
    assert three[1].read(2)[1:3] == (board.INSIDE, 8)
    assert three[1].read(2).call == "barrier"
    three[1].write(board.FAILED)  # it waits for nobody any more, but is not the cause
    assert three[0].missing_rank_reasons(7, "all_sum", wait=0.0) == {}


def test_ranks_that_are_elsewhere(three: list[board.Board]) -> None:
    for one in three:
        one.write(board.INSIDE, 6, "all_mean")
        one.write(board.OUTSIDE)
    three[0].write(board.INSIDE, 7, "all_sum")
    three[1].write(board.INSIDE, 7, "barrier")
    process = f"(process {os.getpid()})"
    found = three[0].missing_rank_reasons(7, "all_sum", wait=0.0)
    assert list(found) == [2]  # rank 1 is elsewhere too, but further on
    assert found[2].startswith(f"{process} has not come to this call; its last call was all_mean() (call 6), 0.")
    three[2].write(board.INSIDE, 7, "all_sum")
    found = three[0].missing_rank_reasons(7, "all_sum", wait=0.0)
    assert found == {1: f"{process} has called barrier() (call 7) instead"}
    three[2].write(board.INSIDE, 6, "all_mean")
    three[2].write(board.ENDED)  # the others are only late
    assert three[0].missing_rank_reasons(7, "all_sum", wait=0.0) == {
        2: f"{process} has ended its program; its last call was all_mean() (call 6)"
    }
    three[0].write(board.INSIDE, 7, "send")
    assert list(three[0].missing_rank_reasons(7, "send", peer=2, wait=0.0)) == [2]


def test_a_rank_that_never_came(tmp_path: Path) -> None:
    path = str(tmp_path / "board")
    board.create_file(path, 2)
    first = board.Board(path, 0, 2)
    assert first.absent_ranks(0.02) == [1]
    found = first.missing_rank_reasons(1, "init", wait=0.0)
    assert found == {1: "has not joined the run; no call of init() has come from it"}
    board.Board(path, 1, 2)
    assert first.absent_ranks(0.0) == []


@contextlib.contextmanager
def killed(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
def test_processes_that_are_stopped_or_gone(three: list[board.Board], monkeypatch: pytest.MonkeyPatch) -> None:
    program = [sys.executable, "-S", "-E", "-c", "input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as other, killed(other):
        three[2].write(board.INSIDE, 4, "all_sum")
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: other.pid)
            three[1].write(board.INSIDE, 4, "all_sum")
        assert three[0].missing_rank_reasons(4, "all_sum", wait=0.0).get(1) is None
        other.send_signal(signal.SIGSTOP)
        found = three[0].missing_rank_reasons(4, "all_sum", wait=5.0)
        assert found[1].endswith("is stopped; its last call was all_sum() (call 4)")
        other.kill()
        other.wait()
        found = three[0].missing_rank_reasons(4, "all_sum", wait=5.0)
        assert found[1] == f"(process {other.pid}) was killed or ended in all_sum() (call 4)"
        assert three[0].is_hopeless(4)
        assert not three[0].is_hopeless(3)  # it has left that call


def test_a_rank_that_does_not_come_any_more_is_hopeless(three: list[board.Board]) -> None:
    for one in three:
        one.write(board.INSIDE, 6, "all_mean")
    assert not three[0].is_hopeless(6)
    three[1].write(board.OUTSIDE)
    three[1].write(board.ENDED)
    assert not three[0].is_hopeless(6)  # it has made this call
    assert three[0].is_hopeless(7)
    assert not three[0].is_hopeless(7, peer=2)
    three[2].write(board.FAILED)
    assert three[0].is_hopeless(6)


def test_a_reader_waits_for_the_rest_of_an_entry(tmp_path: Path) -> None:
    path = str(tmp_path / "board")
    board.create_file(path, 2)
    writer, reader = board.Board(path, 1, 2), board.Board(path, None, 2)
    writer.write(board.INSIDE, 3, "all_sum")
    whole = writer._memory[writer._start : writer._start + board._WIDTH]
    half = bytearray(whole)
    half[8:24] = bytes(16)  # state and number of another entry
    writer._memory[writer._start : writer._start + board._WIDTH] = bytes(half)

    def finish() -> None:
        writer._memory[writer._start : writer._start + board._WIDTH] = whole

    timer = threading.Timer(0.02, finish)
    timer.start()
    entry = reader.read(1)
    timer.join()
    assert (entry.state, entry.number, entry.call) == (board.INSIDE, 3, "all_sum")


@pytest.mark.slow
def test_a_reader_sees_whole_entries(tmp_path: Path) -> None:
    """A writer that writes all the time has another number and name each time, which fit together."""
    path = str(tmp_path / "board")
    board.create_file(path, 1)
    program = f"""
from emberharmony.distributed import board
one, i = board.Board({path!r}, 0, 1), 0
while True:
    i += 1
    one.write(board.INSIDE, i, f"call_{{i}}")
"""
    reader = board.Board(path, None, 1)
    with subprocess.Popen([sys.executable, "-c", program]) as writer, killed(writer):
        while reader.read(0).number < 1:
            pass
        for _ in range(200_000):
            entry = reader.read(0)
            assert (entry.process, entry.call) == (writer.pid, f"call_{entry.number}")
