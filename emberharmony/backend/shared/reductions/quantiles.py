"""The positions of quantiles between the elements of a sorted axis."""

from typing import Any

import numpy as np

from emberharmony.backend.host import plain_array
from emberharmony.core.errors import ArgumentError, brief
from emberharmony.core.options import constant

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile_neighbours(q: np.ndarray[Any, Any], length: Any, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, for each quantile, the indices of the elements below and above, and the weight of the upper one.

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
    positions = q * np.maximum(length - 1, 0)
    lower_indices, upper_indices = np.floor(positions), np.ceil(positions)
    if method == "lower":
        positions = upper_indices = lower_indices
    elif method == "higher":
        positions = lower_indices = upper_indices
    elif method == "nearest":
        positions = lower_indices = upper_indices = np.round(positions)
    upper_weight = (
        np.where(upper_indices > lower_indices, 0.5, 0.0) if method == "midpoint" else positions - lower_indices
    )
    return lower_indices.astype(np.int64), upper_indices.astype(np.int64), upper_weight


def quantile_array(q: Any) -> np.ndarray:
    """Returns the quantiles that a call asks for as a float64 array, checked not to be differentiated.

    Raises:
        UnsupportedOpError: if they are a tensor that is being differentiated.
    """
    return plain_array(constant("q", q)).astype(np.float64)
