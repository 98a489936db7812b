"""Operators of ATen that count, find middle and most frequent elements, and reduce groups of rows."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.interop.torch.aten.indexing import embedding
from emberharmony.interop.torch.aten.reduction import sort_stable
from emberharmony.interop.torch.aten.table import aten


def _take_at_index(tensors: Sequence[Any], place: Any, dim: int, keepdim: bool) -> tuple[Any, ...]:
    """Returns the elements of several tensors at one index along an axis."""
    taken_elements = [ops.take_along_axis(x, place, axis=dim) for x in tensors]
    return tuple(x if keepdim else ops.squeeze(x, dim) for x in taken_elements)


@aten("nanmedian.dim")
def nanmedian(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, ...]:
    """Returns the medians along an axis without regard to NaN, of two middle elements the lower, and their indices."""
    if not len(x.shape):
        return x, ops.zeros((), "int64")
    is_number = ops.logical_not(ops.isnan(x)) if ops.isdtype(ops.dtype(x), "real floating") else ops.ones_like(x)
    number_count = ops.sum(ops.cast(is_number, "int64"), axis=dim, keepdims=True)
    middle_index = ops.maximum(ops.floor_divide(ops.subtract(number_count, 1), 2), 0)
    return _take_at_index(sort_stable(x, True, dim), middle_index, dim, keepdim)


@aten("nanmedian.default")
def nanmedian_of_all(x: Any) -> Any:
    """Returns the median of all elements that are not NaN, of two middle elements the lower one."""
    return nanmedian(ops.ravel(x), 0)[0]


@aten("mode")
def mode(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, ...]:
    """Returns the most frequent element along an axis, of several the smallest, and its last index."""
    if not len(x.shape):
        return x, ops.zeros((), "int64")
    sorted_values, sorting_indices = (ops.moveaxis(y, dim, -1) for y in sort_stable(x, True, dim))
    positions = ops.arange(sorted_values.shape[-1])
    is_run_start = ops.not_equal(sorted_values[..., 1:], sorted_values[..., :-1])
    is_run_start = ops.concatenate([ops.ones((*sorted_values.shape[:-1], 1), "bool"), is_run_start], axis=-1)
    first_positions = ops.cummax(ops.where(is_run_start, positions, 0), axis=-1)
    first_positions = first_positions[0] if isinstance(first_positions, tuple) else first_positions
    last_of_longest_run = ops.argmax(ops.subtract(positions, first_positions), axis=-1, keepdims=True)
    value_and_index = _take_at_index((sorted_values, sorting_indices), last_of_longest_run, -1, True)
    moved_results = [ops.moveaxis(y, -1, dim) for y in value_and_index]
    return tuple(y if keepdim else ops.squeeze(y, dim) for y in moved_results)


@aten("unique_consecutive")
def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, Any, Any]:
    """Returns the elements or slices with consecutive repetitions removed, the index of each among them, and counts."""
    rows = ops.ravel(x) if dim is None else ops.moveaxis(x, dim, 0)
    flat_rows = ops.reshape(rows, (rows.shape[0], -1))
    is_change = ops.any(ops.not_equal(flat_rows[1:], flat_rows[:-1]), axis=-1)
    is_run_start = ops.concatenate([ops.ones((min(rows.shape[0], 1),), "bool"), is_change], axis=0)
    inverse_indices = ops.subtract(ops.cumsum(ops.cast(is_run_start, "int64"), axis=0), 1)
    run_starts = ops.nonzero(is_run_start)[0]
    unique_values = ops.take(rows, run_starts, axis=0)
    run_lengths = ops.segment_sum(ops.ones_like(inverse_indices), inverse_indices, run_starts.shape[0])
    if dim is None:
        return unique_values, ops.reshape(inverse_indices, tuple(x.shape)), run_lengths
    return ops.moveaxis(unique_values, 0, dim), inverse_indices, run_lengths


@aten("histogram.bins_tensor")
def histogram_of_edges(x: Any, bins: Any, weight: Any = None, density: bool = False) -> tuple[Any, Any]:
    """Returns the histogram of elements or weights between given edges, and the edges; the last interval is closed."""
    interval_count = bins.shape[0] - 1
    flat_x = ops.ravel(x)
    is_in_range = ops.logical_and(ops.greater_equal(flat_x, bins[0]), ops.less_equal(flat_x, bins[-1]))
    bin_numbers = ops.subtract(ops.searchsorted(bins, ops.where(is_in_range, flat_x, bins[0]), "right"), 1)
    weights = ops.ones_like(flat_x) if weight is None else ops.ravel(weight)
    bin_counts = ops.segment_sum(
        ops.where(is_in_range, weights, 0), ops.clip(bin_numbers, 0, interval_count - 1), interval_count
    )
    if density:
        bin_counts = ops.divide(ops.divide(bin_counts, ops.sum(bin_counts)), ops.subtract(bins[1:], bins[:-1]))
    return bin_counts, bins


@aten("histogram.bin_ct")
def histogram(
    x: Any, bins: int = 100, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> tuple[Any, Any]:
    """Returns the histogram of elements or weights in equal intervals, and the edges of the intervals."""
    low, high = range if range else (ops.min(x), ops.max(x)) if ops.size(x) else (0.0, 1.0)
    is_empty_range = ops.cast(ops.equal(low, high), ops.dtype(x))
    low, high = ops.subtract(low, ops.multiply(is_empty_range, 0.5)), ops.add(high, ops.multiply(is_empty_range, 0.5))
    edge_shares = ops.divide(ops.cast(ops.arange(bins + 1), ops.dtype(x)), bins)
    edges = ops.add(ops.multiply(low, ops.subtract(1, edge_shares)), ops.multiply(high, edge_shares))
    return histogram_of_edges(x, ops.cast(edges, ops.dtype(x)), weight, density)


@aten("embedding_bag.default", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> tuple[Any, Any, Any, Any]:
    """Returns the sum, mean or maximum (mode 0, 1, 2) of the embeddings in each bag, and PyTorch's further results."""
    offsets = offsets[:-1] if include_last_offset else offsets
    bag_count = offsets.shape[0]
    skipped_index = -1 if padding_idx is None else padding_idx
    bag_of_index = ops.subtract(ops.searchsorted(offsets, ops.arange(indices.shape[0]), "right"), 1)
    is_used = ops.not_equal(indices, skipped_index)
    embeddings = embedding(weight, indices, skipped_index)
    if per_sample_weights is not None:
        embeddings = ops.multiply(embeddings, ops.expand_dims(per_sample_weights, -1))
    bag_sizes = ops.segment_sum(ops.cast(is_used, "int64"), bag_of_index, bag_count)
    is_used_column, is_filled = ops.expand_dims(is_used, -1), ops.expand_dims(ops.greater(bag_sizes, 0), -1)
    if mode == 2:
        largest_values = ops.segment_max(ops.where(is_used_column, embeddings, float("-inf")), bag_of_index, bag_count)
        bag_values = ops.where(is_filled, largest_values, 0)
    else:
        bag_values = ops.segment_sum(ops.where(is_used_column, embeddings, 0), bag_of_index, bag_count)
        if mode == 1:
            bag_values = ops.divide(
                bag_values, ops.cast(ops.expand_dims(ops.maximum(bag_sizes, 1), -1), ops.dtype(bag_values))
            )
    return bag_values, bag_of_index, bag_sizes, ops.zeros_like(bag_sizes)


