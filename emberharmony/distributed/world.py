"""`World`: this process and the others of a run, and the calls that they make together."""

import atexit
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from emberharmony.core.errors import ArgumentError, DistributedError, brief
from emberharmony.distributed import board, environment, transports
from emberharmony.distributed.transports.transport import LostError, Transport

T = TypeVar("T")
TIMEOUT = 600.0
"""The seconds after which a call fails, by default."""

EXIT = 70
"""The status with which a process ends that is stuck in a call (`EX_SOFTWARE` of sysexits.h)."""

_MARGIN = 10.0
"""The seconds for which a transport may be late with its own time-out before the process is ended."""


class World:
    """The processes of a run; `init` returns it.

    Attributes:
        rank: the number of this process, from 0 on.
        size: how many processes there are.
        local_rank: the number of this process among those on its machine.
        timeout: the seconds after which a call fails.
        transport: what connects the processes.
    """

    def __init__(self, place: environment.Place, transport: Transport, timeout: float) -> None:
        self.rank, self.size, self.timeout = transport.rank, transport.size, timeout
        self.local_rank = place.local_rank
        self.transport = transport
        self._number, self._call = 0, ""
        self._peer: int | None = None
        self._begun: float | None = None
        self._failure: DistributedError | None = None
        self._board: board.Board | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        return f"World(rank={self.rank}, size={self.size}, transport={self.transport.name!r})"

    def run(self, call: str, fn: Callable[[Transport], T], peer: int | None = None) -> T:
        """Returns what a function makes of the transport; all ranks make the same calls in the same order.

        Args:
            call: the name of the collective, for messages.
            fn: uses the transport.
            peer: the only other rank that takes part; such a call has the number of the collective before it.

        Raises:
            DistributedError: if the call does not end in time, or a rank is missing; the message names them.
        """
        if self._failure is not None:
            raise DistributedError(
                f"{call}() on rank {self.rank}: the ranks are no longer in step since an earlier call failed: "
                f"{self._failure}",
                call,
                self._failure.ranks,
            ) from self._failure
        self._number, self._call, self._peer = self._number + (peer is None), call, peer
        self._begun = time.monotonic()
        if self._board is not None:
            self._board.write(board.INSIDE, self._number, call)
        try:
            result = fn(self.transport)
        except BaseException as error:
            self._fail(error)
            if isinstance(error, LostError):
                assert self._failure is not None
                raise self._failure from error.__cause__
            raise
        finally:
            self._begun = None
        if self._board is not None:
            self._board.write(board.OUTSIDE)
        return result

    @property
    def call(self) -> str:
        """The present or last call, for messages."""
        if self._peer is not None:
            return f"{self._call}() with rank {self._peer} (after call {self._number})"
        return board.shown(self._call, self._number)

    def _fail(self, error: BaseException) -> None:
        """Notes that the ranks are no longer in step."""
        if isinstance(error, LostError):
            self._failure = self._lost(str(error))
        else:
            self._failure = DistributedError(f"{self.call} raised {brief(error)}", self.call)
        if self._board is not None:
            self._board.write(board.FAILED)
        self.transport.abandon()

    def _lost(self, reason: str) -> DistributedError:
        """Returns the error of a call that cannot end, with the ranks that keep it from ending."""
        missing = {} if self._board is None else self._board.missing(self._number, self._call, self._peer)
        if missing:
            found = "; ".join(f"rank {rank} {text}" for rank, text in missing.items())
        elif self._board is None:
            found = "the ranks are on several machines, so it is unknown which one is missing"
        else:
            found = "no rank is known to be missing"
        return DistributedError(
            f"{self.call} on rank {self.rank} of {self.size} cannot end: {found} ({reason})", self.call, missing
        )

    def watch(self, path: str) -> None:
        """Uses the board in a file, and starts the thread that looks after this process."""
        self._board = board.Board(path, self.rank, self.size)
        self._start_watching()

    def _start_watching(self) -> None:
        threading.Thread(target=self._watch, name="emberharmony-watch", daemon=True).start()

    def _watch(self) -> None:
        """Gives signs of life, and ends the process if it is stuck in a call or its launcher has gone."""
        launcher = int(os.environ.get(environment.LAUNCHER, "0"))
        parent = os.getppid()
        while True:
            time.sleep(0.25)
            if self._board is not None:
                self._board.beat()
            if launcher and parent == launcher and os.getppid() != launcher:
                os._exit(EXIT)
            begun = self._begun
            if begun is not None and time.monotonic() - begun > self.timeout + _MARGIN:
                self._end_stuck()

    def _end_stuck(self) -> None:
        """Ends this process, whose transport has not noticed that the time is over."""
        error = self._lost(f"the transport has not returned after {self.timeout:g} s")
        sys.stderr.write(f"DistributedError: {error}\n")
        sys.stderr.flush()
        if self._board is not None:
            self._board.write(board.FAILED)
        os._exit(EXIT)

    def share_board(self) -> None:
        """Finds out whether all ranks are on one machine, and gives them a board then."""
        path = os.environ.get(environment.BOARD, "")
        if not path and self.rank == 0:
            # Some file systems for temporary files are not those of the other processes, so they look for it.
            self._folder = tempfile.TemporaryDirectory(prefix="emberharmony-board-", ignore_cleanup_errors=True)
            path = os.path.join(self._folder.name, "board")
            board.make(path, self.size)
        shared = np.zeros(256, np.uint8)
        if self.rank == 0:
            _write(shared, f"{socket.gethostname()}\n{path}")
        self.run("init", lambda transport: transport.broadcast(shared, 0))
        host, _, path = bytes(shared).rstrip(b"\0").decode().partition("\n")
        here = host == socket.gethostname() and os.path.exists(path)
        seen = np.asarray([here], np.uint8)
        everywhere = bool(self.run("init", lambda transport: transport.all_gather(seen)).all())
        if everywhere:
            self.watch(path)
            self.run("init", lambda transport: transport.all_gather(seen))  # all have opened it before one can end
        else:
            self._start_watching()

    def end(self) -> None:
        """Ends the connections; after it, `init` can be called again."""
        if self._failure is None:
            if self._board is not None:
                self._board.write(board.ENDED)
            self.transport.close()
        if self._folder is not None:
            self._folder.cleanup()


