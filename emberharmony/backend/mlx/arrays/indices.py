"""Conversion of indices, and writing by index, on MLX, which reads and writes any memory that an index points to.

MLX takes 8 µs for one call on few elements and 2.5 to 3 for each further one in the graph, and an extra row takes the
writes out of bounds. Tensors of one number are kept for up to 1,024 indices, because to broadcast a number is a call
too. On a CPU MLX 0.32 copies one element after the other in `mx.pad`, `mx.concatenate` and assignments, and whole rows
in `mx.take` (262,144 elements: 105, 82, 690 and 45 µs), so from 2**18 elements on `mx.take` makes the extra row, with
the derivative of `mx.pad`, because its own adds one element after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.host import host_indices
from emberharmony.backend.mlx.derivatives import Arrays, Function, with_own_derivatives, with_transforms_of
from emberharmony.backend.mlx.device_ops import require_memory
from emberharmony.backend.mlx.dtypes import DTYPES, of_host
from emberharmony.backend.shared.arrays.indexing import nonnegative_indices
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

Written = Callable[[mx.array, mx.array, mx.array], mx.array]

_FURTHEST = 2**63 - 1
_MANY = 2**13
"""From this many elements on, an assignment takes longer than the calls that choose between rows."""
LARGE = 2**18
"""From this many elements on, copying all of them takes longer than the calls that copy them as rows."""
_FEW = 1024
"""Up to this many elements, tensors of one number are kept."""
_WIDE, _GROUP = 64, 2**12
"""The least number of elements that are worth copying as a row, and the number up to which rows are joined to one."""


def assign_at(x: mx.array, key: Any, new: mx.array) -> mx.array:
    """Returns `x` with new values, which are broadcast, assigned at a key of integers and slices.

    Under `mx.vmap`, MLX 0.32 writes values that are not mapped over into the first slice only, also in the derivatives
    of such an assignment, where these values are zeros. So what is written is made to depend on the tensor.
    """

    def assign_natively(x: mx.array, new: mx.array) -> mx.array:
        written_copy = mx.array(x)
        written_copy[key] = mx.where(mx.array(True), new, x[key])
        return written_copy

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (assign_natively(*tangents),)

    def pull_cotangents(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        written_cotangent = cotangents[0][key]
        return assign_natively(cotangents[0], mx.zeros_like(written_cotangent)), written_cotangent

    if op_globals.untransformed:
        return assign_natively(x, new)
    written_tensor: mx.array = with_own_derivatives(assign_natively, push_tangents, pull_cotangents)(
        x, mx.broadcast_to(new, x[key].shape)
    )
    return written_tensor


def _add_rows(rows: mx.array, places: mx.array, updates: mx.array) -> mx.array:
    return rows.at[places].add(updates)


def _extreme_scatter(native: Written) -> Written:
    """Returns the function of a scattered maximum or minimum that keeps NaN, with derivatives.

    `x.at[...].maximum` and `.minimum` (MLX 0.32) can lose a NaN, which `mx.maximum` keeps. All rows and updates that
    equal the extreme share its derivative equally.
    """

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        rows, positions, updates = primals[0], mx.stop_gradient(primals[1]), primals[2]
        is_row_result, is_update_result = (
            (rows == outputs[0]).astype(rows.dtype),
            (updates == outputs[0][positions]).astype(rows.dtype),
        )
        tie_count = mx.maximum(_add_rows(is_row_result, positions, is_update_result), 1)
        return (_add_rows(is_row_result * tangents[0], positions, is_update_result * tangents[2]) / tie_count,)

    # The places are an argument, and not closed over, so that vmap can map over them.
    native_with_rule = with_own_derivatives(native, push_tangents)

    def scatter_extremes(rows: mx.array, places: mx.array, updates: mx.array) -> mx.array:
        extreme_rows: mx.array = native_with_rule(rows, places, updates)
        if not mx.issubdtype(rows.dtype, mx.floating):
            return extreme_rows
        is_nan = mx.isnan(rows).at[places].maximum(mx.isnan(updates))
        return mx.where(is_nan, mx.array(math.nan, rows.dtype), extreme_rows)

    return scatter_extremes


def _multiply_rows(rows: mx.array, row_places: mx.array, updates: mx.array) -> mx.array:
    """Returns rows multiplied by the updates at their indices, with derivatives, which MLX 0.32 lacks.

    The derivative by a factor is the product of all other factors. Second derivatives are 0 where two factors of a
    product are 0, even if the true ones are not.
    """

    def slopes(rows: mx.array, places: mx.array, updates: mx.array) -> tuple[mx.array, mx.array]:
        """Returns the derivatives of multiplied rows by the rows and by the updates, without dividing by zeros."""
        places = mx.stop_gradient(places)
        is_zero = updates == 0
        factors = mx.where(is_zero, mx.ones_like(updates), updates)
        product = _multiply_rows(mx.ones_like(rows), places, factors)
        zero_counts = _add_rows(mx.zeros(rows.shape, mx.int32), places, is_zero.astype(mx.int32))
        slopes_of_updates = mx.where(zero_counts[places] == is_zero, product[places] / factors, mx.zeros_like(updates))
        return mx.where(zero_counts > 0, mx.zeros_like(rows), product), rows[places] * slopes_of_updates

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        row_slopes, slopes_of_updates = slopes(*primals)
        return (_add_rows(tangents[0] * row_slopes, mx.stop_gradient(primals[1]), tangents[2] * slopes_of_updates),)

    def pull_cotangents(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        # MLX's cotangents are the conjugates of ours.
        row_slopes, slopes_of_updates = (mx.conj(slope) for slope in slopes(*primals))
        positions = primals[1]
        return (
            cotangents[0] * row_slopes,
            mx.zeros_like(positions),
            cotangents[0][mx.stop_gradient(positions)] * slopes_of_updates,
        )

    def multiply_natively(rows: mx.array, places: mx.array, updates: mx.array) -> mx.array:
        return rows.at[places].multiply(updates)

    multiplied_rows: mx.array = with_own_derivatives(multiply_natively, push_tangents, pull_cotangents)(
        rows, row_places, updates
    )
    return multiplied_rows


ON_ROWS: dict[str, Written] = {
    "add": _add_rows,
    "mul": _multiply_rows,
    "max": _extreme_scatter(lambda rows, at, updates: rows.at[at].maximum(updates)),
    "min": _extreme_scatter(lambda rows, at, updates: rows.at[at].minimum(updates)),
}


def integer_indices(indices: mx.array) -> mx.array:
    """Returns a tensor of indices, through which no gradient flows.

    An index that int64 cannot hold becomes its largest number, which is out of bounds too; a cast would wrap it around.

    Raises:
        ArgumentTypeError: if the indices are not integers.
    """
    if not mx.issubdtype(indices.dtype, mx.integer):
        raise ArgumentTypeError(f"expected integer indices, got {DTYPES.neutral[indices.dtype]}; cast them (ops.cast)")
    # MLX cannot differentiate a gather whose indices depend on a differentiated tensor.
    indices = mx.stop_gradient(indices)
    return mx.minimum(indices, mx.array(_FURTHEST, mx.uint64)) if indices.dtype == mx.uint64 else indices


def read_if_checked(indices: Any) -> Any:
    """Returns indices; in checked mode a tensor is read into an array on the host, where indices are checked."""
    if isinstance(indices, mx.array) and checking():
        return np.asarray(integer_indices(indices))
    return indices


def indices_for(indices: Any, length: int) -> mx.array:
    """Returns indices as a tensor; those on the host are checked, those in a tensor only in checked mode.

    Raises:
        ArgumentTypeError: if the indices are not integers.
        IndexOutOfBoundsError: if a checked index is out of bounds.
    """
    indices = read_if_checked(indices)
    if isinstance(indices, mx.array):
        return integer_indices(indices)
    return of_host(nonnegative_indices(host_indices(indices), length))


def masked_axis_count(part: Any) -> int | None:
    """Returns how many axes an index masks: the rank of a boolean tensor, -1 for another tensor, None for no tensor."""
    if not isinstance(part, mx.array):
        return None
    return int(part.ndim) if part.dtype == mx.bool_ else -1


def write_rows(rows: mx.array, places: mx.array, updates: mx.array, reduction: str | None, spill: bool) -> mx.array:
    """Returns rows with updates written, or combined, at the rows that `places` names.

    Args:
        rows: shape (rows, ...).
        places: the index of each update, from 0 to the number of rows; an update at that number is dropped.
        updates: broadcast to shape (*shape of `places`, ...).
        reduction: a key of `ON_ROWS`, or None to write.
        spill: whether updates may have to be dropped: they are written to an extra row, which is removed again.
    """
    row_count, full_shape = rows.shape[0], (*places.shape, *rows.shape[1:])
    if updates.shape != full_shape:
        updates = mx.broadcast_to(updates, full_shape)
    if not rows.size or not updates.size:
        # MLX 0.32 divides by the size of a row when it scatters, and a size of 0 ends the process.
        return rows
    if reduction is None and _MANY <= rows.size <= 4 * updates.size and rows.size >= _WIDE * row_count:
        return _merge_rows(rows, places, updates)
    if spill:
        rows = _with_extra_rows(rows)
    if reduction is not None:
        rows = ON_ROWS[reduction](rows, places, updates)
        return rows[:row_count] if spill else rows
    updates = updates if op_globals.untransformed else _stop_earlier_gradients(rows.shape[0], places, updates)
    if rows.ndim == places.ndim == 1:
        # On a CPU an assignment by index takes up to 20 times as long as `put_along_axis` (MLX 0.32).
        rows = mx.put_along_axis(rows, places, updates, 0)
    else:
        rows = rows if spill else mx.array(rows)
        rows[places] = updates
    return rows[:row_count] if spill else rows


def _merge_rows(rows: mx.array, places: mx.array, updates: mx.array) -> mx.array:
    """Returns rows with updates written: each row of the result is copied from the old rows or from the updates.

    An assignment (MLX 0.32) copies one element at a time on a CPU, `mx.take` whole rows.
    """
    row_count, update_count = rows.shape[0], places.size
    source_row_numbers = mx.put_along_axis(
        mx.arange(row_count + 1), places.reshape(-1), mx.arange(row_count, row_count + update_count), 0
    )
    rows_and_updates = mx.concatenate([rows, updates.reshape(update_count, *rows.shape[1:])])
    return mx.take(require_memory(rows_and_updates), source_row_numbers[:row_count], 0)


def _with_extra_rows(rows: mx.array) -> mx.array:
    """Returns rows followed by one or more extra rows of arbitrary content."""
    row_count = rows.shape[0]
    group_count = max(_GROUP * row_count // rows.size, 1)
    rows_per_group = min(
        row_count & -row_count, 1 << group_count.bit_length() - 1
    )  # a power of two that divides the number of rows
    if rows.size < LARGE or rows_per_group * rows.size < _WIDE * row_count or not op_globals.untransformed:
        return mx.pad(rows, [(0, 1), *((0, 0),) * (rows.ndim - 1)])
    padded_rows: mx.array = _row_padder(rows_per_group)(rows)
    return padded_rows


@functools.cache
def _row_padder(row_count: int) -> Function:
    """Returns a function that appends rows to a tensor of `row_count` rows; what the new rows hold does not matter.

    `mx.pad` (MLX 0.32) copies one element at a time on a CPU, `mx.take` whole rows, which takes half of the time. But
    its derivative would add one element at a time.
    """

    def copy_last_row(rows: mx.array) -> mx.array:
        last_index = rows.shape[0] // row_count - 1
        row_numbers = mx.minimum(mx.arange(last_index + 2), last_index)
        return mx.take(rows.reshape(last_index + 1, -1), row_numbers, 0).reshape(-1, *rows.shape[1:])

    def pad_with_zeros(rows: mx.array) -> mx.array:
        return mx.pad(rows, [(0, row_count), *((0, 0),) * (rows.ndim - 1)])

    return with_transforms_of(copy_last_row, pad_with_zeros)


def _stop_earlier_gradients(count: int, row_places: mx.array, updates: mx.array) -> mx.array:
    """Returns updates of which only the last at equal indices has a derivative; MLX would give each of them one."""
    positions = mx.arange(row_places.size).reshape(row_places.shape)
    is_last = mx.zeros(count, positions.dtype).at[row_places].maximum(positions)[row_places] == positions
    return mx.where(
        is_last.reshape((*row_places.shape, *(1,) * (updates.ndim - row_places.ndim))),
        updates,
        mx.stop_gradient(updates),
    )


def indices_or_length(indices: mx.array, length: int) -> mx.array:
    """Returns indices from 0 up; those outside the range 0 to length - 1 become `length`, which `write_rows` drops."""
    # Viewed as unsigned integers, negative indices are the largest numbers.
    unsigned_indices = integer_indices(indices).astype(mx.int64).view(mx.uint64)
    return _cast_to_index_dtype(mx.minimum(unsigned_indices, _unsigned_lengths(indices, length)))


def _cast_to_index_dtype(places: mx.array) -> mx.array:
    """Returns unsigned indices as uint64 or, under transforms, as int64."""
    # MLX 0.32 finds rows by unsigned indices in 0.85 times the time on a CPU. But under vmap it promotes uint64 and its
    # own int32 positions to float32, which indexes nothing.
    return places if op_globals.untransformed else places.astype(mx.int64)


def wrapped_indices_or_length(indices: mx.array, length: int) -> mx.array:
    """Returns indices from 0 up, without reading them; the others become `length`, which `write_rows` drops."""
    # Viewed as unsigned, negative indices are the largest numbers, and adding the length makes them indices from 0.
    unsigned_indices = integer_indices(indices).astype(mx.int64).view(mx.uint64)
    unsigned_lengths = _unsigned_lengths(indices, length)
    return _cast_to_index_dtype(
        mx.minimum(mx.minimum(unsigned_indices, unsigned_indices + unsigned_lengths), unsigned_lengths)
    )


def _unsigned_lengths(indices: mx.array, length: int) -> mx.array:
    """Returns the unsigned length for each index."""
    if indices.size <= _FEW:
        return _constant_tensor(length, indices.shape)
    return mx.broadcast_to(mx.array(length, mx.uint64), indices.shape)


@functools.lru_cache(maxsize=128)
def _constant_tensor(number: int, shape: tuple[int, ...]) -> mx.array:
    """Returns a tensor of one unsigned number, which is kept, because MLX takes 3 µs to broadcast it."""
    return of_host(np.full(shape, number, np.uint64))


def flatten_indices(indices: mx.array, lengths: Sequence[int]) -> mx.array:
    """Returns index vectors as positions in flattened axes, without reading them.

    Args:
        indices: shape (..., axes).
        lengths: the length of each axis.

    Returns:
        Positions of shape (...); for indices out of bounds, one past the last position, which `write_rows` drops.
    """
    if len(lengths) == 1:
        return wrapped_indices_or_length(indices[..., 0], lengths[0]).astype(mx.int64)
    flat_indices, is_outside = mx.zeros(indices.shape[:-1], mx.int64), mx.zeros(indices.shape[:-1], mx.bool_)
    for axis, length in enumerate(lengths):
        column = integer_indices(indices)[..., axis].astype(mx.int64)
        column = mx.where(column < 0, column + length, column)
        is_outside = mx.logical_or(is_outside, (column < 0) | (column >= length))
        flat_indices = flat_indices * length + column
    return mx.where(is_outside, math.prod(lengths), flat_indices)
