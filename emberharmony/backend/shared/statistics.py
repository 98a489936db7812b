"""Quantiles: which elements of a sorted axis each one lies between, and how far."""

from typing import Any

import numpy as np

from emberharmony.backend.host import plain
from emberharmony.backend.shared.device import check_memory
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError
from emberharmony.core.options import constant

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def places(q: np.ndarray[Any, Any], length: Any, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the lower index, the upper index and the weight of the upper one for each quantile.

    Args:
        q: quantiles, float64.
        length: of the axis, or how many elements of each row count, as a column.

    Raises: ArgumentError for an unknown method or quantiles outside [0, 1].
    """
    if method not in METHODS:
        raise ArgumentError(f"method is one of {', '.join(METHODS)}, not {method!r}")
    if not ((q >= 0) & (q <= 1)).all():
        raise ArgumentError("quantiles lie between 0 and 1")
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
    """Returns numbers in float64."""
    return plain(constant("q", q)).astype(np.float64)


def edges(low: float, high: float, bins: int, limits: tuple[float, float] | None) -> np.ndarray:
    """Returns the edges of a histogram.

    Raises: ArgumentError for no bins or an empty range.
    """
    if bins < 1:
        raise ArgumentError(f"a histogram has at least one bin, not {bins}")
    check_memory((bins,), 8)
    if limits is not None:
        low, high = constant("range", limits)
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ArgumentError(f"the range from {low} to {high} is not finite and ascending")
    return np.linspace(low, high, bins + 1) if low < high else np.linspace(low - 0.5, high + 0.5, bins + 1)


def countable(x: np.ndarray) -> np.ndarray:
    """Returns a vector of integers from 0 as int64.

    Raises: ShapeError, DTypeError, ArgumentError for what is none.
    """
    if x.ndim != 1:
        raise ShapeError(f"the integers to count are a vector, not of shape {x.shape}")
    if x.dtype.kind not in "biu":
        raise DTypeError(f"integers are counted, not {x.dtype}")
    if x.size and x.min() < 0:
        raise ArgumentError(f"integers from 0 on are counted, not {int(x.min())}")
    return x.astype(np.int64)
