"""How fast this machine multiplies matrices and moves memory, measured once for each backend and device."""

from time import perf_counter
from typing import Any, NamedTuple

_WIDTH = 512
"""The width of the matrices that are multiplied."""

_LENGTH = 2**23
"""The number of float32 that are added to a number: 32 MB, more than the caches of most machines."""

_SECONDS, _ROUNDS = 0.1, 20
"""A measurement ends after this time, and at the latest after so many rounds."""


class Rates(NamedTuple):
    """The arithmetic operations, and the bytes of memory, that a machine handles per second.

    Attributes:
        operations: operations per second of a product of float32 matrices.
        bytes: bytes per second that an op reads and writes.
    """

    operations: float
    bytes: float

    def least_seconds(self, operations: int, moved_bytes: int) -> float:
        """Returns the time of a call at these rates: that of the arithmetic, or that of the memory if it is longer."""
        return max(operations / self.operations, moved_bytes / self.bytes)


_MEASURED: dict[tuple[str, str], Rates] = {}


def rates(backend: Any) -> Rates:
    """Returns the rates of a backend on its default device, which are measured at the first call."""
    ops = backend.without_watchers.bound
    key = backend.name, ops.get_default_device()
    if key not in _MEASURED:
        matrix = ops.ones((_WIDTH, _WIDTH), "float32")
        vector = ops.ones((_LENGTH,), "float32")
        product_seconds = _least_seconds(backend, lambda: ops.matmul(matrix, matrix))
        seconds_of_add = _least_seconds(backend, lambda: ops.add(vector, 1.0))
        _MEASURED[key] = Rates(2 * _WIDTH**3 / product_seconds, 2 * 4 * _LENGTH / seconds_of_add)
    return _MEASURED[key]


def _least_seconds(backend: Any, call: Any) -> float:
    """Returns the shortest of the times, in seconds, that repeated calls of a function take."""
    backend.wait_for([call()])
    call_seconds: list[float] = []
    while not call_seconds or (sum(call_seconds) < _SECONDS and len(call_seconds) < _ROUNDS):
        start_time = perf_counter()
        backend.wait_for([call()])
        call_seconds.append(perf_counter() - start_time)
    return min(call_seconds)
