"""Reading and writing by index, on MLX, which checks no index by itself."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.indices import block, checked, columns, host_indices
from emberharmony.backend.mlx.dtypes import DTYPES, cast, promotion
from emberharmony.backend.promote import normalized
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentTypeError


def indices_for(indices: Any, length: int) -> mx.array:
    """Returns indices as a tensor; those known to the host are checked."""
    if not isinstance(indices, mx.array):
        return mx.array(checked(host_indices(indices), length))
    if not mx.issubdtype(indices.dtype, mx.integer):
        raise ArgumentTypeError(f"indices are integers, not {indices.dtype}")
    return indices


def _is_mask(part: Any) -> bool:
    if isinstance(part, mx.array):
        return bool(part.dtype == mx.bool_)
    return isinstance(part, (bool, np.bool_)) or (
        isinstance(part, (list, np.ndarray)) and np.asarray(part).dtype == bool
    )


class MLXIndexingOps:
    """Holds the ops of `ops/indexing.py`."""

    @staticmethod
    def where(condition: mx.array, x1: Any, x2: Any) -> mx.array:
        return mx.where(condition.astype(mx.bool_), *promotion.common(x1, x2))

    @staticmethod
    def take(x: mx.array, indices: Any, axis: int | None = None) -> mx.array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = normalized(axis, x.ndim)
        return mx.take(x, indices_for(indices, x.shape[axis]), axis)

    @staticmethod
    def take_along_axis(x: mx.array, indices: Any, axis: int | None = -1) -> mx.array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = normalized(axis, x.ndim)
        return mx.take_along_axis(x, indices_for(indices, x.shape[axis]), axis)

    @staticmethod
    def get_item(x: mx.array, key: Any) -> mx.array:
        parts = key if isinstance(key, tuple) else (key,)
        expanded: list[Any] = []
        for part in parts:
            if _is_mask(part):
                # MLX reads no masks: their positions are found on the host.
                expanded += list(np.nonzero(np.asarray(part)))
            else:
                expanded.append(part)
        used = sum(1 for part in expanded if part is not None and part is not Ellipsis)
        axis, new = 0, []
        for part in expanded:
            if part is Ellipsis:
                axis += x.ndim - used
            elif part is not None:
                if not isinstance(part, slice):
                    if axis >= x.ndim:
                        raise IndexError(f"too many indices for a tensor of {x.ndim} axes: out of bounds")
                    part = indices_for(part, x.shape[axis])
                axis += 1
            new.append(part)
        return x[tuple(new)]

    @staticmethod
    def nonzero(x: mx.array) -> tuple[mx.array, ...]:
        return tuple(mx.array(part) for part in np.nonzero(np.asarray(x != 0)))

    @staticmethod
    def slice(x: mx.array, start_indices: Sequence[int], shape: Sequence[int]) -> mx.array:
        return x[block(x.shape, start_indices, shape)]

    @staticmethod
    def slice_update(x: mx.array, start_indices: Sequence[int], updates: mx.array) -> mx.array:
        result = mx.array(x)
        result[block(x.shape, start_indices, updates.shape)] = cast(updates, x.dtype)
        return result

    @staticmethod
    def scatter(indices: mx.array, values: mx.array, shape: Sequence[int]) -> mx.array:
        result = mx.zeros(tuple(shape), values.dtype)
        return result.at[_columns(indices, shape)].add(values)

    @staticmethod
    def scatter_update(x: mx.array, indices: mx.array, updates: mx.array) -> mx.array:
        result = mx.array(x)
        result[_columns(indices, x.shape)] = cast(updates, x.dtype)
        return result

    @staticmethod
    def diagonal(x: mx.array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> mx.array:
        return mx.diagonal(x, offset, axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[mx.array, mx.array]:
        rows, cols = np.tril_indices(n, k, m)
        return mx.array(rows), mx.array(cols)

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[mx.array, mx.array]:
        rows, cols = np.triu_indices(n, k, m)
        return mx.array(rows), mx.array(cols)

    @staticmethod
    def one_hot(x: mx.array, num_classes: int, axis: int = -1, dtype: Any = None) -> mx.array:
        hits = mx.expand_dims(x, -1) == mx.arange(num_classes)
        return mx.moveaxis(hits, -1, axis).astype(DTYPES[default_float()] if dtype is None else dtype)


def _columns(indices: mx.array, shape: Sequence[int]) -> tuple[mx.array, ...]:
    """Returns indices (..., k) as one tensor an axis, all read and checked: writing outside would destroy memory."""
    return tuple(mx.array(column) for column in columns(np.asarray(indices), shape))
