"""Sorting, searching and sets, on NumPy."""

import numpy as np

from emberharmony.backend.indices import side_of, top
from emberharmony.backend.numpy.dtypes import promotion


def _argsort(x: np.ndarray, axis: int | None = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.ndim == 0:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    # Reversed twice, equal elements keep their order; NaN would come first, so it is told apart.
    order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    order = x.shape[axis] - 1 - order
    if x.dtype.kind not in "fcV":
        return order
    last = np.take_along_axis(np.isnan(x), order, axis)
    return np.take_along_axis(order, np.argsort(last, axis, kind="stable"), axis)


class NumpySortingOps:
    """Holds the ops of `ops/sorting.py`."""

    argsort = staticmethod(_argsort)

    @staticmethod
    def sort(x: np.ndarray, axis: int | None = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
        if axis is None:
            x, axis = x.reshape(-1), 0
        if x.ndim == 0:
            return x
        if descending:
            return np.take_along_axis(x, _argsort(x, axis, True), axis)
        return np.sort(x, axis)

    @staticmethod
    def top_k(x: np.ndarray, k: int, sorted: bool = True) -> tuple[np.ndarray, np.ndarray]:
        top(x.shape, k)
        order = _argsort(x, -1, True)[..., :k]
        return np.take_along_axis(x, order, -1), order

    @staticmethod
    def searchsorted(sorted_sequence: np.ndarray, values: np.ndarray, side: str = "left") -> np.ndarray:
        a, b = promotion.common(sorted_sequence, values)
        return np.searchsorted(a, b, side_of(side))  # type: ignore[call-overload]

    @staticmethod
    def unique(x: np.ndarray) -> np.ndarray:
        return np.unique(x)

    @staticmethod
    def isin(x1: np.ndarray, x2: np.ndarray, invert: bool = False) -> np.ndarray:
        a, b = promotion.common(x1, x2)
        return np.isin(a, b, invert=invert)
