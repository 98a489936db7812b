"""Quantiles: which elements of a sorted axis each one lies between, and how far."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def places(q: np.ndarray[Any, Any], length: int, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the lower index, the upper index and the weight of the upper one for each quantile.

    Raises: ArgumentError for an unknown method or quantiles outside [0, 1].
    """
    if method not in METHODS:
        raise ArgumentError(f"method is one of {', '.join(METHODS)}, not {method!r}")
    if not ((q >= 0) & (q <= 1)).all():
        raise ArgumentError("quantiles lie between 0 and 1")
    at = q.astype(np.float64) * (length - 1)
    low, high = np.floor(at).astype(np.int64), np.ceil(at).astype(np.int64)
    weight = at - low
    if method == "lower":
        weight = np.zeros_like(weight)
    elif method == "higher":
        weight = np.where(high > low, 1.0, 0.0)
    elif method == "midpoint":
        weight = np.where(high > low, 0.5, 0.0)
    elif method == "nearest":
        weight = np.where(high > low, np.round(at) - low, 0.0)
    return low, high, weight


def edges(low: float, high: float, bins: int, limits: tuple[float, float] | None) -> np.ndarray:
    """Returns the edges of a histogram.

    Raises: ArgumentError for no bins or an empty range.
    """
    if bins < 1:
        raise ArgumentError(f"a histogram has at least one bin, not {bins}")
    if limits is not None:
        low, high = limits
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ArgumentError(f"the range from {low} to {high} is not finite and ascending")
    return np.linspace(low, high, bins + 1) if low < high else np.linspace(low - 0.5, high + 0.5, bins + 1)
