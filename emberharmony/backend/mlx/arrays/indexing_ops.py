"""Reading and writing by index, on MLX, which does not check indices itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.host import host_indices
from emberharmony.backend.mlx.arrays.indices import (
    ON_ROWS,
    assign_at,
    flatten_indices,
    indices_for,
    integer_indices,
    masked_axis_count,
    read_if_checked,
    write_rows,
)
from emberharmony.backend.mlx.device_ops import check_memory, require_memory
from emberharmony.backend.mlx.dtypes import DTYPES, cast, of_host, promotion
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.indexing import (
    block_slices,
    check_index_vectors,
    checked_reduction,
    class_count,
    index_columns,
    is_basic_key,
    key_parts_of,
    require_elements,
    slice_within,
    unravel,
)
from emberharmony.backend.shared.arrays.shape import FURTHEST, as_shape, clip_offset, require_matrices
from emberharmony.backend.shared.device import SURE
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError
from emberharmony.core.options import refuse_sparse
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def _read_part_if_checked(part: Any) -> Any:
    """Returns a part of a key; in checked mode an index tensor becomes an array on the host, which is checked."""
    return part if isinstance(part, mx.array) and part.dtype == mx.bool_ else read_if_checked(part)


def _shape_without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """Returns a shape without one of its axes."""
    return (*shape[:axis], *shape[axis + 1 :])


class MLXIndexingOps:
    """Holds the ops of `ops/arrays/indexing.py`.

    The bodies compute on the host or gather: they take up to 4.6 times as long, for few elements. MLX checks no index,
    so these keep it inside the tensor.
    """

    @staticmethod
    @fast(mx.where, promotion.same.format("{1}", "{2}"), promotion.weak.format("{1}", "{2}"))
    def where(condition: mx.array, x1: Any = None, x2: Any = None) -> mx.array:
        return mx.where(condition, *promotion.common(x1, x2))

    @staticmethod
    def take(x: mx.array, indices: Any, axis: int | None = None) -> mx.array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        length = x.shape[axis]
        if indices.__class__ is int and -length <= indices < length:
            # mx.take (MLX 0.32) reads a negative Python integer as an empty slice, and raises.
            return mx.take(x, indices % length, axis) if x.size else mx.zeros(_shape_without(x.shape, axis), x.dtype)
        positions = indices_for(indices, length)
        require_elements(length, positions.size)
        return require_memory(mx.take(x, positions, axis))

    @staticmethod
    def take_along_axis(x: mx.array, indices: Any, axis: int | None = -1) -> mx.array:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        positions = indices_for(indices, x.shape[axis])
        require_elements(x.shape[axis], positions.size)
        return require_memory(mx.take_along_axis(x, positions, axis))

    @staticmethod
    def get_item(x: mx.array, key: Any) -> mx.array:
        if is_basic_key(key, x.shape):
            return x[key]
        native_key: list[Any] = []
        added_axis_count = 0
        if checking():
            key = (
                tuple(_read_part_if_checked(key_part) for key_part in key)
                if isinstance(key, tuple)
                else _read_part_if_checked(key)
            )
        for part, axis, mask in key_parts_of(key, x.shape, masked_axis_count):
            if isinstance(part, bool) or (mask and part.ndim == 0):
                # As in NumPy, True or False adds an axis of length 1 or 0.
                x = mx.expand_dims(x, axis + added_axis_count)
                added_axis_count += 1
                native_key.append(mx.zeros(int(bool(part)), mx.int32))
            elif mask:
                # MLX 0.32 does not index by masks, so find the positions of their True elements on the host.
                native_key += [of_host(column) for column in np.nonzero(np.asarray(part))]
            elif isinstance(part, slice):
                native_key.append(slice_within(part, x.shape[axis + added_axis_count]))
            elif isinstance(part, mx.array):
                native_key.append(integer_indices(part))
            else:
                native_key.append(of_host(part) if hasattr(part, "shape") else part)
        return require_memory(x[tuple(native_key)])

    @staticmethod
    def nonzero(x: mx.array) -> tuple[mx.array, ...]:
        if x.ndim == 0:
            raise ShapeError("expected a tensor with at least one axis, got a scalar; reshape it to (1,)")
        # The number of indices, hence the shape, is known only when the values are read.
        return tuple(of_host(axis_indices) for axis_indices in np.nonzero(np.asarray(x != 0)))

    @staticmethod
    def slice(inputs: mx.array, start_indices: Sequence[int], shape: Sequence[int]) -> mx.array:
        return inputs[block_slices(inputs.shape, start_indices, shape)]

    @staticmethod
    def slice_update(inputs: mx.array, start_indices: Sequence[int], updates: mx.array) -> mx.array:
        return assign_at(inputs, block_slices(inputs.shape, start_indices, updates.shape), cast(updates, inputs.dtype))

    @staticmethod
    def scatter_update(inputs: mx.array, indices: Any, updates: mx.array, reduction: str | None = None) -> mx.array:
        indices = read_if_checked(indices)
        is_unread = isinstance(indices, mx.array)
        # Indices in a tensor stay unread, which keeps them lazy; those out of bounds are dropped.
        if is_unread:
            check_index_vectors(indices.shape, inputs.shape)
            lengths = inputs.shape[: indices.shape[-1]]
            positions = flatten_indices(indices, lengths)
        else:
            columns = index_columns(indices, inputs.shape)
            lengths = inputs.shape[: len(columns)]
            positions = of_host(np.asarray(np.ravel_multi_index(columns, lengths)) if columns[0].size else columns[0])
        if checked_reduction(reduction, ON_ROWS) in ("max", "min"):
            promotion.refuse(inputs, ("complex",))
        rows = inputs.reshape(math.prod(lengths), *inputs.shape[len(lengths) :])
        return write_rows(rows, positions, cast(updates, inputs.dtype), reduction, is_unread).reshape(inputs.shape)

    @staticmethod
    def diagonal(x: mx.array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> mx.array:
        return mx.diagonal(require_matrices(x), clip_offset(offset, FURTHEST, FURTHEST), axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[mx.array, mx.array]:
        row_count, column_count = as_shape((n, n if m is None else m))
        rows, cols = np.tril_indices(row_count, clip_offset(k, row_count, column_count), column_count)
        return of_host(rows), of_host(cols)

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[mx.array, mx.array]:
        row_count, column_count = as_shape((n, n if m is None else m))
        rows, cols = np.triu_indices(row_count, clip_offset(k, row_count, column_count), column_count)
        return of_host(rows), of_host(cols)

    @staticmethod
    def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[mx.array, ...]:
        indices = read_if_checked(indices)
        if not isinstance(indices, mx.array):
            return tuple(of_host(column) for column in unravel(host_indices(indices), shape))
        # Indices in a tensor stay unread and unchecked, which keeps them lazy.
        shape, remaining_indices = as_shape(shape), integer_indices(indices).astype(mx.int64)
        columns: list[mx.array] = []
        for length in reversed(shape):
            columns.append(remaining_indices % max(length, 1))
            remaining_indices = remaining_indices // max(length, 1)
        return tuple(reversed(columns))

    @staticmethod
    def one_hot(x: mx.array, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> mx.array:
        refuse_sparse("sparse", sparse)
        native_dtype = DTYPES[default_float()] if dtype is None else dtype
        if x.size * class_count(num_classes, x) * native_dtype.size > SURE:
            check_memory((*x.shape, num_classes), native_dtype.size)
        is_class = mx.expand_dims(x, -1) == mx.arange(num_classes)
        return mx.moveaxis(is_class, -1, axis).astype(native_dtype)
