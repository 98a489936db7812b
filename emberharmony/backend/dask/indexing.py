"""Reading and writing by index, on Dask. Indices in tensors stay unread; a block checks them when it is computed."""

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import (
    Axes,
    Block,
    Slot,
    abstract_results,
    apply_to_blocks,
    apply_to_whole_axes,
    require_known_lengths,
    zeros,
)
from emberharmony.backend.dask.dtypes import cast
from emberharmony.backend.dask.shapes import reshape_to
from emberharmony.backend.dask.tensors import DaskTensorOps
from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import nonnegative_axis
from emberharmony.backend.shared.arrays.indexing import block_slices, key_parts_of, nonnegative_indices
from emberharmony.backend.shared.arrays.shape import FURTHEST, clip_offset, require_matrices
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ArgumentTypeError, ShapeError

_INT64 = np.dtype(np.int64)


def _masked_axis_count(part: Any) -> int | None:
    """Returns how many axes a part of a key masks: -1 for a tensor of integers, None for anything else."""
    if not isinstance(part, da.Array):
        return None
    return part.ndim if part.dtype.kind == "b" else -1


def _nonnegative_places(indices: Any, length: int) -> Any:
    """Returns indices as ones from 0 up: a tensor as an uncomputed tensor, others as an array of int64.

    Raises:
        ArgumentTypeError: if they are not integers.
        EmberError: if one on the host is out of bounds.
    """
    if not isinstance(indices, da.Array):
        return nonnegative_indices(host_indices(indices), length)
    if indices.dtype.kind not in "iu":
        raise ArgumentTypeError(f"indices are integers, not {indices.dtype}")
    block = Block(_nonnegative_places_of_block, (Slot(0), length), {}, _INT64)
    return apply_to_blocks(block, [require_known_lengths(indices)], indices.ndim, _INT64)


def _nonnegative_places_of_block(indices: np.ndarray, length: int) -> np.ndarray:
    return nonnegative_indices(host_indices(indices), length)


def _take(x: da.Array, indices: Any, axis: int) -> da.Array:
    """Returns the elements at indices from 0 up along an axis."""
    result_shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if not isinstance(indices, da.Array):
        if not indices.size or not x.size:
            return zeros(result_shape, x.dtype)
        return reshape_to(da.take(x, indices.reshape(-1), axis=axis), result_shape)
    rank = indices.ndim
    loops = [*range(axis), None, *range(axis + rank, len(result_shape))], range(axis, axis + rank)
    result_specs = abstract_results("take", x, indices, axis)
    return apply_to_whole_axes("take", (x, indices, axis), {}, loops, result_specs, lambda place, ndim: range(ndim))


def _elements_at_columns(y: da.Array, columns: list[tuple[int, Any]], is_split: bool) -> da.Array:
    """Returns the elements at index arrays of several axes, which are broadcast against each other.

    Args:
        columns: pairs of an axis and indices from 0 up.
        is_split: whether the axes of the indices come first, as in NumPy if a slice stands between indices.
    """
    if len(columns) == 1:
        return _take(y, columns[0][1], columns[0][0])
    axes = [axis for axis, _ in columns]
    joint_shape = broadcast_shape([tuple(column.shape) for _, column in columns])
    other_axes = [axis for axis in range(y.ndim) if axis not in axes]
    lengths = [y.shape[axis] for axis in axes]
    flat_indices: Any = np.zeros((), np.int64)
    for (_, column), length in zip(columns, lengths, strict=True):
        flat_indices = flat_indices * length + column
    rows = reshape_to(
        da.transpose(y, (*axes, *other_axes)), (int(np.prod(lengths)), *(y.shape[axis] for axis in other_axes))
    )
    elements = _take(rows, flat_indices, 0)
    joint_axis = 0 if is_split else min(axes)
    rank = len(joint_shape)
    new_order = [*range(rank, rank + joint_axis), *range(rank), *range(rank + joint_axis, elements.ndim)]
    return da.transpose(elements, new_order)


