"""`Transport`, the base class of the ways in which the processes of a run exchange vectors."""

import time
from typing import Any

import numpy as np

from emberharmony.distributed.environment import Place

Vector = np.ndarray[Any, Any]


class LostError(Exception):
    """Raised by a transport if a call cannot end: a rank is missing, or the time is over.

    The collectives find out which rank it is, and raise a `DistributedError`.
    """


class Transport:
    """The base class of transports; they exchange host arrays, so that each rank may use another backend.

    A subclass defines `all_sum`, `all_gather`, `broadcast`, `send` and `recv`, on vectors that are contiguous. Those of
    `all_sum` are int32, int64, float32 or float64, the others uint8. Each raises `LostError` after the time-out if it
    can.

    Args:
        place: rank and size.
        timeout: the seconds after which a call fails.

    Attributes:
        rank: the number of this process.
        size: how many there are.
        name: by which `init` finds it, with its option, such as "torch:gloo".
        is_hopeless: whether a rank is known to have ended that the present call needs; another thread sets it.
    """

    name: str = ""

    def __init__(self, place: Place, timeout: float) -> None:
        self.rank, self.size, self.timeout = place.rank, place.size, timeout
        self.is_hopeless = False

    def all_sum(self, vector: Vector) -> None:
        """Replaces a vector by the sum of the vectors of all ranks, in any order of summation."""
        raise NotImplementedError

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vectors of all ranks, one in each row."""
        raise NotImplementedError

    def broadcast(self, vector: Vector, root: int) -> None:
        """Replaces a vector by that of a rank."""
        raise NotImplementedError

    def send(self, vector: Vector, to: int) -> None:
        """Sends a vector to a rank."""
        raise NotImplementedError

    def recv(self, vector: Vector, source: int) -> None:
        """Replaces a vector by one that a rank sends."""
        raise NotImplementedError

    def all_to_all(self, rows: Vector) -> Vector:
        """Sends row r to rank r, and returns the rows received: row r comes from rank r.

        This one gathers everything; a transport that can do better overrides it.
        """
        all_rows = self.all_gather(rows.reshape(-1)).reshape(self.size, *rows.shape)
        return np.ascontiguousarray(all_rows[:, self.rank])

    def reaches(self, rank: int) -> bool:
        """Returns whether `send` and `recv` reach a rank."""
        return True

    def require_possible_end(self, library: str, until: float) -> None:
        """Raises a `LostError` if a call cannot end any more, for libraries that would wait for ever.

        Args:
            library: what makes the call.
            until: when the time is over.

        Raises:
            LostError: if a rank that it needs has ended, or the time is over.
        """
        if self.is_hopeless:
            raise LostError(f"{library} waits for it")
        if time.monotonic() > until:
            raise LostError(f"{library} has not ended the call within {self.timeout:g} s")

    def close(self) -> None:
        """Ends the connections after the last call."""

    def abandon(self) -> None:
        """Drops the connections after a failed call, without waiting for other ranks."""