@aten("embedding_bag.padding_idx")
def embedding_bag_without_padding(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Any, Any, Any, Any]:
    """Returns `embedding_bag` without the row `padding_idx`, which may be counted from the end."""
    skipped_index = -1 if padding_idx is None else padding_idx % weight.shape[0]
    options = (scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, skipped_index)
    return embedding_bag(weight, indices, offsets, *options)


@aten("segment_reduce")
def segment_reduce(
    data: Any,
    reduce: str,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Returns the sum, mean, maximum, minimum or product of each group of rows.

    Raises:
        UnsupportedOpError: if the groups are along another axis than the first, or start at a number.
    """
    if axis or initial is not None or (lengths is None and offsets is None):
        raise UnsupportedOpError("segment_reduce along another axis than the first, or with `initial`")
    if lengths is None:
        lengths = ops.subtract(offsets[1:], offsets[:-1])
    group_count = lengths.shape[0]
    group_of_row = ops.repeat(ops.arange(group_count), lengths, axis=0)
    reduced_values = getattr(ops, f"segment_{'sum' if reduce == 'mean' else reduce}")(data, group_of_row, group_count)
    if reduce != "mean":
        return reduced_values
    group_sizes = ops.reshape(ops.cast(lengths, ops.dtype(data)), (group_count, *[1] * (len(data.shape) - 1)))
    return ops.divide(reduced_values, group_sizes)


@aten("nonzero_static")
def nonzero_static(x: Any, size: int, fill_value: int = -1) -> Any:
    """Returns the indices of the first `size` elements that are not 0, with a fill number in missing rows."""
    if not len(x.shape):
        return ops.zeros((size, 0), "int64")
    positions = ops.stack(ops.nonzero(x), axis=-1)[:size]
    return ops.pad(positions, [(0, size - positions.shape[0]), (0, 0)], "constant", fill_value)
