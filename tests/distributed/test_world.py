"""A world refuses calls that would get out of step, and notices ranks that have ended."""

import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony.core.errors import ArgumentError, DistributedError
from emberharmony.distributed import board, environment, transports, world
from emberharmony.distributed.collectives import _require_rank
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import Transport


class Waiting(Transport):
    """A transport whose calls wait until another rank is known to have ended."""

    name = "waiting"

    def all_gather(self, vector: Any) -> Any:
        until = time.monotonic() + self.timeout
        while True:
            self.require_possible_end("it", until)
            time.sleep(0.01)

    def reaches(self, rank: int) -> bool:
        return rank == 1


def made(**options: Any) -> world.World:
    place = Place(0, 3)
    return world.World(place, Waiting(place, 60.0), 60.0, **options)


def test_a_forked_process_makes_no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    here = made()
    monkeypatch.setattr(os, "getpid", lambda: here._process + 1)
    with pytest.raises(DistributedError, match=r"all_sum\(\): this process was forked from rank 0 \(process \d+\)"):
        here.run("all_sum", lambda transport: None)
    monkeypatch.undo()
    assert here.run("all_sum", lambda transport: 3) == 3


def test_two_threads_do_not_call_at_the_same_time() -> None:
    here, inside, leave = made(), threading.Event(), threading.Event()
    thread = threading.Thread(target=here.run, args=("all_sum", lambda transport: (inside.set(), leave.wait(60))))
    thread.start()
    inside.wait(60)
    with pytest.raises(DistributedError, match=r"barrier\(\) on rank 0: another thread is in all_sum\(\) \(call 1\)"):
        here.run("barrier", lambda transport: None)
    leave.set()
    thread.join()
    here.run("barrier", lambda transport: None)


@pytest.mark.skipif(sys.platform == "win32", reason="the board asks POSIX for processes")
def test_a_call_fails_as_soon_as_a_rank_has_ended(tmp_path: Path) -> None:
    path = str(tmp_path / "board")
    board.create_file(path, 3)
    others = [board.Board(path, rank, 3) for rank in (1, 2)]
    here = made(seen=board.Board(path, 0, 3))
    threading.Thread(target=here._watch, daemon=True).start()
    for other in others:
        other.write(board.INSIDE, 1, "all_gather")
    others[1].write(board.OUTSIDE, 0, "")
    others[1].write(board.ENDED)
    with pytest.raises(DistributedError, match=r"rank 2 \(process \d+\) has ended its program; .* \(it waits for it\)"):
        here.run("all_gather", lambda transport: transport.all_gather(np.zeros(1)))
    here.end()


def test_a_process_ends_whose_transport_does_not_notice_that_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses: list[int] = []
    ended = threading.Event()

    def end(status: int) -> None:
        statuses.append(status)
        ended.set()
        threading.Event().wait(0.5)  # a process that has ended does not look again

    monkeypatch.setattr(world, "_MARGIN", 0.1)
    monkeypatch.setattr(os, "_exit", end)
    place = Place(0, 3)
    here = world.World(place, Waiting(place, 60.0), 0.1)
    threading.Thread(target=here._watch, daemon=True).start()
    here.run("all_sum", lambda transport: None)
    assert not ended.wait(0.6), "no call is being made"
    here.run("all_gather", lambda transport: ended.wait(60))
    here.end()
    assert statuses == [world.EXIT]
    assert "all_gather() (call 2) on rank 0 of 3 cannot end" in (error := capsys.readouterr().err)
    assert "the transport has not returned after 0.1 s" in error


def test_messages_to_ranks_that_a_ring_does_not_reach() -> None:
    here = made()
    _require_rank("send", here, 1, other=True)
    with pytest.raises(ArgumentError, match=r"send\(\): the ring of MLX sends to neighbours only, but rank 2 is not"):
        _require_rank("send", here, 2, other=True)


def test_a_rank_that_does_not_join_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = str(tmp_path / "board")
    board.create_file(path, 3)
    board.Board(path, 2, 3)
    monkeypatch.setattr(world, "_WORLD", None)
    monkeypatch.setattr(environment, "process_place", lambda: Place(0, 3, 0, 3))
    monkeypatch.setenv(environment.BOARD, path)
    with pytest.raises(DistributedError, match=r"not all ranks have come within .*; rank 1 has not joined") as caught:
        world.init("single", timeout=0.1)
    assert caught.value.ranks == (1,)


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if not transports.is_installed("torch"):
        pytest.skip("PyTorch is not installed")
    monkeypatch.setattr(world, "_WORLD", None)
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(environment, "process_place", lambda: Place(0, 2, 0, 2, "127.0.0.1", port))
        with pytest.raises(DistributedError, match=f"port {port} of this machine is taken; set MASTER_PORT to a free"):
            world.init("torch", timeout=5.0)


def test_init_refuses_other_options_than_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    here = made()
    monkeypatch.setattr(world, "_WORLD", here)
    assert world.init() is world.init(timeout=60.0) is world.world() is here
    with pytest.raises(ArgumentError, match="the time-out is 60 s since the first call of init"):
        world.init(timeout=5.0)
    with pytest.raises(ArgumentError, match="the transport is 'waiting' already, not 'torch'"):
        world.init("torch")
    for timeout in (0, -1.0):
        with pytest.raises(ArgumentError, match="expected seconds above 0"):
            world.init(timeout=timeout)