_WORLD: World | None = None


def init(transport: str = "auto", timeout: float = TIMEOUT) -> World:
    """Connects this process with the others of its run, and returns the world of all of them.

    Rank and size come from the variables of `emberharmony launch`, torchrun, mpirun, `mlx.launch` or Slurm. A program
    that is started directly is rank 0 of 1. The collectives call this function themselves if the program does not; a
    second call returns the same world.

    Args:
        transport: "torch" (gloo), "torch:nccl", "mlx" (a ring), "mlx:jaccl", "mlx:mpi", "mpi" (by mpi4py), "single",
            or the name of a plugin. "auto" takes the one that fits the launcher. It is the same one on all ranks,
            whatever their backends are.
        timeout: the seconds after which the connection and each call fail.

    Raises:
        ArgumentError: if the time-out is not positive, or the process is connected by another transport.
        DistributedError: if the transport is not available, or a rank does not come in time; the message names it.

    Example:
        >>> from emberharmony import ops
        >>> world = ops.distributed.init()
        >>> world.rank, world.size
        (0, 1)
    """
    global _WORLD
    if not timeout > 0:
        raise ArgumentError(f"init(): timeout is {brief(timeout)}, expected seconds above 0")
    if _WORLD is not None:
        if transport not in ("auto", _WORLD.transport.name, f"{_WORLD.transport.name}:"):
            raise ArgumentError(f"init(): the transport is {_WORLD.transport.name!r} already, not {transport!r}")
        return _WORLD
    place = environment.place()
    name = transports.automatic(place) if transport == "auto" else transport
    path = os.environ.get(environment.BOARD, "")
    early = board.Board(path, place.rank, place.size) if path and place.size > 1 else None
    try:
        connected = transports.connected(name, place, timeout)
    except LostError as error:
        missing = {} if early is None else early.missing(0, "init", wait=0.2)
        found = "".join(f"; rank {rank} {text}" for rank, text in missing.items())
        if early is not None:
            early.write(board.FAILED)
        raise DistributedError(
            f"init() on rank {place.rank} of {place.size} by {name!r}: {error}{found}", "init()", missing
        ) from error
    made = World(place, connected, timeout)
    if made.size > 1:
        made.share_board()
    _WORLD = made
    atexit.register(_end, made)
    return made


def world() -> World:
    """Returns the world of this process; it is connected if it is not yet."""
    return _WORLD if _WORLD is not None else init()


def rank() -> int:
    """Returns the number of this process among those of its run; 0 if it is alone.

    Example:
        >>> from emberharmony import ops
        >>> ops.distributed.rank()
        0
    """
    return world().rank


def size() -> int:
    """Returns how many processes the run has; 1 if this one is alone.

    Example:
        >>> from emberharmony import ops
        >>> ops.distributed.size()
        1
    """
    return world().size


def _end(ended: World) -> None:
    global _WORLD
    if _WORLD is ended:
        _WORLD = None
        ended.end()


def _write(row: Any, text: str) -> None:
    """Writes text into the beginning of a row of bytes, as far as it fits."""
    found = text.encode()[: len(row)]
    row[: len(found)] = np.frombuffer(found, np.uint8)
