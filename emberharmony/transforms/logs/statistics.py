"""Statistics of the numbers in a tensor, which a log keeps of a result in place of its elements."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from emberharmony.transforms.watchers import values_of


class ValueStatistics(NamedTuple):
    """Statistics of the finite elements of a tensor, in float64; for complex numbers those of their magnitudes.

    Attributes:
        mean: the mean; None, as the others but `finite` and `size`, if no element is finite.
        std: the standard deviation, with the number of elements as its divisor.
        min: the smallest element.
        max: the largest element.
        norm: the root of the sum of squares.
        finite: the number of finite elements.
        size: the number of elements.
    """

    mean: float | None
    std: float | None
    min: float | None
    max: float | None
    norm: float | None
    finite: int
    size: int


def statistics_of(result: Any, backend: Any) -> tuple[ValueStatistics, ...]:
    """Returns the statistics of each tensor in the result of an op.

    Args:
        result: a tensor, or tensors in lists and tuples.
        backend: the backend whose tensors they are.
    """
    if isinstance(result, backend.tensor_type):
        return (backend.statistics(values_of(result)),)
    if isinstance(result, Sequence) and not isinstance(result, str):
        return tuple(statistics for item in result for statistics in statistics_of(item, backend))
    return ()
