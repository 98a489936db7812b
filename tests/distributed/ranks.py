"""Ranks that are threads of this process, so that the collectives are tested without starting programs."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.distributed import collectives, objects, world
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import LostError, Transport

PLACES: threading.local = threading.local()


class Room:
    """What the threads have in common."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier, self.rows = size, threading.Barrier(size, timeout=120.0), [None] * size
        self.posts: dict[Any, Any] = {(a, b): SimpleQueue() for a in range(size) for b in range(size)}


class ThreadTransport(Transport):
    """Carries vectors between threads."""

    name = "threads"

    def __init__(self, rank: int, room: Room) -> None:
        super().__init__(Place(rank, room.size), 120.0)
        self.room = room
        self.messages = 0

    def all_gather(self, vector: Any) -> Any:
        room = self.room
        self.messages += 1
        try:
            room.barrier.wait()
            room.rows[self.rank] = vector.copy()
            room.barrier.wait()
            return np.stack(room.rows)
        except threading.BrokenBarrierError as error:
            raise LostError("the barrier is broken") from error

    def all_sum(self, vector: Any) -> None:
        assert vector.dtype.name in ("int32", "int64", "float32", "float64")
        # In another order than that of the ranks.
        vector[...] = sum(list(self.all_gather(vector))[::-1])

    def broadcast(self, vector: Any, root: int) -> None:
        vector[...] = self.all_gather(vector)[root]

    def send(self, vector: Any, to: int) -> None:
        self.messages += 1
        self.room.posts[self.rank, to].put(vector.copy())

    def recv(self, vector: Any, source: int) -> None:
        self.messages += 1
        vector[...] = self.room.posts[source, self.rank].get(timeout=120.0)


def run(monkeypatch: pytest.MonkeyPatch, backends: tuple[str, ...], program: Callable[[world.World], Any]) -> list[Any]:
    """Returns what a program returns on each rank; each has a backend of its own."""
    for name in set(backends):
        with ops.use_backend(name):  # its library is imported before any rank waits for another
            ops.zeros(())
    room = Room(len(backends))
    for module in (collectives, objects, world):
        monkeypatch.setattr(module, "world", lambda: PLACES.world)
    results: list[Any] = [None] * len(backends)

    def begin(rank: int) -> None:
        PLACES.world = world.World(Place(rank, len(backends)), ThreadTransport(rank, room), 20.0)
        try:
            with ops.use_backend(backends[rank]):
                results[rank] = program(PLACES.world)
        except Exception as error:  # noqa: BLE001
            results[rank] = error
            room.barrier.abort()

    threads = [threading.Thread(target=begin, args=(rank,)) for rank in range(len(backends))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def right(results: list[Any]) -> list[Any]:
    """Returns results of which none is an error."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
