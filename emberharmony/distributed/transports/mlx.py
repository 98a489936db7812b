"""The transport over `mlx.core.distributed`: a ring of sockets, JACCL over Thunderbolt, or MPI."""

import json
import os
import queue
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import LostError, Transport, Vector


class MLXTransport(Transport):
    """Carries vectors by a group of MLX.

    MLX 0.32 has no time-outs. So a thread makes the calls, and the caller waits for it no longer than the time-out.

    Args:
        place: rank and size.
        option: "ring", "jaccl", "mpi", or "any".
        timeout: the seconds after which a call fails.
    """

    name = "mlx"

    def __init__(self, place: Place, option: str, timeout: float) -> None:
        super().__init__(place, timeout)
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="emberharmony-mlx", daemon=True).start()
        self._is_ring = option == "ring"
        self._hostfile = _hostfile(place) if self._is_ring and "MLX_HOSTFILE" not in os.environ else None
        self._group: Any = self._run(lambda: mx.distributed.init(strict=True, backend=option))
        found = self._group.rank(), self._group.size()
        if found != (place.rank, place.size):
            raise DistributedError(f"MLX is rank {found[0]} of {found[1]}, expected {place.rank} of {place.size}")

    def all_sum(self, vector: Vector) -> None:
        """Replaces a vector by the sum of those of all ranks."""
        self._into(vector, mx.distributed.all_sum)

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vectors of all ranks, one in each row."""
        rows = np.empty((self.size, vector.size), vector.dtype)
        self._into(rows, lambda x, **where: mx.distributed.all_gather(x, **where).reshape(rows.shape), vector)
        return rows

    def broadcast(self, vector: Vector, root: int) -> None:
        """Replaces a vector by that of a rank: the others add zeros to its bytes."""
        if self.rank != root:
            vector[...] = 0
        self.all_sum(vector)

    def send(self, vector: Vector, to: int) -> None:
        """Sends a vector to a rank."""
        self._require_neighbour(to)
        self._into(None, lambda x, **where: mx.distributed.send(x, to, **where), vector)

    def recv(self, vector: Vector, source: int) -> None:
        """Replaces a vector by one that a rank sends."""
        self._require_neighbour(source)
        self._into(vector, lambda x, **where: mx.distributed.recv(x.shape, x.dtype, source, **where))

    def close(self) -> None:
        """Ends the thread."""
        self._tasks.put(None)
        if self._hostfile:
            os.unlink(self._hostfile)
            self._hostfile = None

    def _require_neighbour(self, rank: int) -> None:
        """Checks that a message can reach a rank.

        Raises:
            DistributedError: if it is not next to this one in the ring.
        """
        if self._is_ring and (rank - self.rank) % self.size not in (1, self.size - 1):
            raise DistributedError(
                f"the ring of MLX sends to neighbours only, but rank {rank} is not next to rank {self.rank} of "
                f"{self.size}; use the transport 'torch' or 'mpi'"
            )

    def _into(self, out: Vector | None, fn: Callable[..., Any], given: Vector | None = None) -> None:
        """Writes the result of a function of MLX for a vector into another one, or into the vector itself."""
        vector: Any = out if given is None else given

        def made() -> Any:
            # On the CPU also where there is a GPU: the vectors are in the memory of the host.
            result = fn(mx.array(vector), group=self._group, stream=mx.cpu)
            mx.eval(result)
            return np.array(result)

        result = self._run(made)
        if out is not None:
            out[...] = result.reshape(out.shape)

    def _run(self, fn: Callable[[], Any]) -> Any:
        """Returns the result of a function, which the thread calls.

        Raises:
            LostError: if it fails, or takes longer than the time-out.
        """
        done = threading.Event()
        results: list[Any] = []
        self._tasks.put((fn, results, done))
        if not done.wait(self.timeout):
            raise LostError(f"MLX has not ended the call within {self.timeout:g} s")
        if isinstance(results[0], Exception):
            raise LostError(str(results[0])) from results[0]
        return results[0]

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            fn, results, done = task
            try:
                results.append(fn())
            except Exception as error:  # noqa: BLE001  (the caller raises it)
                results.append(error)
            done.set()


def _hostfile(place: Place) -> str:
    """Writes the addresses of the ring for processes on one machine, and returns the file.

    Raises:
        DistributedError: if the processes are on several machines, whose addresses only a launcher knows.
    """
    if not place.is_local:
        raise DistributedError("MLX_HOSTFILE is not set; start the program by mlx.launch or emberharmony launch")
    file, path = tempfile.mkstemp(prefix="emberharmony-ring-", suffix=".json")
    with os.fdopen(file, "w") as opened:
        json.dump([[f"127.0.0.1:{place.port + 1 + rank}"] for rank in range(place.size)], opened)
    os.environ.update(MLX_HOSTFILE=path, MLX_RANK=str(place.rank))
    return path


def connect(place: Place, option: str, timeout: float) -> Transport:
    """Returns the transport over a ring, or over what the option names.

    Raises:
        DistributedError: if this MLX lacks it.
    """
    option = option or "ring"
    if option != "any" and not mx.distributed.is_available(option):
        raise DistributedError(f"the transport 'mlx:{option}' is not available in this MLX")
    return MLXTransport(place, option, timeout)
