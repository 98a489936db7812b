"""Indices and writes by index, on MLX, which reads and writes wherever an index points."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from emberharmony.backend.indices import checked, host_indices
from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.core.errors import ArgumentTypeError


def _greatest(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
    return _with_nan(rows.at[at].maximum(updates), rows, at, updates)


def _least(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
    return _with_nan(rows.at[at].minimum(updates), rows, at, updates)


def _with_nan(extremes: mx.array, rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
    """Returns extremes with NaN wherever one took part: MLX passes over them here, unlike elsewhere."""
    if not mx.issubdtype(rows.dtype, mx.floating):
        return extremes
    return mx.where(mx.isnan(rows).at[at].maximum(mx.isnan(updates)), mx.array(math.nan, rows.dtype), extremes)


@mx.custom_function
def _multiplied(rows: mx.array, at: mx.array, updates: mx.array) -> mx.array:
    return rows.at[at].multiply(updates)


@_multiplied.vjp
def _multiplied_vjp(
    primals: tuple[mx.array, mx.array, mx.array], cotangent: mx.array, output: mx.array
) -> tuple[mx.array, mx.array, mx.array]:
    """Gives the gradient MLX lacks: for each factor the product of the others, also where some are zero.

    Where two are, second derivatives are lost.
    """
    rows, at, updates = primals
    zero = updates == 0
    factors = mx.where(zero, mx.ones_like(updates), updates)
    product: Any = _multiplied(mx.ones_like(rows), at, factors)
    zeros = mx.zeros(rows.shape, mx.int32).at[at].add(zero.astype(mx.int32))
    nothing = mx.zeros_like(updates)
    others = mx.where(zeros[at] == zero, product[at] / factors, nothing)
    whole = mx.where(zeros > 0, mx.zeros_like(rows), product)
    return cotangent * whole, mx.zeros_like(at), cotangent[at] * rows[at] * others


ON_ROWS: dict[str, Callable[..., Any]] = {
    "add": lambda rows, at, updates: rows.at[at].add(updates),
    "mul": _multiplied,
    "max": _greatest,
    "min": _least,
}


def integers(indices: mx.array) -> mx.array:
    """Returns indices that are a tensor.

    Raises: ArgumentTypeError if they are no integers.
    """
    if not mx.issubdtype(indices.dtype, mx.integer):
        raise ArgumentTypeError(f"indices are integers, not {DTYPES.neutral[indices.dtype]}")
    return indices


def indices_for(indices: Any, length: int) -> mx.array:
    """Returns indices as a tensor; those known to the host are checked."""
    if isinstance(indices, mx.array):
        return integers(indices)
    return mx.array(checked(host_indices(indices), length))


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
    if spill:
        rows = mx.concatenate([rows, mx.zeros((1, *rows.shape[1:]), rows.dtype)])
    updates = mx.broadcast_to(updates, (*at.shape, *rows.shape[1:]))
    if reduction is None:
        rows = mx.array(rows)
        rows[at] = updates
    else:
        rows = ON_ROWS[reduction](rows, at, updates)
    return rows[:count] if spill else rows


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
        outside = outside | (column < 0) | (column >= length)
        at = at * length + column
    return mx.where(outside, math.prod(lengths), at)
