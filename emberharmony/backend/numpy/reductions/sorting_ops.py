"""Sorting, searching and sets, on NumPy."""

from typing import Literal

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.promote import nonnegative_axis
from emberharmony.backend.shared.reductions.sorting import WithUnique, check_top_k, checked_side, checked_sorter
from emberharmony.core.errors import ShapeError

_COMPLEX = ("complex",)


def _as_sortable(x: np.ndarray) -> np.ndarray:
    """Returns bfloat16 as float32, because NumPy does not sort ml_dtypes 0.6's bfloat16 correctly if there are NaN."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _has_negative_zero(x: np.ndarray) -> bool:
    return x.dtype.kind == "f" and bool(np.signbit(x[x == 0]).any())


def _reverse_order(x: np.ndarray) -> np.ndarray:
    """Returns numbers whose ascending order is the descending order of `x`, NaN still last; its own inverse."""
    return -x if x.dtype.kind in "fV" else ~x


def _array_and_axis(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, int]:
    """Returns `x` and the axis to sort; without an axis, the flattened `x` and 0. A 0-d tensor takes axis 0 too."""
    if axis is None:
        return x.reshape(-1), 0
    axis = nonnegative_axis(axis, max(x.ndim, 1))
    return x, axis


def _argsort(x: np.ndarray, axis: int | None = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
    promotion.refuse(x, _COMPLEX)
    x, axis = _array_and_axis(x, axis)
    if x.ndim == 0:
        return np.zeros((), np.int64)
    x = _as_sortable(x)
    return np.argsort(_reverse_order(x) if descending else x, axis, kind="stable")


class NumpySortingOps(WithUnique):
    """Holds the ops of `ops/reductions/sorting.py`.

    The bodies take up to 16 times as long (searchsorted), for few elements, and compare each pair of elements.
    """

    argsort = staticmethod(_argsort)

    @staticmethod
    def sort(x: np.ndarray, axis: int | None = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
        promotion.refuse(x, _COMPLEX)
        x, axis = _array_and_axis(x, axis)
        if x.ndim == 0:
            return x
        sortable_x = _as_sortable(x)
        # Only zeros of different sign are equal and distinguishable, so only they need the slower stable sort.
        algorithm: Literal["stable", "quicksort"] = (
            "stable" if stable and _has_negative_zero(sortable_x) else "quicksort"
        )
        sorted_x = (
            _reverse_order(np.sort(_reverse_order(sortable_x), axis, algorithm))
            if descending
            else np.sort(sortable_x, axis, algorithm)
        )
        return sorted_x.astype(x.dtype, copy=False)

    @staticmethod
    def top_k(x: np.ndarray, k: int, sorted: bool = True) -> tuple[np.ndarray, np.ndarray]:
        check_top_k(x.shape, k)
        top_indices = _argsort(x, -1, True)[..., :k]
        return np.take_along_axis(x, top_indices, -1), top_indices

    @staticmethod
    def searchsorted(
        sorted_sequence: np.ndarray, values: np.ndarray, side: str = "left", sorter: np.ndarray | None = None
    ) -> np.ndarray:
        if sorted_sequence.ndim != 1:
            raise ShapeError(f"a sorted sequence is a vector, this one has shape {sorted_sequence.shape}")
        a, b = (_as_sortable(x) for x in promotion.common(sorted_sequence, values))
        promotion.refuse(a, _COMPLEX)
        sorter_order = None if sorter is None else checked_sorter(sorter, a.size)
        return np.searchsorted(a, b, checked_side(side), sorter_order)  # type: ignore[call-overload]

    @staticmethod
    def _unique(x: np.ndarray) -> np.ndarray:
        return np.unique(_as_sortable(x)).astype(x.dtype, copy=False)

    @staticmethod
    def isin(x1: np.ndarray, x2: np.ndarray, assume_unique: bool = False, *, invert: bool = False) -> np.ndarray:
        a, b = (_as_sortable(x) for x in promotion.common(x1, x2))
        return np.isin(a, b, invert=invert)
