"""Quantiles, as positions between the elements of a sorted axis, and the arguments of histograms and counts."""

from typing import Any

import numpy as np

from emberharmony.backend.host import plain
from emberharmony.backend.shared.device import check_memory
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError, brief
from emberharmony.core.options import constant

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def places(q: np.ndarray[Any, Any], length: Any, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, for each quantile, the index of the element below, that of the one above, and the weight of the latter.

    Args:
        q: quantiles, float64.
        length: of the axis; or, as a column, the number of elements of each row that are counted.
        method: one of `METHODS`.

    Raises:
        ArgumentError: if the method is unknown, or a quantile is outside [0, 1].
    """
    if method not in METHODS:
        raise ArgumentError(f"method is one of {', '.join(METHODS)}, not {method!r}")
    if not ((q >= 0) & (q <= 1)).all():
        raise ArgumentError(f"quantiles must be from 0 to 1, got {brief(q)}")
    at = q * np.maximum(length - 1, 0)
    low, high = np.floor(at), np.ceil(at)
    if method == "lower":
        at = high = low
    elif method == "higher":
        at = low = high
    elif method == "nearest":
        at = low = high = np.round(at)
    weight = np.where(high > low, 0.5, 0.0) if method == "midpoint" else at - low
    return low.astype(np.int64), high.astype(np.int64), weight


def digits(q: Any) -> np.ndarray:
    """Returns the quantiles of a call as a float64 array.

    Raises:
        UnsupportedOpError: if they are a tensor that is being differentiated.
    """
    return plain(constant("q", q)).astype(np.float64)


def edges(low: float, high: float, bins: int, limits: tuple[float, float] | None) -> np.ndarray:
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
    if bins < 1:
        raise ArgumentError(f"a histogram has at least one bin, not {bins}")
    check_memory((bins,), 8)
    if limits is not None:
        low, high = constant("range", limits)
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ArgumentError(f"the range from {low} to {high} is not finite and ascending")
    # An empty range is widened to length 1, as in np.histogram.
    return np.linspace(low, high, bins + 1) if low < high else np.linspace(low - 0.5, high + 0.5, bins + 1)


def countable(x: np.ndarray) -> np.ndarray:
    """Returns a vector of non-negative integers as int64.

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
