"""Reductions, on Dask: NumPy reduces each block, and the results of the blocks are reduced in a tree."""

from typing import Any

import dask.array as da
import numpy as np
from dask.array.reductions import cumreduction

from emberharmony.backend.dask.blocks import (
    Block,
    Slot,
    abstract_results,
    apply_to_blocks,
    require_known_lengths,
    zeros,
)
from emberharmony.backend.dask.dtypes import DTYPES, cast, widen
from emberharmony.backend.dask.shapes import reshape_to
from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis
from emberharmony.core.options import require_scalar


def _drop_empty_blocks(x: da.Array, axes: tuple[int, ...]) -> da.Array:
    """Returns a tensor rechunked without its empty blocks along nonempty axes."""
    nonempty_chunks_by_axis = {a: tuple(n for n in x.chunks[a] if n) for a in axes if x.shape[a]}
    return (
        x.rechunk(nonempty_chunks_by_axis)
        if any(nonempty_chunks_by_axis[a] != x.chunks[a] for a in nonempty_chunks_by_axis)
        else x
    )


def fold_blocks(op: str, x: da.Array, axis: Any, keepdims: bool, dtype: Any = None) -> da.Array:
    """Returns a reduction by an op, such as a sum, that is applied to each block and then to the results of the blocks.

    Args:
        op: the op.
        x: the tensor, in the dtype of the result.
        axis: its axes.
        keepdims: whether the axes stay, with length 1.
        dtype: that of the result, if the op takes it.
    """
    x_dtype, options = x.dtype, {} if dtype is None else {"dtype": dtype}
    axes = nonnegative_axes(axis, require_known_lengths(x).ndim)
    x = _drop_empty_blocks(x, axes)
    if not axes:
        return apply_to_blocks(Block(op, (Slot(0), ()), options, x_dtype), [x], x.ndim, x_dtype)
    fold_block = Block(op, (Slot(0),), options, x_dtype)
    empty_result = np.empty((0,) * (x.ndim if keepdims else x.ndim - len(axes)), x_dtype)
    return da.reduction(x, fold_block, fold_block, axis=axes, keepdims=keepdims, dtype=x_dtype, meta=empty_result)


class DaskReductionOps:
    """Holds the ops of `ops/reductions/reduction.py`.

    Dask reduces each block and then their results; the bodies would make several passes over all blocks.
    """

    bound: Any
    kind_of: Any

    @staticmethod
    def logsumexp(x: da.Array, axis: Any = None, keepdims: bool = False) -> da.Array:
        dtype = abstract_results("logsumexp", x, axis, keepdims).dtype
        return cast(fold_blocks("logsumexp", widen(cast(x, dtype)), axis, keepdims), dtype)

    def mean(self, x: da.Array, axis: Any = None, keepdims: bool = False) -> da.Array:
        dtype = abstract_results("mean", x, axis, keepdims).dtype
        element_count = int(np.prod([x.shape[a] for a in nonnegative_axes(axis, x.ndim)], dtype=np.int64))
        sum_of_x = self.bound.sum(widen(cast(x, dtype)), axis, keepdims)
        return cast(self.bound.divide(sum_of_x, float(element_count)), dtype)

    def var(self, x: da.Array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> da.Array:
        dtype = abstract_results("var", x, axis, keepdims, correction).dtype
        axes, ops = nonnegative_axes(axis, x.ndim), self.bound
        widened_x = _drop_empty_blocks(
            cast(x, DTYPES["complex128" if self.kind_of(x) == "complex" else "float64"]), axes
        )
        element_count = float(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        divisor = ops.subtract(DTYPES["float64"].type(element_count), require_scalar("correction", correction))
        # Combine the moments of the blocks in one pass: a second one would keep or compute all blocks again.
        # Of one element it is 0, but NaN if the element is infinite or NaN.
        biased_variance = (
            da.var(widened_x, axis=axes, keepdims=keepdims)
            if axes
            else ops.absolute(ops.subtract(widened_x, widened_x))
        )
        variance = ops.divide(
            ops.multiply(biased_variance, element_count), ops.where(ops.greater(divisor, 0), divisor, np.nan)
        )
        return cast(variance, dtype)

    def std(self, x: da.Array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> da.Array:
        return self.bound.sqrt(self.bound.var(x, axis, keepdims, correction))

    @staticmethod
    def argmax(x: da.Array, axis: int | None = None, keepdims: bool = False) -> da.Array:
        return _index_of_extreme("argmax", x, axis, keepdims)

    @staticmethod
    def argmin(x: da.Array, axis: int | None = None, keepdims: bool = False) -> da.Array:
        return _index_of_extreme("argmin", x, axis, keepdims)

    @staticmethod
    def cumsum(x: da.Array, axis: int | None = None, dtype: Any = None) -> da.Array:
        return _accumulate("cumsum", np.add, 0, x, axis, dtype)

    @staticmethod
    def cumprod(x: da.Array, axis: int | None = None, dtype: Any = None) -> da.Array:
        return _accumulate("cumprod", np.multiply, 1, x, axis, dtype)


def _index_of_extreme(op: str, x: da.Array, axis: int | None, keepdims: bool) -> da.Array:
    abstract_result = abstract_results(op, x, axis, keepdims)
    if not x.ndim:
        return zeros(abstract_result.shape, abstract_result.dtype)
    if axis is None:
        # Dask takes the first of equal elements in the order of the blocks, which is that of the elements of a vector.
        x, axis = reshape_to(x, (x.size,)), 0
    axis = nonnegative_axis(axis, x.ndim)
    x = _drop_empty_blocks(x if x.dtype.kind in "iuf" else cast(x, DTYPES["float32"]), (axis,))
    extreme_index = getattr(da, op)(x, axis=axis)
    return cast(reshape_to(extreme_index, abstract_result.shape), abstract_result.dtype)


class _Scan(Block):
    """A cumulative op of the NumPy backend as a function of a block and an axis."""

    def __call__(self, block: np.ndarray, axis: int) -> Any:
        return super().__call__(block, axis=axis)


def _accumulate(op: str, combine: Any, start: int, x: da.Array, axis: int | None, dtype: Any) -> da.Array:
    abstract_result = abstract_results(op, x, axis, dtype)
    widened_x = widen(cast(x, abstract_result.dtype))
    if axis is None:
        widened_x, axis = reshape_to(widened_x, (widened_x.size,)), 0
    if not widened_x.size:
        return cast(widened_x, abstract_result.dtype)
    axis = nonnegative_axis(axis, widened_x.ndim)
    widened_x = _drop_empty_blocks(widened_x, (axis,))
    scan = _Scan(op, (Slot(0),), {"dtype": widened_x.dtype}, widened_x.dtype)
    return cast(cumreduction(scan, combine, start, widened_x, axis, widened_x.dtype), abstract_result.dtype)
