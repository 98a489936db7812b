"""`World`: the processes of a run, and the collective calls that they make together.

All collectives go through vectors on the host. A transport then has six methods and knows no backend, and ranks can mix
backends; it costs a copy between device and host, and no overlap with the backward pass.
"""

import atexit
import os
import shutil
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
    """The group of all processes of a run, with its transport; `init` returns it.

    Attributes:
        rank: the number of this process, from 0 on.
        size: how many processes there are.
        local_rank: the number of this process among those on its machine.
        timeout: the seconds after which a call fails.
        transport: what connects the processes.

    Args:
        place: which process this is, and where the others are.
        seen: where the processes note their calls; None notes none.
    """

    def __init__(
        self, place: environment.Place, transport: Transport, timeout: float, seen: board.Board | None = None
    ) -> None:
        self.rank, self.size, self.timeout = transport.rank, transport.size, timeout
        self.local_rank = place.local_rank
        self.transport = transport
        self._number, self._call = 0, ""
        self._peer: int | None = None
        self._call_start_time: float | None = None
        self._failure: DistributedError | None = None
        self._board = seen
        self._process, self._call_lock, self._has_ended = os.getpid(), threading.Lock(), threading.Event()

    def __repr__(self) -> str:
        return f"World(rank={self.rank}, size={self.size}, transport={self.transport.name!r})"

    def run(self, call: str, fn: Callable[[Transport], T], peer: int | None = None) -> T:
        """Calls a function with the transport as the next collective call, and returns its result.

        Args:
            call: the name of the collective, for messages.
            fn: uses the transport.
            peer: the only other rank that takes part; such a call has the number of the collective before it. None if
                all take part.

        Raises:
            DistributedError: if the call does not end in time, or a rank is missing; the message names them. Also if
                another thread is in a call, or this process is a copy of the one that has joined.
        """
        if os.getpid() != self._process:
            raise DistributedError(
                f"{call}(): this process was forked from rank {self.rank} (process {self._process}), which alone can "
                f"make calls; start a process that does not by the method 'spawn'",
                call,
            )
        if not self._call_lock.acquire(blocking=False):
            raise DistributedError(
                f"{call}() on rank {self.rank}: another thread is in {self.call}; make all calls in one thread", call
            )
        try:
            return self._run_call(call, fn, peer)
        finally:
            self._call_lock.release()

    def _run_call(self, call: str, fn: Callable[[Transport], T], peer: int | None) -> T:
        if self._failure is not None:
            raise DistributedError(
                f"{call}() on rank {self.rank}: the ranks are no longer in step since an earlier call failed: "
                f"{self._failure}",
                call,
                self._failure.ranks,
            ) from self._failure
        self._number, self._call, self._peer = self._number + (peer is None), call, peer
        self._call_start_time = time.monotonic()
        if self._board is not None:
            self._board.write(board.INSIDE, self._number, call)
        try:
            result = fn(self.transport)
        except BaseException as error:
            self._note_failure(error)
            if isinstance(error, LostError):
                assert self._failure is not None
                raise self._failure from error.__cause__
            raise
        finally:
            self._call_start_time = None
        if self._board is not None:
            self._board.write(board.OUTSIDE)
        return result

    @property
    def call(self) -> str:
        """The text for the present or last collective call in messages."""
        if self._peer is not None:
            return f"{self._call}() with rank {self._peer} (after call {self._number})"
        return board.call_label(self._call, self._number)

    def _note_failure(self, error: BaseException) -> None:
        """Records the error of a failed call, after which the ranks are no longer in step and further calls fail."""
        if isinstance(error, LostError):
            self._failure = self._lost_error(str(error))
        else:
            self._failure = DistributedError(f"{self.call} raised {brief(error)}", self.call)
        if self._board is not None:
            self._board.write(board.FAILED)
        self.transport.abandon()

    def _lost_error(self, reason: str) -> DistributedError:
        """Returns the error of a call that cannot end, with the ranks that keep it from ending."""
        reason_by_rank = (
            {} if self._board is None else self._board.missing_rank_reasons(self._number, self._call, self._peer)
        )
        if reason_by_rank:
            reasons_text = "; ".join(f"rank {rank} {text}" for rank, text in reason_by_rank.items())
        elif self._board is None:
            reasons_text = "it is unknown which rank is missing, because the ranks do not share a machine"
        else:
            reasons_text = "no rank is known to be missing"
        return DistributedError(
            f"{self.call} on rank {self.rank} of {self.size} cannot end: {reasons_text} ({reason})",
            self.call,
            reason_by_rank,
        )

    def _watch(self) -> None:
        """Runs in a thread: writes signs of life on the board, and ends calls that can no longer end by themselves."""
        while not self._has_ended.wait(0.25):
            if self._board is not None:
                self._board.beat()
            call_start_time = self._call_start_time
            waited_seconds = 0.0 if call_start_time is None else time.monotonic() - call_start_time
            if waited_seconds > 0.5 and self._board is not None and self._board.is_hopeless(self._number, self._peer):
                self.transport.is_hopeless = True
            if waited_seconds > self.timeout + _MARGIN:
                self._end_stuck_process()

    def _end_stuck_process(self) -> None:
        """Prints an error and ends this process, because its transport did not return after the time-out."""
        error = self._lost_error(f"the transport has not returned after {self.timeout:g} s")
        sys.stderr.write(f"DistributedError: {error}\n")
        sys.stderr.flush()
        if self._board is not None:
            self._board.write(board.FAILED)
        os._exit(EXIT)

    def share_board(self) -> None:
        """Opens a common board if all ranks are on one machine, and starts the thread that watches the calls.

        The board is that of `emberharmony launch`. With another launcher rank 0 makes one, which has no name any more
        when all have opened it.
        """
        temporary_folder = ""
        if self._board is None and self.rank == 0:
            temporary_folder = tempfile.mkdtemp(prefix="emberharmony-board-")
            board.create_file(os.path.join(temporary_folder, "board"), self.size)
        try:
            # Processes may have different file systems for temporary files, so each one checks that the file exists.
            board_path = (
                os.path.join(temporary_folder, "board") if temporary_folder else os.environ.get(environment.BOARD, "")
            )
            shared_bytes = np.zeros(256, np.uint8)
            if self.rank == 0:
                _write_text(shared_bytes, f"{socket.gethostname()}\n{board_path}")
            self.run("init", lambda transport: transport.broadcast(shared_bytes, 0))
            host, _, board_path = bytes(shared_bytes).rstrip(b"\0").decode().partition("\n")
            sees_board = host == socket.gethostname() and os.path.exists(board_path)
            if not sees_board:
                self._board = None
            elif self._board is None:
                self._board = board.Board(board_path, self.rank, self.size)
            sees_board_flag = np.asarray([sees_board], np.uint8)
            if not self.run("init", lambda transport: transport.all_gather(sees_board_flag)).all():
                self._board = None
            self.run(
                "init", lambda transport: transport.all_gather(sees_board_flag)
            )  # all ranks have opened the board now
        finally:
            if temporary_folder:
                shutil.rmtree(temporary_folder, ignore_errors=True)
        threading.Thread(target=self._watch, name="emberharmony-watch", daemon=True).start()

    def end(self) -> None:
        """Ends the connections with the other ranks; afterwards `init` can be called again."""
        self._has_ended.set()
        if self._failure is None and os.getpid() == self._process:
            if self._board is not None:
                self._board.write(board.ENDED)
            self.transport.close()


