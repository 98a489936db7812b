"""Reductions that are accurate and fast along every axis.

NumPy 2.4 adds pairwise along the last axis of a contiguous array only. Along any other axis it adds row by row, so the
sum of 500,000 rows of two float32 loses 4 digits, and takes 50 times as long as the sum of all elements. Here a long
axis is folded instead: its rows are reshaped to 32 long rows, which are reduced at the speed of memory, and the result
is folded again until few rows are left.
"""

import math
from typing import Any

import numpy as np

from emberharmony.backend.promote import nonnegative_axes

FEW = 4096
"""Up to this number of elements, folding gains nothing."""
_NO_AXIS = -(2**31)
"""The number that stands for None as an axis in NumPy's C code, so that `x.argmax(-2**31)` is `x.argmax()`."""
_FEW_ROWS, _ROWS = 64, 32
"""Up to the first number of rows, NumPy adds row by row; more rows are folded to the second number of rows."""
_WIDE_ROW = 512
"""Rows of this many elements are added fast without folding, and a block of them stays in the cache."""
_BLOCK = 2**16
"""The number of float64 that stay in the cache."""
_CANCELLED = 1e-6
"""The difference of two float64 that is as small a part of the first has still more digits than float32."""
_WIDER = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}


def check_axis(axis: Any, ndim: int) -> None:
    """Checks an axis, because NumPy 2.4 accepts axes of 0-d arrays, and a number that means "no axis" in C.

    Raises:
        AxisError: if it is out of range.
    """
    if axis is not None and (not ndim or axis == _NO_AXIS):
        nonnegative_axes(axis, ndim)


def fold(ufunc: np.ufunc, x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    """Returns `x` reduced over axes, in its dtype; the error of a sum is a few eps of the sum of magnitudes.

    Args:
        ufunc: `np.add`, `np.maximum` or another associative one.
        x: a tensor.
        axis: the axes to reduce; None for all.
        keepdims: whether the reduced axes stay, with length 1.
    """
    if x.size <= FEW:
        # Pass the axes in a tuple, because NumPy 2.4 accepts the numbers 0 and -1 as axes of a 0-d array.
        return ufunc.reduce(
            x, (None if axis is None else tuple(axis)) if axis.__class__ is not int else (axis,), None, None, keepdims
        )
    axes = nonnegative_axes(axis, x.ndim)
    wide_dtype = _WIDER.get(x.dtype.char, x.dtype) if ufunc is np.add else x.dtype
    if not x.flags.c_contiguous:
        if x.flags.f_contiguous:
            # The tensor is contiguous in Fortran's order, so reduce its transpose.
            return fold(ufunc, x.T, tuple(x.ndim - 1 - a for a in axes), keepdims).T
        return ufunc.reduce(x, axes, wide_dtype, None, keepdims).astype(x.dtype, copy=False)
    shape, dtype = list(x.shape), x.dtype
    for first_axis, end_axis in reversed(_runs_of_axes(axes)):
        x = _fold_middle(ufunc, x.reshape(math.prod(shape[:first_axis]), -1, math.prod(shape[end_axis:])), wide_dtype)
        shape[first_axis:end_axis] = [1] * (end_axis - first_axis)
    return x.reshape(shape if keepdims else [n for a, n in enumerate(shape) if a not in axes]).astype(dtype, copy=False)


def _runs_of_axes(axes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Returns the bounds (first, last + 1) of each run of adjacent axes."""
    runs: list[tuple[int, int]] = []
    for a in sorted(axes):
        if runs and runs[-1][1] == a:
            runs[-1] = runs[-1][0], a + 1
        else:
            runs.append((a, a + 1))
    return runs


def _fold_middle(ufunc: np.ufunc, x: np.ndarray, wide_dtype: np.dtype) -> np.ndarray:
    """Returns a contiguous tensor (before, n, after), reduced over its middle axis; partial sums have a wide dtype."""
    outer_length, n, inner_length = x.shape
    while inner_length > 1 and n > _FEW_ROWS:
        block_count = n // _ROWS
        whole_blocks, remainder = x[:, : block_count * _ROWS], x[:, block_count * _ROWS :]
        if inner_length < _WIDE_ROW:
            block_sums = ufunc.reduce(whole_blocks.reshape(outer_length, _ROWS, block_count * inner_length), 1).reshape(
                outer_length, block_count, inner_length
            )
        else:
            block_sums = ufunc.reduce(whole_blocks.reshape(outer_length, block_count, _ROWS, inner_length), 2)
            remainder = ufunc.reduce(remainder, 1, None, None, True) if remainder.shape[1] else remainder
        x = np.concatenate([block_sums, remainder], 1, dtype=wide_dtype)
        n = x.shape[1]
    return ufunc.reduce(x, 1)


def squared_deviation_sums(rows: np.ndarray) -> np.ndarray:
    """Returns, for each row of a contiguous matrix, the sum of squared differences from its mean, in float64.

    Each row is read once, block by block. Differences are taken from the mean of the first block, and the sum is then
    corrected for the true mean. This costs few digits, because the two means differ by no more than the row varies.
    """
    square_sums = np.empty(len(rows))
    if rows.shape[1] < _BLOCK:
        _short_deviation_sums(rows, square_sums)
        return square_sums
    for i, row in enumerate(rows):
        pilot_mean = np.add.reduce(row[:_BLOCK], dtype=np.float64) / min(row.size, _BLOCK)
        square_sum = deviations_sum = 0.0
        for start in range(0, row.size, _BLOCK):
            block = row[start : start + _BLOCK].astype(np.float64)
            block -= pilot_mean
            deviations_sum += np.add.reduce(block)
            square_sum += np.dot(block, block)
        square_sums[i] = square_sum - deviations_sum * deviations_sum / row.size
    return square_sums


def _short_deviation_sums(rows: np.ndarray, result: np.ndarray) -> None:
    """Writes `squared_deviation_sums` of short rows into an array, several rows at a time.

    The squares of the elements less those of the means suffice, unless a row varies little about a mean far from 0.
    """
    length = rows.shape[1]
    rows_at_once, ones = _BLOCK // length, np.ones(length)
    buffer = np.empty((min(rows_at_once, len(rows)), length))
    for start in range(0, len(rows), rows_at_once):
        few_rows = rows[start : start + rows_at_once]
        block = buffer[: len(few_rows)]
        block[...] = few_rows
        square_sums = result[start : start + rows_at_once]
        means = block @ ones
        means /= length
        np.vecdot(block, block, out=square_sums)
        error_bound = square_sums * _CANCELLED
        square_sums -= means * means * length
        if not (square_sums > error_bound).all():
            block -= means[:, None]
            np.vecdot(block, block, out=square_sums)


def reduction_rows(x: np.ndarray, axis: Any) -> np.ndarray | None:
    """Returns a tensor as a matrix with one row per reduction; None if `squared_deviation_sums` does not suit it.

    It suits contiguous real tensors that are reduced over their last axes: those of float64 in long rows, because the
    means of short ones have fewer digits.
    """
    if x.size < _BLOCK or x.dtype.kind != "f" or not x.flags.c_contiguous:
        return None
    axes = nonnegative_axes(axis, x.ndim)
    first_axis = x.ndim - len(axes)
    if sorted(axes) != list(range(first_axis, x.ndim)):
        return None
    length = math.prod(x.shape[first_axis:])
    return x.reshape(-1, length) if length >= _BLOCK or (x.itemsize < 8 and length > 1) else None
