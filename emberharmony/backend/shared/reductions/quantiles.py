"""The positions of quantiles between the elements of a sorted axis."""

from typing import Any

import numpy as np

from emberharmony.backend.host import plain_array
from emberharmony.core.errors import ArgumentError, brief
from emberharmony.core.options import constant

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def places(q: np.ndarray[Any, Any], length: Any, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    position = q * np.maximum(length - 1, 0)
    lower_index, upper_index = np.floor(position), np.ceil(position)
    if method == "lower":
        position = upper_index = lower_index
    elif method == "higher":
        position = lower_index = upper_index
    elif method == "nearest":
        position = lower_index = upper_index = np.round(position)
    upper_weight = np.where(upper_index > lower_index, 0.5, 0.0) if method == "midpoint" else position - lower_index
    return lower_index.astype(np.int64), upper_index.astype(np.int64), upper_weight


def quantile_array(q: Any) -> np.ndarray:
    """Returns the quantiles that a call asks for as a float64 array, checked not to be differentiated.

    Raises:
        UnsupportedOpError: if they are a tensor that is being differentiated.
    """
    return plain_array(constant("q", q)).astype(np.float64)
