"""The transport over `mlx.core.distributed`: a ring of sockets, JACCL over Thunderbolt, or MPI."""

import contextlib
import json
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.single import SingleTransport
from emberharmony.distributed.transports.transport import LostError, Transport, Vector


class MLXTransport(Transport):
    """The transport that sends vectors by a group of `mlx.core.distributed`.

    MLX 0.32 has no time-outs. So a thread makes the calls, and the caller waits for it no longer than the time-out.

    Args:
        place: rank and size.
        option: "ring", "jaccl", "mpi", or "any".
        timeout: the seconds after which a call fails.
    """

    def __init__(self, place: Place, option: str, timeout: float) -> None:
        super().__init__(place, timeout)
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._run_tasks, name="emberharmony-mlx", daemon=True).start()
        self._is_ring = option == "ring"
        with _ring_environment(place) if self._is_ring else contextlib.nullcontext():
            self._group: Any = self._run_in_thread(lambda: mx.distributed.init(strict=True, backend=option))
        rank_and_size = self._group.rank(), self._group.size()
        if rank_and_size != (place.rank, place.size):
            raise DistributedError(
                f"MLX is rank {rank_and_size[0]} of {rank_and_size[1]}, expected {place.rank} of {place.size}"
            )

    def all_sum(self, vector: Vector) -> None:
        """Replaces a vector by the sum of the vectors of all ranks."""
        self._write_result(vector, mx.distributed.all_sum)

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vectors of all ranks, one in each row."""
        rows = np.empty((self.size, vector.size), vector.dtype)
        self._write_result(rows, lambda x, **where: mx.distributed.all_gather(x, **where).reshape(rows.shape), vector)
        return rows

    def broadcast(self, vector: Vector, root: int) -> None:
        """Replaces a vector by that of a rank: the others add zeros to its bytes."""
        if self.rank != root:
            vector[...] = 0
        self.all_sum(vector)

    def send(self, vector: Vector, to: int) -> None:
        """Sends a vector to a rank."""
        self._write_result(None, lambda x, **where: mx.distributed.send(x, to, **where), vector)

    def recv(self, vector: Vector, source: int) -> None:
        """Replaces a vector by one that a rank sends."""
        self._write_result(vector, lambda x, **where: mx.distributed.recv(x.shape, x.dtype, source, **where))

    def close(self) -> None:
        """Ends the thread that calls MLX."""
        self._tasks.put(None)

    def reaches(self, rank: int) -> bool:
        """Returns whether a message reaches a rank: in a ring, whether it is next to this one."""
        return not self._is_ring or (rank - self.rank) % self.size in (1, self.size - 1)

    def _write_result(self, out: Vector | None, fn: Callable[..., Any], given_vector: Vector | None = None) -> None:
        """Calls a collective of MLX on a vector, and writes its result into an output vector."""
        source_vector: Any = out if given_vector is None else given_vector

        def run_on_cpu() -> Any:
            # The vectors are in the memory of the host, so MLX computes on the CPU, also where there is a GPU.
            # The dtype is given because `mx.array` converts float64 to float32 by default.
            sent_array = mx.array(source_vector, dtype=getattr(mx, source_vector.dtype.name))
            result_array = fn(sent_array, group=self._group, stream=mx.cpu)
            mx.eval(result_array)
            return np.array(result_array)

        output_array = self._run_in_thread(run_on_cpu)
        if out is not None:
            out[...] = output_array.reshape(out.shape)

    def _run_in_thread(self, fn: Callable[[], Any]) -> Any:
        """Calls a function in the transport's own thread, waits for it, and returns its result.

        Raises:
            LostError: if it fails, or takes longer than the time-out.
        """
        done_event = threading.Event()
        outcomes: list[Any] = []
        self._tasks.put((fn, outcomes, done_event))
        deadline = time.monotonic() + self.timeout
        while not done_event.wait(0.2):
            if self.is_hopeless and done_event.wait(2.0):  # MLX itself notices most ends within 2 s
                break
            self.require_possible_end("MLX", deadline)
        if isinstance(outcomes[0], Exception):
            raise LostError(str(outcomes[0])) from outcomes[0]
        return outcomes[0]

    def _run_tasks(self) -> None:
        while (task := self._tasks.get()) is not None:
            task_function, outcomes, done_event = task
            try:
                outcomes.append(task_function())
            except Exception as error:  # noqa: BLE001  (the caller raises it)
                outcomes.append(error)
            done_event.set()


@contextlib.contextmanager
def _ring_environment(place: Place) -> Iterator[None]:
    """Sets the variables of MLX for a ring on one machine during a block, unless the launcher has set them.

    Raises:
        DistributedError: if the processes are on several machines, whose addresses only a launcher knows.
    """
    if "MLX_HOSTFILE" in os.environ:
        yield
        return
    if not place.is_local:
        raise DistributedError("MLX_HOSTFILE is not set; start the program by mlx.launch or emberharmony launch")
    with tempfile.NamedTemporaryFile("w", prefix="emberharmony-ring-", suffix=".json") as file:
        json.dump([[f"127.0.0.1:{place.port + 1 + rank}"] for rank in range(place.size)], file)
        file.flush()
        value_by_variable = {"MLX_HOSTFILE": file.name, "MLX_RANK": str(place.rank)}
        os.environ.update(value_by_variable)
        try:
            yield
        finally:
            for name in value_by_variable:
                del os.environ[name]


def connect(place: Place, option: str, timeout: float) -> Transport:
    """Connects a transport over MLX's ring, or over the backend of MLX that the option names.

    Raises:
        DistributedError: if this MLX lacks it.
    """
    if option == "ring" and place.size == 1:  # MLX 0.32 cannot connect a process with itself
        return SingleTransport(place, timeout)
    if option != "any" and not mx.distributed.is_available(option):
        raise DistributedError(f"the transport 'mlx:{option}' is not available in this MLX")
    return MLXTransport(place, option, timeout)