class DaskIndexingOps:
    """Holds the ops of `ops/arrays/indexing.py`.

    These take from each block what they need; the bodies compute indices of the whole tensor, or its values.
    """

    @staticmethod
    def take(x: da.Array, indices: Any, axis: int | None = None) -> da.Array:
        abstract_results("take", x, indices, axis)
        if axis is None:
            x, axis = reshape_to(x, (x.size,)), 0
        axis = nonnegative_axis(axis, x.ndim)
        return _take(x, _nonnegative_places(indices, x.shape[axis]), axis)

    @staticmethod
    def take_along_axis(x: da.Array, indices: Any, axis: int | None = -1) -> da.Array:
        result_specs = abstract_results("take_along_axis", x, indices, axis)
        if axis is None:
            x, axis = reshape_to(x, (x.size,)), 0
        axis = nonnegative_axis(axis, x.ndim)
        if not isinstance(indices, da.Array):
            indices = da.from_array(nonnegative_indices(host_indices(indices), x.shape[axis]), chunks=-1)
        batch_axes: list[int | None] = list(range(x.ndim))
        batch_axes[axis] = None
        loops: list[Axes] = [batch_axes, range(x.ndim)]
        return apply_to_whole_axes(
            "take_along_axis", (x, indices, axis), {}, loops, result_specs, lambda place, ndim: range(ndim)
        )

    @staticmethod
    def get_item(x: da.Array, key: Any) -> da.Array:
        """Returns what a key selects; a mask in a tensor is computed, because the shape depends on it."""
        key_parts = [*key_parts_of(key, require_known_lengths(x).shape, _masked_axis_count)] or [(Ellipsis, 0, False)]
        joint_flags = [_is_joint(key_part) for key_part, _, _ in key_parts]
        has_index_tensors = any(hasattr(part, "shape") or part.__class__ is bool for part, _, _ in key_parts)
        basic_key: list[Any] = []
        columns: list[tuple[int, Any]] = []
        axis = 0
        for (part, _, mask), next_axis in zip(
            key_parts, [*(start for _, start, _ in key_parts[1:]), x.ndim], strict=True
        ):
            first_axis = len(basic_key)
            if isinstance(part, bool):
                basic_key.append(None)
                columns.append((first_axis, np.zeros(int(part), np.int64)))
            elif mask and part.ndim == 0:
                basic_key.append(None)
                columns.append((first_axis, np.zeros(int(bool(part)), np.int64)))
            elif mask:
                columns_of_mask = np.nonzero(np.asarray(part))
                basic_key += [slice(None)] * part.ndim
                columns += [(first_axis + i, column) for i, column in enumerate(columns_of_mask)]
                axis += part.ndim
            elif part is Ellipsis:
                basic_key += [slice(None)] * (next_axis - axis)
                axis = next_axis
            elif part is None:
                basic_key.append(None)
            elif isinstance(part, slice):
                basic_key.append(_exact_slice(range(x.shape[axis])[part]))
                axis += 1
            else:
                basic_key.append(slice(None) if has_index_tensors else part)
                if has_index_tensors:
                    columns.append((first_axis, _nonnegative_places(part, x.shape[axis])))
                axis += 1
        y = x[tuple(basic_key)]
        if not columns:
            return y
        joint_places = [i for i, is_joint in enumerate(joint_flags) if is_joint]
        is_split = joint_places[-1] - joint_places[0] + 1 > len(joint_places)
        return _elements_at_columns(y, columns, is_split)

    @staticmethod
    def nonzero(x: da.Array) -> tuple[da.Array, ...]:
        """Returns the indices of the nonzero elements; computes the tensor, because the shape depends on it."""
        if require_known_lengths(x).ndim == 0:
            raise ShapeError("a tensor without axes has no indices")
        return tuple(da.from_array(axis_indices) for axis_indices in np.nonzero(x.compute()))

    @staticmethod
    def slice_update(inputs: da.Array, start_indices: Sequence[int], updates: da.Array) -> da.Array:
        start_values = start_indices.compute() if isinstance(start_indices, da.Array) else start_indices
        block_key = block_slices(
            require_known_lengths(inputs).shape, start_values, require_known_lengths(updates).shape
        )
        updated_copy = DaskTensorOps.copy(inputs)
        if updates.size:
            updated_copy[block_key] = cast(updates, inputs.dtype)
        return updated_copy

    @staticmethod
    def scatter_update(inputs: da.Array, indices: Any, updates: da.Array, reduction: str | None = None) -> da.Array:
        """Returns a tensor with updates at indices of its first axes, each of which becomes one block."""
        result_specs = abstract_results("scatter_update", inputs, indices, updates, reduction)
        if not isinstance(indices, da.Array):
            indices = host_indices(indices)
        index_length = indices.shape[-1]
        item_shape = inputs.shape[index_length:]
        broadcast_updates = da.broadcast_to(cast(updates, inputs.dtype), (*indices.shape[:-1], *item_shape))
        row_loops = [*[None] * index_length, *range(len(item_shape))]
        loops = [row_loops, [None] * indices.ndim, [*[None] * (indices.ndim - 1), *range(len(item_shape))]]
        if not isinstance(indices, da.Array):
            del loops[1]
        return apply_to_whole_axes(
            "scatter_update",
            (inputs, indices, broadcast_updates, reduction),
            {},
            loops,
            result_specs,
            lambda place, ndim: row_loops,
        )

    @staticmethod
    def diagonal(x: da.Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> da.Array:
        abstract_result = abstract_results("diagonal", x, offset, axis1, axis2)
        x = require_matrices(x)
        if 0 in abstract_result.shape:
            return zeros(abstract_result.shape, x.dtype)
        return da.diagonal(x, clip_offset(offset, FURTHEST, FURTHEST), axis1, axis2)

    @staticmethod
    def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[da.Array, ...]:
        result_specs = abstract_results("unravel_index", indices, shape)
        index_tensor = indices if isinstance(indices, da.Array) else da.from_array(host_indices(indices))
        axes = [*range(index_tensor.ndim)]
        coordinates: tuple[da.Array, ...] = apply_to_whole_axes(
            "unravel_index", (index_tensor, shape), {}, [axes], result_specs, lambda place, ndim: axes
        )
        return coordinates


def _exact_slice(places: range) -> slice:
    """Returns a range as a slice with exact ends, because Dask 2026.8 reads a reversed slice from the wrong start."""
    if not places:
        return slice(0, 0)
    stop = places[-1] + (1 if places.step > 0 else -1)
    return slice(places[0], None if stop < 0 else stop, places.step)


def _is_joint(part: Any) -> bool:
    """Returns whether a part of a key is an index, and not a slice, an ellipsis or a new axis."""
    return not (part is None or part is Ellipsis or isinstance(part, slice))
