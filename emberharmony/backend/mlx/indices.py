"""Indices and writes by index, on MLX, which reads and writes wherever an index points."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.host import host_indices
from emberharmony.backend.mlx.derivatives import Arrays, differentiated
from emberharmony.backend.mlx.dtypes import DTYPES, of_host
from emberharmony.backend.shared.indexing import checked
from emberharmony.core.checked_mode import checking
from emberharmony.core.errors import ArgumentTypeError

Written = Callable[[mx.array, mx.array, mx.array], mx.array]


def _added(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
    return rows.at[at].add(updates)


def _extreme(native: Written) -> Written:
    """Returns the rows' extremes with updates, NaN wherever one took part: MLX passes over them here, unlike elsewhere.

    All that reach the extreme share its derivative.
    """

    def moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        rows, at, updates = primals[0], mx.stop_gradient(primals[1]), primals[2]
        before, new = (rows == outputs[0]).astype(rows.dtype), (updates == outputs[0][at]).astype(rows.dtype)
        count = mx.maximum(_added(before, at, new), 1)
        return (_added(before * tangents[0], at, new * tangents[2]) / count,)

    # A vmap over the places must see them among the arguments.
    derived = differentiated(native, moved)

    def extremes(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
        result: mx.array = derived(rows, at, updates)
        if not mx.issubdtype(rows.dtype, mx.floating):
            return result
        nan = mx.isnan(rows).at[at].maximum(mx.isnan(updates))
        return mx.where(nan, mx.array(math.nan, rows.dtype), result)

    return extremes


def _multiplied(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
    """Returns products; the derivative, which MLX lacks, is for each factor the product of the others.

    Where two of them are zero, second derivatives are lost.
    """

    def slopes(rows: mx.array, at: mx.array, updates: mx.array) -> tuple[mx.array, mx.array]:
        at = mx.stop_gradient(at)
        zero = updates == 0
        factors = mx.where(zero, mx.ones_like(updates), updates)
        product = _multiplied(mx.ones_like(rows), at, factors)
        zeros = _added(mx.zeros(rows.shape, mx.int32), at, zero.astype(mx.int32))
        others = mx.where(zeros[at] == zero, product[at] / factors, mx.zeros_like(updates))
        return mx.where(zeros > 0, mx.zeros_like(rows), product), rows[at] * others

    def moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        whole, others = slopes(*primals)
        return (_added(tangents[0] * whole, mx.stop_gradient(primals[1]), tangents[2] * others),)

    def pull(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        whole, others = slopes(*primals)
        places = primals[1]
        return cotangents[0] * whole, mx.zeros_like(places), cotangents[0][mx.stop_gradient(places)] * others

    def multiplied(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
        return rows.at[at].multiply(updates)

    result: mx.array = differentiated(multiplied, moved, pull)(rows, at, updates)
    return result


ON_ROWS: dict[str, Written] = {
    "add": _added,
    "mul": _multiplied,
    "max": _extreme(lambda rows, at, updates: rows.at[at].maximum(updates)),
    "min": _extreme(lambda rows, at, updates: rows.at[at].minimum(updates)),
}


def integers(indices: mx.array) -> mx.array:
    """Returns indices that are a tensor.

    Raises: ArgumentTypeError if they are no integers.
    """
    if not mx.issubdtype(indices.dtype, mx.integer):
        raise ArgumentTypeError(f"indices are integers, not {DTYPES.neutral[indices.dtype]}")
    # MLX cannot differentiate a gather whose indices depend on a differentiated tensor.
    return mx.stop_gradient(indices)


def seen(indices: Any) -> Any:
    """Returns indices; in checked mode a tensor of them as an array on the host, where all are checked."""
    if isinstance(indices, mx.array) and checking():
        return np.asarray(integers(indices))
    return indices


def indices_for(indices: Any, length: int) -> mx.array:
    """Returns indices as a tensor; those known to the host are checked."""
    indices = seen(indices)
    if isinstance(indices, mx.array):
        return integers(indices)
    return of_host(checked(host_indices(indices), length))


def mask_axes(part: Any) -> int | None:
    """Returns the number of axes of a mask, -1 for other tensors, None for all else."""
    if not isinstance(part, mx.array):
        return None
    return int(part.ndim) if part.dtype == mx.bool_ else -1


def written(rows: mx.array, at: mx.array, updates: mx.array, reduction: str | None, spill: bool) -> mx.array:
    """Returns rows with updates written at indices from 0 to n; those at n are dropped (there are any if `spill`).

    An unread index outside is led to one row more, which is cut off again.
    """
    count = rows.shape[0]
    updates = mx.broadcast_to(updates, (*at.shape, *rows.shape[1:]))
    if not rows.size or not updates.size:
        # MLX 0.32 divides by the size of a row, and the process ends.
        return rows
    if spill:
        rows = mx.concatenate([rows, mx.zeros((1, *rows.shape[1:]), rows.dtype)])
    if reduction is None:
        rows = mx.array(rows)
        rows[at] = _last_of_equal(rows.shape[0], at, updates)
    else:
        rows = ON_ROWS[reduction](rows, at, updates)
    return rows[:count] if spill else rows


def _last_of_equal(count: int, at: mx.array, updates: mx.array) -> mx.array:
    """Returns updates of which, at equal indices, the last alone takes the derivative: MLX gives it to each."""
    places = mx.arange(at.size).reshape(at.shape)
    last = mx.zeros(count, places.dtype).at[at].maximum(places)[at] == places
    return mx.where(last.reshape((*at.shape, *(1,) * (updates.ndim - at.ndim))), updates, mx.stop_gradient(updates))


def led_aside(indices: mx.array, length: int) -> mx.array:
    """Returns indices as int64, with `length` in place of those outside 0 to length - 1."""
    indices = integers(indices).astype(mx.int64)
    return mx.where((indices < 0) | (indices >= length), length, indices)


def linear(indices: mx.array, lengths: Sequence[int]) -> mx.array:
    """Returns unread indices (..., k) as positions in k axes; one past the last position for those outside."""
    at, outside = mx.zeros(indices.shape[:-1], mx.int64), mx.zeros(indices.shape[:-1], mx.bool_)
    for axis, length in enumerate(lengths):
        column = integers(indices)[..., axis].astype(mx.int64)
        column = mx.where(column < 0, column + length, column)
        outside = mx.logical_or(outside, (column < 0) | (column >= length))
        at = at * length + column
    return mx.where(outside, math.prod(lengths), at)
