"""Writing by any key, and along an axis, into a new tensor.

An index out of range raises `IndexOutOfBoundsError`. MLX raises it only if the host knows the index (a number, a list
or a NumPy array); an element of a tensor of indices that is out of range writes nothing there.

Dtype: that of `x`. A value of the same kind is cast to it, as NumPy and PyTorch do when they assign: float64 to
float32, int64 to int32, also uint8 to int8. A value of another kind that would change the dtype by promotion raises
`DTypeError`. Python numbers, and lists of them, take the dtype of `x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.promote import nonnegative_axis
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import uint64
from emberharmony.core.errors import ArgumentTypeError, ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.creation import zeros
from emberharmony.ops.arrays.indexing import nonzero, scatter_update, slice_update, where
from emberharmony.ops.arrays.indexing import slice as slice_
from emberharmony.ops.arrays.shape import broadcast_to, expand_dims, ravel, reshape, squeeze, stack, transpose
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.math import add, maximum, minimum, multiply
from emberharmony.ops.tensor import cast, convert_to_tensor, is_tensor

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import indexing as shared_indexing
    from emberharmony.backend.shared.arrays import writing as shared_writing
    from emberharmony.backend.shared.arrays.writing import Selection
else:
    shared_indexing = Deferred("emberharmony.backend.shared.arrays.indexing")
    shared_writing = Deferred("emberharmony.backend.shared.arrays.writing")

_REDUCTIONS: dict[str, Any] = {"set": None, "add": "add", "multiply": "mul", "min": "min", "max": "max"}
"""By the name of a mode, the reduction of `scatter_update`."""
_FURTHEST = 2**63 - 1
_COMBINE: dict[str, Any] = {"add": add, "multiply": multiply, "min": minimum, "max": maximum}


@op(finite="no")
def set_item(
    x: TensorLike,
    key: object,
    value: complex | Sequence[Any] | Tensor,
    mode: Literal["set", "add", "multiply", "min", "max"] = "set",
) -> Tensor:
    """Returns `x` with a value written at a key of any form that `get_item` takes; `x` itself does not change.

    Where the key names an element several times, "add", "multiply", "min" and "max" combine all its values; with "set"
    the last value is kept on NumPy and MLX, and any of them on PyTorch. A boolean key of the shape of the first axes,
    with a value that broadcasts to the other axes, forces no evaluation on MLX; other boolean keys do.

    Args:
        x: a tensor of any shape and dtype.
        key: what stands in the brackets of `x[key] = value`.
        value: broadcast to the shape of `get_item(x, key)`.
        mode: "set" replaces the elements; the other modes combine them with the value.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.
        AxisError: if there are more indices than axes.
        ShapeError: if the value does not broadcast to what the key selects, or the shape of a mask does not fit.
        ArgumentTypeError: if `key` holds something that is not an index.
        ArgumentError: if `mode` is unknown, or the step of a slice is 0.
        DTypeError: if the dtype of `x` cannot hold the value, or if `x` is complex in the modes "min" and "max".
        RangeError: if a Python integer does not fit the dtype of `x`.

    See also: `get_item`, to read; `scatter_update`, by rows of indices; `slice_update`, of a block.

    Example:
        >>> ops.set_item([1, 2, 3], slice(0, 2), 9).tolist()
        [9, 9, 3]
        >>> ops.set_item([1, 2, 3], [0, 0], [10, 20], mode="add").tolist()
        [31, 2, 3]
    """
    shared_writing.check_mode(mode)
    value = _value_like(value, x)
    key_parts = list(shared_indexing.key_parts_of(key, x.shape, _masked_axis_count))
    if (
        len(key_parts) == 1
        and key_parts[0][2]
        and len(value.shape) <= len(x.shape) - key_parts[0][0].ndim < len(x.shape)
    ):
        return _write_by_mask(x, key_parts[0][0], value, mode)
    selection = shared_writing.selection_of(key_parts, x.shape, nonzero)
    if not shared_writing.broadcasts_into(value.shape, selection.shape):
        raise shared_writing.misfit_error(value.shape, selection.shape)
    value = reshape(value, value.shape[-len(selection.shape) :] if selection.shape else ())
    if selection.block is not None:
        block_start, block_shape = selection.block
        value = reshape(broadcast_to(value, selection.shape), block_shape)
        return slice_update(
            x, block_start, value if mode == "set" else _combine(mode, slice_(x, block_start, block_shape), value)
        )
    return _write_at(x, selection, broadcast_to(value, selection.shape), mode)


@op(finite="gradient", reads="checks")
def put_along_axis(
    x: TensorLike,
    indices: Tensor | Sequence[Any],
    values: complex | Sequence[Any] | Tensor,
    axis: int | None = -1,
    mode: Literal["set", "add", "multiply", "min", "max"] = "set",
) -> Tensor:
    """Returns `x` with values written along an axis, at indices that differ for each position on the other axes.

    It is the inverse of `take_along_axis`: `put_along_axis(x, indices, take_along_axis(x, indices, axis), axis)` is
    `x`. Equal indices are treated as in `set_item`.

    Shape: `indices` has as many axes as `x`, and broadcasts against it except on `axis`; `values` broadcasts to the
    shape of `indices` so broadcast.

    Args:
        x: a tensor of any shape and dtype.
        indices: integers from -n to n - 1 along an axis of length n.
        values: a number, or a tensor that broadcasts to the shape of the indices.
        axis: None writes into the flattened `x`, by a vector of indices; the result has the shape of `x`.
        mode: "set" replaces the elements; "add", "multiply", "min" and "max" combine them with the values.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.
        ShapeError: if the shape of `indices` or `values` does not fit.
        DTypeError: if the dtype of `x` cannot hold the values.

    See also: `take_along_axis`, the inverse; `set_item`, by any key.

    Example:
        >>> ops.put_along_axis([[1, 2], [3, 4]], [[1], [0]], 9, axis=1).tolist()
        [[1, 9], [9, 4]]
    """
    shared_writing.check_mode(mode)
    if axis is None:
        return reshape(put_along_axis(ravel(x), indices, values, 0, mode), x.shape)
    axis = nonnegative_axis(axis, len(x.shape))
    return set_item(x, shared_writing.key_along(indices, is_tensor(indices), x.shape, axis), values, mode)


def _value_like(value: Any, x: Tensor) -> Tensor:
    """Returns a value as a tensor of the dtype of `x`.

    Raises:
        DTypeError: if that dtype cannot hold it.
    """
    tensor, dtype, has_weak_dtype = convert_to_tensor(value), dtype_of(x), shared_writing.is_weak(value)
    shared_writing.check_dtype_holds(dtype_of(tensor), dtype, has_weak_dtype)
    return convert_to_tensor(value, dtype) if has_weak_dtype else cast(tensor, dtype)


def _masked_axis_count(part: Any) -> int | None:
    """Returns how many axes a part of a key masks: -1 for a tensor that is not boolean, None for no tensor."""
    if not is_tensor(part):
        return None
    dtype = dtype_of(part)
    if dtype.kind == "bool":
        return len(part.shape)
    if not dtype.is_integer:
        raise ArgumentTypeError(f"expected integer indices, got {dtype.name}; cast them (ops.cast)")
    return -1


def _as_int64(indices: Tensor) -> Tensor:
    """Returns indices as int64; one that int64 cannot hold becomes its largest number, which is out of bounds too."""
    return cast(minimum(indices, _FURTHEST) if dtype_of(indices) is uint64 else indices, "int64")


def _combine(mode: str, old: Tensor, value: Tensor) -> Tensor:
    return cast(_COMBINE[mode](old, value), dtype_of(old))


def _write_by_mask(x: Tensor, mask: Any, value: Tensor, mode: str) -> Tensor:
    """Returns `x` written where a mask of its first axes is true; the value broadcasts to the other axes."""
    item_shape = tuple(x.shape[mask.ndim :])
    if not shared_writing.broadcasts_into(value.shape, item_shape):
        raise ShapeError(
            f"a value of shape {tuple(value.shape)} does not broadcast to shape {item_shape}, the axes of x that the "
            "mask "
            f"leaves"
        )
    full_mask = reshape(convert_to_tensor(mask, device=get_device(x)), (*mask.shape, *(1 for _ in item_shape)))
    if mode == "set":
        return where(full_mask, value, x)
    # Elements that are not selected would make the gradient by the value NaN where they are infinite or NaN.
    masked_x = where(full_mask, x, convert_to_tensor(1, dtype_of(x), device=get_device(x)))
    return where(full_mask, _combine(mode, masked_x, value), x)


def _write_at(x: Tensor, selection: Selection, value: Tensor, mode: str) -> Tensor:
    """Returns `x` with a value, in the shape of a selection, written at the indices of the selection."""
    unindexed_axes = [axis for axis in range(len(selection.shape)) if axis not in selection.lead]
    updates = transpose(value, [*selection.lead, *unindexed_axes])
    if not selection.axes:
        # The key has only True or False, which add an axis, so write the whole tensor once or not at all.
        positions: Any = zeros((*(selection.shape[axis] for axis in selection.lead), 1), "int64", get_device(x))
        return squeeze(scatter_update(expand_dims(x, 0), positions, updates, _REDUCTIONS[mode]), 0)
    positions = shared_writing.stack_columns(selection.columns, selection.column_shapes)
    if positions is None:
        leading_lengths = [selection.shape[axis] for axis in selection.lead]
        index_columns = [convert_to_tensor(column, device=get_device(x)) for column in selection.columns]
        column_shape_pairs = zip(index_columns, selection.column_shapes, strict=True)
        positions = stack(
            [
                broadcast_to(reshape(_as_int64(column), column_shape), leading_lengths)
                for column, column_shape in column_shape_pairs
            ],
            -1,
        )
    axis_order = [*selection.axes, *(axis for axis in range(len(x.shape)) if axis not in selection.axes)]
    written_rows = scatter_update(transpose(x, axis_order), positions, updates, _REDUCTIONS[mode])
    return transpose(written_rows, [axis_order.index(axis) for axis in range(len(axis_order))])
