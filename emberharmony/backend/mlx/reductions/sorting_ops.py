"""Sorting, searching and set ops, on MLX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import of_host, promotion
from emberharmony.backend.mlx.math_ops import is_float
from emberharmony.backend.promote import tensor_and_axis
from emberharmony.backend.shared.reductions.sorting import WithUnique, check_top_k, checked_side, checked_sorter
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ShapeError

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

_COMPLEX = ("complex",)


def _reverse_order(x: mx.array) -> mx.array:
    """Returns values whose ascending order is the descending order of `x`, NaN still last; it is its own inverse."""
    return -x if is_float(x) else ~x


def _as_sortable(x: mx.array) -> mx.array:
    """Returns booleans as integers, because MLX cannot sort booleans on a GPU."""
    return x.astype(mx.uint8) if x.dtype == mx.bool_ else x


def _argsort(x: mx.array, axis: int | None, descending: bool = False) -> mx.array:
    x, axis = tensor_and_axis(x, axis, least=1)
    if not x.size or x.ndim == 0:
        return mx.zeros(x.shape, mx.int64)
    x = _as_sortable(x)
    return mx.argsort(_reverse_order(x) if descending else x, axis).astype(mx.int64)


def _sort(x: mx.array, axis: int | None, descending: bool = False) -> mx.array:
    x, axis = tensor_and_axis(x, axis, least=1)
    if not x.size or x.ndim == 0:
        return x
    sortable_x = _as_sortable(x)
    sorted_values = (
        _reverse_order(mx.sort(_reverse_order(sortable_x), axis)) if descending else mx.sort(sortable_x, axis)
    )
    return sorted_values.astype(x.dtype)


def _insertion_points(sorted_values: mx.array, values: mx.array, side: str) -> mx.array:
    return mx.searchsorted(sorted_values, values, side=side).astype(mx.int64)


class MLXSortingOps(WithUnique):
    """Holds the ops of `ops/reductions/sorting.py`.

    The bodies compare each pair of elements, or compute on the host: they take 1.3 to 30 times as long, for few
    elements.
    """

    @staticmethod
    def argsort(x: mx.array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> mx.array:
        promotion.refuse(x, _COMPLEX)
        return _argsort(x, axis, descending)

    @staticmethod
    def sort(x: mx.array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> mx.array:
        promotion.refuse(x, _COMPLEX)
        return _sort(x, axis, descending)

    @staticmethod
    def top_k(x: mx.array, k: int, sorted: bool = True) -> tuple[mx.array, mx.array]:
        promotion.refuse(x, _COMPLEX)
        check_top_k(x.shape, k)
        top_indices = mx.stop_gradient(_argsort(x, -1, True))[..., :k]
        return mx.take_along_axis(x, top_indices, -1), top_indices

    @staticmethod
    def searchsorted(
        sorted_sequence: mx.array, values: mx.array, side: str = "left", sorter: mx.array | None = None
    ) -> mx.array:
        if sorted_sequence.ndim != 1:
            raise ShapeError(f"expected a sorted sequence of shape (n,), got shape {sorted_sequence.shape}")
        a, b = promotion.common(sorted_sequence, values)
        promotion.refuse(a, _COMPLEX)
        if sorter is not None:
            # MLX does not check indices, so `checked_sorter` checks them on the host.
            a = mx.take(a, of_host(checked_sorter(np.asarray(sorter), a.size)))
        return _insertion_points(a, b, checked_side(side))

    @staticmethod
    def _unique(x: mx.array) -> mx.array:
        # The shape of the result depends on the values, so find the unique ones on the host.
        sorted_x = _sort(x, None)
        host_array = np.asarray(sorted_x.astype(mx.float32)) if sorted_x.dtype == mx.bfloat16 else np.asarray(sorted_x)
        is_new = np.ones(host_array.shape, bool)
        is_new[1:] = (host_array[1:] != host_array[:-1]) & ~(
            (host_array[1:] != host_array[1:]) & (host_array[:-1] != host_array[:-1])
        )
        return mx.take(sorted_x, of_host(np.nonzero(is_new)[0]))

    @staticmethod
    def isin(x1: mx.array, x2: mx.array, assume_unique: bool = False, *, invert: bool = False) -> mx.array:
        a, b = promotion.common(x1, x2)
        if not a.size or not b.size:
            return mx.full(a.shape, invert)
        sorted_b = _sort(b, None)
        positions = mx.minimum(_insertion_points(sorted_b, a, "left"), b.size - 1)
        is_contained = mx.take(sorted_b, positions) == a
        return mx.logical_not(is_contained) if invert else is_contained
