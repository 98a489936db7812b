"""`Transport`: what carries bytes between the processes of a run."""

from typing import Any, ClassVar

import numpy as np

from emberharmony.distributed.environment import Place

Vector = np.ndarray[Any, Any]


class LostError(Exception):
    """Raised by a transport if a call cannot end: a rank is missing, or the time is over.

    The collectives find out which rank it is, and raise a `DistributedError`.
    """


class Transport:
    """The base of transports, which carry host arrays, so that each rank may have another backend.

    A subclass defines `all_sum`, `all_gather`, `broadcast`, `send` and `recv`, on vectors that are contiguous. Those of
    `all_sum` are int32, int64, float32 or float64, the others uint8. Each raises `LostError` after the time-out if it
    can.

    Args:
        place: rank and size.
        timeout: the seconds after which a call fails.

    Attributes:
        rank: the number of this process.
        size: how many there are.
        is_linked: whether a send reaches every rank, and not only the neighbours.
    """

    name: ClassVar[str] = ""

    def __init__(self, place: Place, timeout: float) -> None:
        self.rank, self.size, self.timeout = place.rank, place.size, timeout

    def all_sum(self, vector: Vector) -> None:
        """Replaces a vector by the sum of those of all ranks, in any order of summation."""
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
        """Sends row r to rank r, and returns the rows that come, that of rank r in row r.

        This one gathers everything; a transport that can do better overrides it.
        """
        everything = self.all_gather(rows.reshape(-1)).reshape(self.size, *rows.shape)
        return np.ascontiguousarray(everything[:, self.rank])

    def close(self) -> None:
        """Ends the connections after the last call."""

    def abandon(self) -> None:
        """Gives the connections up after a call that failed, without waiting for other ranks."""
