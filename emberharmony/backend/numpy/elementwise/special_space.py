"""The namespaces in which NumPy computes the special functions of `backend.shared`."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.shared.elementwise import special_integrals


def _compute_where(mask: np.ndarray, function: Callable[..., Any], *arguments: Any) -> np.ndarray:
    """Returns an array with a function's results where a mask is true, computed only there, and 0 elsewhere."""
    indices = mask.nonzero()[0]
    if indices.size == mask.size:
        return np.asarray(function(*arguments))
    filled_array = np.zeros(mask.shape)
    if indices.size:
        filled_array[indices] = function(*(x[indices] for x in arguments))
    return filled_array


@functools.lru_cache(maxsize=64)
def _as_column(numbers: tuple[float, ...]) -> np.ndarray:
    return np.reshape(numbers, (-1, 1))


class _Namespace:
    """The namespace of NumPy's functions with which the shared functions compute, on vectors of one length."""

    picks = True
    pick = staticmethod(_compute_where)

    def __init__(self, digits: special_integrals.Digits) -> None:
        self.digits = digits

    @staticmethod
    def entries(table: tuple[float, ...], index: np.ndarray) -> np.ndarray:
        """Returns the entries of a table of numbers at whole indices in float64."""
        return np.asarray(table)[index.astype(np.int64)]

    @staticmethod
    def column(numbers: tuple[float, ...], x: np.ndarray) -> np.ndarray:
        """Returns numbers along a new axis in front of the axis of `x`."""
        return _as_column(numbers)

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        setattr(self, name, function)
        return function


DOUBLE, SINGLE = _Namespace(special_integrals.DOUBLE), _Namespace(special_integrals.SINGLE)
