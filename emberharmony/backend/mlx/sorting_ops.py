"""Sorting, searching and sets, on MLX."""

import mlx.core as mx
import numpy as np

from emberharmony.backend.indices import side_of, top
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.math_ops import is_float


def _argsort(x: mx.array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> mx.array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.ndim == 0:
        return mx.array(0, mx.int64)
    if not descending:
        return mx.argsort(x, axis).astype(mx.int64)
    order = _flip(mx.argsort(_flip(x, axis), axis), axis).astype(mx.int64)
    order = x.shape[axis] - 1 - order
    if not is_float(x):
        return order
    last = mx.take_along_axis(mx.isnan(x), order, axis)
    return mx.take_along_axis(order, mx.argsort(last, axis), axis)


def _flip(x: mx.array, axis: int) -> mx.array:
    return mx.take(x, mx.arange(x.shape[axis] - 1, -1, -1), axis)


class MLXSortingOps:
    """Holds the ops of `ops/sorting.py`."""

    argsort = staticmethod(_argsort)

    @staticmethod
    def sort(x: mx.array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> mx.array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        if x.ndim == 0:
            return x
        return mx.take_along_axis(x, _argsort(x, axis, True), axis) if descending else mx.sort(x, axis)

    @staticmethod
    def top_k(x: mx.array, k: int, sorted: bool = True) -> tuple[mx.array, mx.array]:
        top(x.shape, k)
        order = _argsort(x, -1, True)[..., :k]
        return mx.take_along_axis(x, order, -1), order

    @staticmethod
    def searchsorted(sorted_sequence: mx.array, values: mx.array, side: str = "left") -> mx.array:
        a, b = promotion.common(sorted_sequence, values)
        wider = mx.expand_dims(b, -1)
        before = a < wider if side_of(side) == "left" else a <= wider
        return mx.sum(before, -1).astype(mx.int64)

    @staticmethod
    def unique(x: mx.array) -> mx.array:
        # How many there are is known only to the host.
        values = mx.sort(x.reshape(-1)) if x.size else x.reshape(-1)
        host = np.asarray(values.astype(mx.float32)) if values.dtype == mx.bfloat16 else np.asarray(values)
        new = np.ones(host.shape, bool)
        new[1:] = (host[1:] != host[:-1]) & ~((host[1:] != host[1:]) & (host[:-1] != host[:-1]))
        return mx.take(values, mx.array(np.nonzero(new)[0]))

    @staticmethod
    def isin(x1: mx.array, x2: mx.array, invert: bool = False) -> mx.array:
        a, b = promotion.common(x1, x2)
        found = mx.any(mx.expand_dims(a, -1) == b.reshape(-1), -1)
        return mx.logical_not(found) if invert else found
