"""Checks and host computations of histograms and of counts of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberharmony.backend.shared.device import check_memory
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError, brief
from emberharmony.core.options import constant

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def histogram_edges(low: float, high: float, bins: int, limits: tuple[float, float] | None) -> np.ndarray:
    """Returns the bin edges of a histogram in float64.

    Args:
        low: the smallest number.
        high: the largest number.
        bins: the number of bins.
        limits: the range, if it is not from `low` to `high`.

    Raises:
        ArgumentError: if there are no bins, or the range is not finite and ascending.
        OutOfMemoryError: if no memory holds so many bins.
        UnsupportedOpError: if the range holds a tensor that is being differentiated.
    """
    if as_index(bins) < 1:
        raise ArgumentError(f"a histogram has at least one bin, not {bins}")
    check_memory((bins,), 8)
    if limits is not None:
        low_and_high = [float(edge) for edge in constant("range", limits)]
        if len(low_and_high) != 2:
            raise ArgumentError(f"a range is a pair (low, high), not {brief(limits)}")
        low, high = low_and_high
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ArgumentError(f"the range from {low} to {high} is not finite and ascending")
    # An empty range is widened to length 1, as in np.histogram.
    return np.linspace(low, high, bins + 1) if low < high else np.linspace(low - 0.5, high + 0.5, bins + 1)


def check_weights(weights: Any, x: Any) -> None:
    """Checks that the weights of a count or histogram are one for each element of the vector.

    Raises:
        ShapeError: if it does not; some libraries would broadcast the weights.
    """
    if tuple(weights.shape) != tuple(x.shape):
        raise ShapeError(f"expected weights of shape {tuple(x.shape)}, got {tuple(weights.shape)}")


def integers_to_count(x: np.ndarray) -> np.ndarray:
    """Returns a vector to count as int64, checked to consist of non-negative integers.

    Raises:
        ArgumentError: if an integer is negative.
        DTypeError: if the numbers are not integers.
        ShapeError: if it is not a vector.
    """
    if x.ndim != 1:
        raise ShapeError(f"expected a vector of integers to count, got shape {x.shape}")
    if x.dtype.kind not in "biu":
        raise DTypeError(f"expected integers to count, got {x.dtype}")
    if x.size and x.min() < 0:
        raise ArgumentError(f"expected non-negative integers to count, got {int(x.min())}")
    return x.astype(np.int64)


def count_integers(x: np.ndarray, weights: np.ndarray | None, minlength: int) -> np.ndarray:
    """Returns how often each integer from 0 occurs, as int64, or the sums of its weights, as float64.

    Raises:
        EmberError: as `integers_to_count` does.
    """
    return np.bincount(integers_to_count(x), weights if weights is None else weights.astype(np.float64), minlength)


def histogram(x: np.ndarray, bins: int, range: tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the counts of the elements of a vector in bins, as int64, and the edges in the dtype of the vector.

    Raises:
        ArgumentError: if there are no bins or the range is empty.
    """
    bin_edges = histogram_edges(float(x.min()) if x.size else 0.0, float(x.max()) if x.size else 1.0, bins, range)
    bin_counts, bin_edges = np.histogram(x, bin_edges.astype(x.dtype))
    return bin_counts.astype(np.int64), bin_edges