_WORLD: World | None = None


def init(transport: str = "auto", timeout: float | None = None) -> World:
    """Connects this process with the others of its run, and returns the world of all of them.

    Rank and size come from the variables of `emberharmony launch`, torchrun, mpirun, `mlx.launch` or Slurm. A program
    that is started directly is rank 0 of 1. The collectives call this function themselves if the program does not; a
    second call returns the same world.

    Args:
        transport: "torch" (gloo), "torch:nccl", "mlx" (a ring), "mlx:jaccl", "mlx:mpi", "mpi" (by mpi4py), "single",
            or the name of a plugin. "auto" takes the one that fits the launcher. It is the same one on all ranks,
            whatever their backends are.
        timeout: the seconds after which the connection and each call fail; None is 600.

    Raises:
        ArgumentError: if the time-out is not positive, or the process is connected by another transport or with
            another time-out.
        DistributedError: if the transport is not available, or a rank does not come in time; the message names it.

    Example:
        >>> from emberharmony import ops
        >>> world = ops.distributed.init()
        >>> world.rank, world.size
        (0, 1)
    """
    global _WORLD
    if timeout is not None and not timeout > 0:
        raise ArgumentError(f"init(): timeout is {brief(timeout)}, expected seconds above 0")
    if _WORLD is not None:
        if transport != "auto" and transports.full_name(transport) != transports.full_name(_WORLD.transport.name):
            raise ArgumentError(f"init(): the transport is {_WORLD.transport.name!r} already, not {transport!r}")
        if timeout not in (None, _WORLD.timeout):
            raise ArgumentError(
                f"init(): the time-out is {_WORLD.timeout:g} s since the first call of init(), or of a collective "
                f"without it, not {timeout:g} s; call init() with the time-out first"
            )
        return _WORLD
    timeout = TIMEOUT if timeout is None else timeout
    own_place = environment.process_place()
    transport_name = transports.automatic_transport_name(own_place) if transport == "auto" else transport
    board_path = os.environ.get(environment.BOARD, "")
    early_board = board.Board(board_path, own_place.rank, own_place.size) if board_path and own_place.size > 1 else None
    try:
        # The ranks are awaited on the board before they connect, because MLX's ring waits at most 15 s for a late rank.
        if early_board is not None and early_board.absent_ranks(timeout):
            raise LostError(f"not all ranks have come within {timeout:g} s")
        new_transport = transports.connect(transport_name, own_place, timeout)
    except LostError as error:
        reason_by_rank = {} if early_board is None else early_board.missing_rank_reasons(0, "init", wait=0.2)
        reasons_text = "".join(f"; rank {rank} {text}" for rank, text in reason_by_rank.items())
        if early_board is not None:
            early_board.write(board.FAILED)
        raise DistributedError(
            f"init() on rank {own_place.rank} of {own_place.size} by {transport_name!r}: {error}{reasons_text}",
            "init()",
            reason_by_rank,
        ) from error
    world = World(own_place, new_transport, timeout, early_board)
    if world.size > 1:
        world.share_board()
    _WORLD = world
    atexit.register(_close_world, world)
    return world


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


def _close_world(world: World) -> None:
    global _WORLD
    if _WORLD is world:
        _WORLD = None
        world.end()


def _write_text(row: Any, text: str) -> None:
    """Writes a text into the beginning of a byte array, cut off if it is too long."""
    encoded_text = text.encode()[: len(row)]
    row[: len(encoded_text)] = np.frombuffer(encoded_text, np.uint8)
