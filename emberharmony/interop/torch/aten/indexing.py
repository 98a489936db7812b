"""Operators of ATen that read and write elements at indices, computed by ops."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten

_END = 2**62
"""The largest integer, by which PyTorch denotes the end of an axis."""


def key_at(x: Any, dim: int, key: Any) -> tuple[Any, ...]:
    """Returns the index tuple that applies a key to one axis and takes all of the other axes."""
    return (slice(None),) * (dim % max(len(x.shape), 1)) + (key,)


def _slice(start: int | None, end: int | None, step: int) -> slice:
    return slice(start, None if end is None or end >= _END else end, step)


@aten("slice", "slice_copy")
def slice_(x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Returns the elements in a range of positions along an axis."""
    if start in (None, 0) and (end is None or end >= _END) and step == 1:
        return x
    return ops.get_item(x, key_at(x, dim, _slice(start, end, step)))


@aten("narrow", "narrow_copy")
def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """Returns the elements in a range of an axis, given its start and length."""
    start = start if start >= 0 else start + x.shape[dim]
    return ops.get_item(x, key_at(x, dim, slice(start, start + length)))


@aten("slice_scatter")
def slice_scatter(
    x: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """Returns a copy of a tensor with the elements of `src` in a range of an axis."""
    return ops.set_item(x, key_at(x, dim, _slice(start, end, step)), src)


@aten("select", "select_copy")
def select(x: Any, dim: int, index: Any) -> Any:
    """Returns the elements at one index of an axis, which is dropped."""
    return ops.get_item(x, key_at(x, dim, index))


@aten("select_scatter")
def select_scatter(x: Any, src: Any, dim: int, index: int) -> Any:
    """Returns a copy of a tensor with the elements of `src` at one index of an axis."""
    return ops.set_item(x, key_at(x, dim, index), src)


@aten("diagonal_scatter")
def diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Returns a copy of a tensor with the elements of `src` on a diagonal."""
    moved_tensor = ops.moveaxis(x, (dim1, dim2), (-2, -1))
    length = src.shape[-1]
    row_indices = ops.add(ops.arange(length), max(-offset, 0))
    column_indices = ops.add(ops.arange(length), max(offset, 0))
    return ops.moveaxis(ops.set_item(moved_tensor, (..., row_indices, column_indices), src), (-2, -1), (dim1, dim2))


def _key_of_indices(indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([slice(None) if index is None else index for index in indices])


@aten("index", "_unsafe_index")
def index(x: Any, indices: Sequence[Any]) -> Any:
    """Returns the elements at tensors of indices, one for each axis; None stands for a whole axis."""
    return ops.get_item(x, _key_of_indices(indices))


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    """Returns a copy of a tensor with values written at indices, or added there."""
    return ops.set_item(x, _key_of_indices(indices), ops.cast(values, ops.dtype(x)), "add" if accumulate else "set")


@aten("index_select")
def index_select(x: Any, dim: int, index: Any) -> Any:
    """Returns the elements at the given indices of an axis."""
    return ops.take(x, index, axis=dim) if len(x.shape) else x


@aten("index_add")
def index_add(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    """Returns a copy of a tensor with `alpha * source` added at the given indices of an axis."""
    return _write_at_index(x, dim, index, ops.multiply(source, alpha), "add")


@aten("index_copy")
def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    """Returns a copy of a tensor with the elements of `source` at the given indices of an axis."""
    return _write_at_index(x, dim, index, source, "set")


@aten("index_fill")
def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    """Returns a copy of a tensor with a number at the given indices of an axis."""
    return _write_at_index(x, dim, index, ops.cast(value, ops.dtype(x)), "set")


def _write_at_index(x: Any, dim: int, index: Any, source: Any, mode: Any) -> Any:
    if not len(x.shape):
        return ops.reshape(_write_at_index(ops.reshape(x, (1,)), 0, index, source, mode), ())
    return ops.set_item(x, key_at(x, dim, index), ops.cast(source, ops.dtype(x)), mode)


@aten("take")
def take(x: Any, index: Any) -> Any:
    """Returns the elements at indices into the flattened tensor."""
    return ops.take(ops.ravel(x), index)


@aten("put")
def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Returns a copy of a tensor with new elements at indices into the flattened tensor."""
    flat_result = ops.set_item(ops.ravel(x), (ops.ravel(index),), ops.ravel(source), "add" if accumulate else "set")
    return ops.reshape(flat_result, tuple(x.shape))


@aten("embedding")
def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """Returns the rows of a table; the row `padding_idx` gets no gradient."""
    rows = ops.embedding(indices, weight)
    if padding_idx < 0:
        return rows
    return ops.where(ops.expand_dims(ops.equal(indices, padding_idx), -1), ops.stop_gradient(rows), rows)


@aten("gather")
def gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    """Returns the elements at indices along an axis; along other axes the index may be shorter than the tensor."""
    if not len(x.shape):
        return ops.broadcast_to(x, tuple(index.shape))
    if not len(index.shape):
        return ops.reshape(gather(x, dim, ops.reshape(index, (1,))), ())
    if len(index.shape) != len(x.shape):  # an empty index may have any number of axes
        return ops.zeros(tuple(index.shape), ops.dtype(x))
    dim %= len(x.shape)
    if any(n != m for a, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if a != dim):
        x = ops.get_item(x, tuple(slice(None) if a == dim else slice(0, n) for a, n in enumerate(index.shape)))
    return ops.take_along_axis(x, index, axis=dim)


@aten("take_along_dim")
def take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Any:
    """Returns the elements at indices along an axis, with broadcasting along the others."""
    if dim is None:
        return ops.take(ops.ravel(x), ops.ravel(indices))
    return ops.take_along_axis(x, indices, axis=dim)


def _scatter(x: Any, dim: int, index: Any, src: Any, mode: Any) -> Any:
    """Returns a copy of a tensor with elements of `src` written or combined at indices along an axis."""
    if not len(x.shape) or not len(index.shape):
        vector_arguments = [ops.reshape(each, (1,)) if hasattr(each, "shape") else each for each in (x, index, src)]
        return ops.reshape(
            _scatter(vector_arguments[0], 0, vector_arguments[1], vector_arguments[2], mode), tuple(x.shape)
        )
    rank, dim = len(index.shape), dim % len(index.shape)
    if hasattr(src, "shape"):
        if tuple(src.shape) != tuple(index.shape):
            src = ops.get_item(src, tuple(slice(0, n) for n in index.shape))
        src = ops.cast(src, ops.dtype(x))
    index_grids = [ops.reshape(ops.arange(n), (n,) + (1,) * (rank - a - 1)) for a, n in enumerate(index.shape)]
    return ops.set_item(x, (*index_grids[:dim], index, *index_grids[dim + 1 :]), src, mode)


@aten("scatter.src")
def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Returns a copy of a tensor with the elements of `src` at indices along an axis."""
    return _scatter(x, dim, index, src, "set")


@aten("scatter.value")
def scatter_value(x: Any, dim: int, index: Any, value: Any) -> Any:
    """Returns a copy of a tensor with a number at indices along an axis."""
    return _scatter(x, dim, index, value, "set")


@aten("scatter_add")
def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Returns a copy of a tensor with the elements of `src` added at indices along an axis."""
    return _scatter(x, dim, index, src, "add")


_REDUCED = {
    "sum": "add",
    "add": "add",
    "mean": "add",
    "prod": "multiply",
    "multiply": "multiply",
    "amax": "max",
    "amin": "min",
}
"""The modes of `ops.set_item` by PyTorch's names."""


@aten("scatter.reduce")
def scatter_reduce_src(x: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    """Returns a copy of a tensor with the elements of `src` added or multiplied in at indices along an axis."""
    return _scatter(x, dim, index, src, _REDUCED[reduce])


@aten("scatter.value_reduce")
def scatter_reduce_value(x: Any, dim: int, index: Any, value: Any, reduce: str) -> Any:
    """Returns a copy of a tensor with a number added or multiplied in at indices along an axis."""
    return _scatter(x, dim, index, value, _REDUCED[reduce])


@aten("scatter_reduce.two")
def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """Returns a copy of a tensor in which the elements of `src` are reduced into indices along an axis."""
    if not include_self:
        x = _scatter(x, dim, index, _neutral_number(reduce, ops.dtype(x)), "set")
    combined_x = _scatter(x, dim, index, src, _REDUCED[reduce])
    if reduce != "mean":
        return combined_x
    ones = ops.ones_like(x)
    initial_counts = ones if include_self else _scatter(ones, dim, index, 0, "set")
    contribution_counts = _scatter(initial_counts, dim, index, ops.ones_like(src), "add")
    contribution_counts = ops.maximum(contribution_counts, 1)
    return (
        ops.divide(combined_x, contribution_counts)
        if ops.isdtype(ops.dtype(x), "real floating")
        else ops.floor_divide(combined_x, contribution_counts)
    )


def _neutral_number(reduce: str, dtype: Any) -> Any:
    """Returns the neutral number of a reduction in a dtype, such as 0 for a sum."""
    if reduce in ("amax", "amin"):
        needs_lowest = reduce == "amax"
        if ops.isdtype(dtype, "real floating"):
            return -math.inf if needs_lowest else math.inf
        return ops.iinfo(dtype).min if needs_lowest else ops.iinfo(dtype).max
    return 1 if reduce == "prod" else 0


@aten("index_reduce")
def index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    """Returns a copy of a tensor in which slices of `source` are reduced into the given indices of an axis."""
    if not len(source.shape):
        return scatter_reduce(x, dim, ops.reshape(index, ()), source, reduce, include_self)
    index_shape = [1] * len(source.shape)
    index_shape[dim] = -1
    wide_index = ops.broadcast_to(ops.reshape(index, tuple(index_shape)), tuple(source.shape))
    return scatter_reduce(x, dim, wide_index, source, reduce, include_self)


@aten("masked_select")
def masked_select(x: Any, mask: Any) -> Any:
    """Returns the elements where a mask is true, as a vector."""
    broadcast_shape = ops.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    return ops.get_item(ops.broadcast_to(x, broadcast_shape), ops.broadcast_to(mask, broadcast_shape))


@aten("masked_scatter")
def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """Returns a tensor with the elements of another one, in their order, where a mask is true."""
    broadcast_shape = ops.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    x, mask = ops.broadcast_to(x, broadcast_shape), ops.broadcast_to(mask, broadcast_shape)
    source_indices = ops.subtract(ops.cumsum(ops.cast(ops.ravel(mask), "int64"), axis=0), 1)
    taken_elements = ops.take(ops.ravel(source), ops.clip(source_indices, 0, math.prod(source.shape) - 1))
    return ops.where(mask, ops.reshape(taken_elements, tuple(x.shape)), x)


@aten("nonzero")
def nonzero(x: Any) -> Any:
    """Returns a matrix whose rows are the indices of the elements that are not 0."""
    return ops.argwhere(x)


@aten("nonzero_numpy")
def nonzero_numpy(x: Any) -> Any:
    """Returns a vector of indices for each axis: those of the elements that are not 0."""
    return ops.nonzero(x if len(x.shape) else ops.reshape(x, (1,)))


@aten("isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor")
def isin(elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Returns booleans that tell which elements occur in `test_elements`."""
    return ops.isin(elements, ops.convert_to_tensor(test_elements), invert=invert)


@aten("searchsorted")
def searchsorted(
    sorted_sequence: Any,
    x: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Returns the indices at which numbers would be inserted into sorted sequences."""
    is_right = right or side == "right"
    if sorter is not None:
        sorted_sequence = ops.take_along_axis(sorted_sequence, sorter, axis=-1)
    if len(sorted_sequence.shape) == 1:
        return ops.searchsorted(sorted_sequence, x, "right" if is_right else "left")
    compare = ops.less_equal if is_right else ops.less
    is_before = compare(ops.expand_dims(sorted_sequence, -2), ops.expand_dims(x, -1))
    return ops.sum(ops.cast(is_before, "int64"), axis=-1)


@aten("bucketize")
def bucketize(x: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    """Returns for each element the number of the interval between sorted boundaries in which it lies."""
    return ops.searchsorted(boundaries, x, "right" if right else "left")
