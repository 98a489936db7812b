"""The transport over MPI, by the package mpi4py."""

import atexit
import os
import sys
import time
from typing import Any

import mpi4py
import numpy as np

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import LostError, Transport, Vector

mpi4py.rc.finalize = False  # MPI's finalisation waits for missing ranks; `close` calls it only if all ranks are there
from mpi4py import MPI  # noqa: E402

_BUSY = 2000
"""The number of tests of a request that are made without a pause in between."""


class MPITransport(Transport):
    """The transport that sends vectors by a communicator of MPI.

    All calls are those that do not block, because the others have no time-out.
    """

    def __init__(self, place: Place, timeout: float) -> None:
        super().__init__(place, timeout)
        self._world = MPI.COMM_WORLD.Dup()
        atexit.register(self._finalize_unless_failed)
        self._is_lost = False

    def all_sum(self, vector: Vector) -> None:
        """Replaces a vector by the sum of the vectors of all ranks."""
        self._wait(self._world.Iallreduce(MPI.IN_PLACE, vector))

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vectors of all ranks, one in each row."""
        rows = np.empty((self.size, vector.size), vector.dtype)
        self._wait(self._world.Iallgather(vector, rows))
        return rows

    def all_to_all(self, rows: Vector) -> Vector:
        """Sends row r to rank r, and returns the rows received: row r comes from rank r."""
        received_rows = np.empty_like(rows)
        self._wait(self._world.Ialltoall(rows, received_rows))
        return received_rows

    def broadcast(self, vector: Vector, root: int) -> None:
        """Replaces a vector by that of a rank."""
        self._wait(self._world.Ibcast(vector, root))

    def send(self, vector: Vector, to: int) -> None:
        """Sends a vector to a rank."""
        self._wait(self._world.Isend(vector, to))

    def recv(self, vector: Vector, source: int) -> None:
        """Replaces a vector by one that a rank sends."""
        self._wait(self._world.Irecv(vector, source))

    def abandon(self) -> None:
        """Lets the process end without `MPI_Finalize`, so that its launcher ends the others."""
        self._is_lost = True

    def _wait(self, request: Any) -> None:
        """Waits until a nonblocking request of MPI is complete.

        Raises:
            LostError: if it does not end in time.
        """
        test_count, deadline = 0, time.monotonic() + self.timeout
        try:
            while not request.Test():
                test_count += 1
                if test_count > _BUSY:
                    self.require_possible_end("MPI", deadline)
                    time.sleep(min(0.001, 1e-7 * test_count))
                elif not test_count % 100:
                    os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)
        except MPI.Exception as error:
            raise LostError(str(error)) from error

    def _finalize_unless_failed(self) -> None:
        # After an uncaught error other ranks may wait for a call that this rank never makes, and `MPI_Finalize` would
        # wait for them. Without it this process ends, and `mpirun` ends the other ranks.
        if self._is_lost or hasattr(sys, "last_type") or MPI.Is_finalized():
            return
        self._world.Free()
        MPI.Finalize()


def connect(place: Place, option: str, timeout: float) -> Transport:
    """Returns the transport over all processes that MPI started.

    Raises:
        DistributedError: if MPI did not start as many.
    """
    if MPI.COMM_WORLD.size != place.size:
        raise DistributedError(
            f"MPI knows {MPI.COMM_WORLD.size} processes, expected {place.size}; start the program by mpirun"
        )
    return MPITransport(place._replace(rank=MPI.COMM_WORLD.rank), timeout)
