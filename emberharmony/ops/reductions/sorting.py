"""Sorting, searching and sets.

Sorts are stable and put NaN last, also in descending order. A 0-d tensor is sorted already. Indices are int64. Complex
numbers have no order, so ops that need one raise `DTypeError`; only the set ops order them, by the real and then the
imaginary part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import IndexOutOfBoundsError, ShapeError
from emberharmony.core.options import as_integer
from emberharmony.core.results import UniqueAllResult, UniqueCountsResult, UniqueInverseResult
from emberharmony.core.types import Tensor, TensorLike, Tensors, Varying
from emberharmony.ops.arrays.creation import arange, full, zeros
from emberharmony.ops.arrays.indexing import get_item, nonzero, take, take_along_axis, where
from emberharmony.ops.arrays.shape import concatenate, expand_dims, moveaxis, pad, ravel, reshape, squeeze, unstack
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.dtype import refuse_complex, result_type
from emberharmony.ops.elementwise.complex_numbers import imag, real
from emberharmony.ops.logic.comparison import (
    equal,
    greater,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from emberharmony.ops.math import add, floor_divide, minimum, subtract
from emberharmony.ops.reductions.reduction import any, cumsum, sum
from emberharmony.ops.tensor import cast, on_host

if TYPE_CHECKING:
    from emberharmony.backend.shared.reductions import sorting as shared_sorting
else:
    shared_sorting = Deferred("emberharmony.backend.shared.reductions.sorting")


@op(along="axis")
def sort(x: TensorLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the elements in order along an axis; with `axis=None` those of the flattened `x`.

    Args:
        x: a tensor of any shape; booleans, integers or floats.
        descending: whether the largest element comes first; NaN is last in both directions.
        stable: whether equal elements must keep their order; they always do.

    See also: `argsort`, the indices; `partition`, up to one place; `top_k`, the largest.

    Example:
        >>> ops.sort([3, 1, 2]).tolist()
        [1, 2, 3]
    """
    refuse_complex(x)
    x, axis = (ravel(x), 0) if axis is None else (x, nonnegative_axis(axis, len(x.shape) or 1))
    return take_along_axis(x, argsort(x, axis, descending, stable), axis) if x.shape else x


@op(along="axis", gradient="zero")
def argsort(x: TensorLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the indices that sort along an axis; equal elements keep their order in both directions.

    Args:
        x: a tensor of any shape; booleans, integers or floats.
        descending: whether the index of the largest element comes first; NaN is last in both directions.
        stable: whether equal elements must keep their order; they always do.

    See also: `sort`, the elements; `lexsort`, by several keys; `take_along_axis`, to apply it.

    Example:
        >>> ops.argsort([3, 1, 2]).tolist()
        [1, 2, 0]
    """
    ...


@op(gradient="zero")
def lexsort(keys: Tensors, axis: int = -1) -> Tensor:
    """Returns the indices that sort along an axis by several keys of the same shape; the last key is the primary one.

    Args:
        keys: tensors of one shape, or one tensor whose first axis has the keys; the last key counts most.

    Raises:
        ShapeError: if there are no keys, or if their shapes differ.

    See also: `argsort`, by one key.

    Example:
        >>> ops.lexsort([[2, 1, 0], [5, 5, 4]]).tolist()
        [2, 1, 0]
    """
    if not keys:
        raise ShapeError("expected at least one key")
    shape = tuple(keys[0].shape)
    for key in keys[1:]:
        # MLX does not check that the lengths match when it reads one key in the order of another.
        if tuple(key.shape) != shape:
            raise ShapeError(f"expected keys of the same shape, got {shape} and {tuple(key.shape)}")
    sorting_indices = argsort(keys[0], axis)
    if not shape:
        return sorting_indices
    for key in keys[1:]:
        sorting_indices = take_along_axis(
            sorting_indices, argsort(take_along_axis(key, sorting_indices, axis), axis), axis
        )
    return sorting_indices


@op(gradient="zero")
def argpartition(x: TensorLike, kth: int, axis: int | None = -1) -> Tensor:
    """Returns indices that put the kth smallest element in its sorted position.

    No larger elements are before it and no smaller ones after it. The order of these elements is undefined.

    Args:
        x: a tensor with at least one axis; booleans, integers or floats.
        kth: the place of the element among the sorted ones, from -n to n - 1 for n elements.

    Raises:
        IndexOutOfBoundsError: if `kth` is out of range.

    See also: `partition`, the elements; `argsort`, of all places.
    """
    _check_kth(x, kth, axis)
    return argsort(x, axis)


@op
def partition(x: TensorLike, kth: int, axis: int | None = -1) -> Tensor:
    """Returns the elements with the kth smallest one in its sorted position, along an axis or of the flattened `x`.

    No larger elements are before it and no smaller ones after it. The order of these elements is undefined. NaN counts
    as the largest.

    Args:
        x: a tensor with at least one axis; booleans, integers or floats.
        kth: the place of the element among the sorted ones, from -n to n - 1 for n elements.

    Raises:
        IndexOutOfBoundsError: if `kth` is out of range.

    See also: `argpartition`, the indices; `sort`, of all places.

    Example:
        >>> ops.partition([3, 1, 2], 1).tolist()[1]
        2
    """
    _check_kth(x, kth, axis)
    return sort(x, axis)


def _check_kth(x: Tensor, kth: int, axis: int | None) -> None:
    length = math.prod(x.shape) if axis is None else x.shape[axis] if x.shape else 1
    if not -length <= as_index(kth) < length:
        raise IndexOutOfBoundsError(f"kth={kth} is out of bounds for an axis of length {length}")


@op
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int) -> Tensor:
    """Returns whether the prediction for each target is among the k largest of its row.

    Predictions equal to the k-th largest count as among them. A target that is out of range, or whose prediction is
    NaN, gives False.

    Shape: targets (n,), predictions (n, classes).

    Args:
        targets: (n,): the class of each sample, an integer.
        predictions: (n, classes): a number for each class, booleans, integers or floats.
        k: how many of the largest numbers of a row count.

    See also: `top_k`, the largest themselves.

    Example:
        >>> ops.in_top_k([1, 0], [[0.1, 0.7, 0.2], [0.1, 0.7, 0.2]], 2).tolist()
        [True, False]
    """
    k = as_index(k)
    is_target = equal(arange(predictions.shape[-1], device=get_device(predictions)), expand_dims(targets, -1))
    target_score = sum(where(is_target, predictions, 0), -1, True)
    better_count = sum(greater(predictions, target_score), -1)
    is_valid = logical_and(any(is_target, -1), logical_not(isnan(squeeze(target_score, -1))))
    return logical_and(less(better_count, k), is_valid)


@op
def top_k(x: TensorLike, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Returns the k largest elements along the last axis, in descending order, and their indices.

    Args:
        x: a tensor with at least one axis; booleans, integers or floats.
        k: how many elements, up to the length of the last axis.
        sorted: accepted for compatibility with Keras, without effect: the elements always descend.

    Raises:
        ShapeError: if the axis is shorter than `k`.

    See also: `sort`, of all elements; `argmax`, of one.

    Example:
        >>> [part.tolist() for part in ops.top_k([1, 3, 2], 2)]
        [[3, 2], [1, 2]]
    """
    refuse_complex(x)
    shared_sorting.check_top_k(tuple(x.shape), k)
    top_indices = get_item(argsort(x, -1, True), (..., slice(0, k)))
    return take_along_axis(x, top_indices, -1), top_indices


@op(gradient="zero")
def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: Literal["left", "right"] = "left",
    sorter: TensorLike | None = None,
) -> Tensor:
    """Returns the indices at which values would be inserted in a sorted vector to keep it sorted.

    Args:
        sorted_sequence: a vector in ascending order, unless `sorter` is given.
        values: a tensor of any shape, which is the shape of the result.
        side: "left" inserts before equal elements, "right" after them.
        sorter: the indices that sort the vector; None if it is sorted.

    Raises:
        ArgumentError: if `side` is unknown.
        ShapeError: if `sorted_sequence` is not a vector, or if `sorter` is not a vector of the same length.
        IndexOutOfBoundsError: if an index in `sorter` is out of range.

    See also: `digitize`, by edges of bins; `sort`, to sort the vector.

    Example:
        >>> ops.searchsorted([1, 3, 5], [3, 4]).tolist()
        [1, 2]
    """
    if len(sorted_sequence.shape) != 1:
        raise ShapeError(f"a sorted sequence is a vector, this one has shape {tuple(sorted_sequence.shape)}")
    length, is_left = sorted_sequence.shape[0], shared_sorting.checked_side(side) == "left"
    if sorter is not None:
        sorted_sequence = take(sorted_sequence, shared_sorting.checked_sorter(on_host(sorter), length), 0)
    common_dtype = result_type(sorted_sequence, values)
    sorted_values, sought_values = cast(sorted_sequence, common_dtype), cast(values, common_dtype)
    refuse_complex(sorted_values)
    device = get_device(sought_values)
    lower_index, upper_index = (
        zeros(sought_values.shape, "int64", device),
        full(sought_values.shape, length, "int64", device),
    )
    # Halve the interval of each value, as often as the sequence needs.
    for _ in range(int(length).bit_length()):
        middle_index = floor_divide(add(lower_index, upper_index), 2)
        middle_values = take(sorted_values, minimum(middle_index, length - 1), 0)
        is_upper_half = (
            _sorts_before(middle_values, sought_values)
            if is_left
            else logical_not(_sorts_before(sought_values, middle_values))
        )
        is_upper_half = logical_and(is_upper_half, less(lower_index, upper_index))
        lower_index, upper_index = (
            where(is_upper_half, add(middle_index, 1), lower_index),
            where(is_upper_half, upper_index, middle_index),
        )
    return lower_index


@op
def unique(
    x: TensorLike,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Varying | None = None,
) -> Tensor | Any:
    """Returns the sorted unique elements of the flattened `x`, with at most one NaN; forces evaluation on MLX.

    The results that the options ask for follow in a tuple: indices, inverse indices, counts (int64).

    Args:
        x: a tensor of any shape and dtype.
        sorted: an option of Keras without effect: the elements are always sorted.
        return_index: whether to return the index of the first occurrence of each element.
        return_inverse: whether to return the indices that rebuild `x` from the unique elements.
        return_counts: whether to return how often each element occurs.
        axis: the axis whose slices are compared, in the order of their first elements, then of their second ones; None
            compares the elements.
        size: the number of elements of the result. Elements beyond it are cut off; missing ones are `fill_value`, with
            the count 0 and the index 0. The inverse indices do not change. None returns all elements.
        fill_value: the value of missing elements; None is 0.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if `size` is negative.

    See also: `unique_values`, of the standard; `isin`, to look for some.

    Example:
        >>> ops.unique([3, 1, 3]).tolist()
        [1, 3]
        >>> [part.tolist() for part in ops.unique([[2, 0], [1, 5], [2, 0]], return_counts=True, axis=0)]
        [[[1, 5], [2, 0]], [1, 2]]
    """
    axis_index = 0 if axis is None else nonnegative_axes(axis, len(x.shape))[0]
    rows = ravel(x) if axis is None else moveaxis(x, axis_index, 0)
    length = rows.shape[0]
    row_matrix = reshape(rows, (length, math.prod(rows.shape[1:])))
    sorting_indices = _lexicographic_order(row_matrix)
    sorted_rows = take(row_matrix, sorting_indices, 0)
    next_elements, previous_elements = _next_and_previous_rows(sorted_rows)
    is_new = not_equal(next_elements, previous_elements)
    if not dtype_of(row_matrix).is_integer:
        is_new = logical_and(is_new, logical_not(logical_and(isnan(next_elements), isnan(previous_elements))))
    group_starts, inverse_indices, counts = _groups_of_equal(sorting_indices, any(is_new, 1))
    first_indices = take(sorting_indices, group_starts)
    unique_values = take(rows, first_indices, 0)
    if size is not None:
        missing_count = as_integer("size", size, 0) - first_indices.shape[0]
        returned_count = min(size, first_indices.shape[0])
        unique_values, first_indices, counts = (
            unique_values[:returned_count, ...],
            first_indices[:returned_count],
            counts[:returned_count],
        )
        if missing_count > 0:
            unique_values = pad(
                unique_values,
                [(0, missing_count), *[(0, 0)] * (len(unique_values.shape) - 1)],
                "constant",
                0 if fill_value is None else fill_value,
            )
            first_indices, counts = pad(first_indices, (0, missing_count)), pad(counts, (0, missing_count))
    unique_values = moveaxis(unique_values, 0, axis_index)
    inverse_indices = reshape(inverse_indices, x.shape) if axis is None else inverse_indices
    requested_results = [(return_index, first_indices), (return_inverse, inverse_indices), (return_counts, counts)]
    other_results = [result for is_requested, result in requested_results if is_requested]
    return (unique_values, *other_results) if other_results else unique_values


@op(reads="host")
def unique_all(x: TensorLike) -> UniqueAllResult:
    """Returns the sorted unique elements, the indices of their first occurrences, the inverse indices, and the counts.

    The inverse indices rebuild `x` from the unique elements. Every NaN is unique, as the array API standard requires.
    Forces evaluation on MLX.

    Args:
        x: a tensor of any shape and dtype.

    See also: `unique`, with options.

    Example:
        >>> [part.tolist() for part in ops.unique_all([3, 1, 3])]
        [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    flat_x = ravel(x)
    sorting_indices = _lexicographic_order(expand_dims(flat_x, 1))
    sorted_x = take(flat_x, sorting_indices)
    group_starts, inverse_indices, counts = _groups_of_equal(
        sorting_indices, not_equal(*_next_and_previous_rows(sorted_x))
    )
    return UniqueAllResult(
        take(sorted_x, group_starts), take(sorting_indices, group_starts), reshape(inverse_indices, x.shape), counts
    )


def _lexicographic_order(table: Tensor) -> Tensor:
    """Returns the indices that sort the rows of a table by their first elements, then by their second ones, and on."""
    length, width = table.shape
    key_columns = list(unstack(table, axis=1))[::-1] if width else []
    if dtype_of(table).is_complex:
        key_columns = [component for column in key_columns for component in (imag(column), real(column))]
    return lexsort(key_columns) if width else arange(length, device=get_device(table))


def _next_and_previous_rows(sorted_rows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns all rows but the first, and all but the last."""
    row_count = sorted_rows.shape[0]
    # In the array API standard a slice begins and ends within its axis, and a key names all axes.
    return sorted_rows[min(row_count, 1) :, ...], sorted_rows[: max(row_count - 1, 0), ...]


def _groups_of_equal(sorting_indices: Tensor, is_new: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the starts of the groups of equal neighbours, the group of each element before sorting, and the counts.

    Args:
        sorting_indices: the indices that sort the elements.
        is_new: whether each sorted element but the first differs from the one before it.
    """
    length, device = sorting_indices.shape[0], get_device(sorting_indices)
    one_or_none = (min(length, 1),)
    is_first = concatenate([full(one_or_none, True, device=device), is_new])
    (group_starts,) = nonzero(is_first)
    group_numbers = subtract(cumsum(is_first), 1)
    group_lengths = subtract(
        concatenate([group_starts[one_or_none[0] :], full(one_or_none, length, device=device)]), group_starts
    )
    return group_starts, take(group_numbers, argsort(sorting_indices)), group_lengths


@op(reads="host")
def unique_counts(x: TensorLike) -> UniqueCountsResult:
    """Returns the sorted unique elements and how often each occurs; every NaN is unique. Forces evaluation on MLX.

    Args:
        x: a tensor of any shape and dtype.

    See also: `unique_all`, with indices.

    Example:
        >>> [part.tolist() for part in ops.unique_counts([3, 1, 3])]
        [[1, 3], [1, 2]]
    """
    unique_results = unique_all(x)
    return UniqueCountsResult(unique_results.values, unique_results.counts)


@op(reads="host")
def unique_inverse(x: TensorLike) -> UniqueInverseResult:
    """Returns the sorted unique elements and the indices that rebuild `x` from them; every NaN is unique.

    Forces evaluation on MLX.

    Args:
        x: a tensor of any shape and dtype.

    See also: `unique_all`, with counts.

    Example:
        >>> [part.tolist() for part in ops.unique_inverse([3, 1, 3])]
        [[1, 3], [1, 0, 1]]
    """
    unique_results = unique_all(x)
    return UniqueInverseResult(unique_results.values, unique_results.inverse_indices)


@op(reads="host")
def unique_values(x: TensorLike) -> Tensor:
    """Returns the sorted unique elements of the flattened `x`; every NaN is unique. Forces evaluation on MLX.

    Args:
        x: a tensor of any shape and dtype.

    See also: `unique`, with options.

    Example:
        >>> ops.unique_values([3, 1, 3]).tolist()
        [1, 3]
    """
    return unique_all(x).values


@op(gradient="zero")
def isin(x1: TensorLike, x2: TensorLike, assume_unique: bool = False, *, invert: bool = False) -> Tensor:
    """Returns whether each element of `x1` occurs in `x2`.

    Args:
        x1: a tensor of any shape and dtype, whose shape is that of the result.
        x2: a tensor of any shape; both are promoted to one dtype.
        assume_unique: promises that neither tensor repeats an element; the result is the same.
        invert: whether the result says which elements do not occur in `x2`.

    See also: `equal`, of one element; `unique`, without repetitions.

    Example:
        >>> ops.isin([1, 2, 3], [2, 4]).tolist()
        [False, True, False]
    """
    common_dtype = result_type(x1, x2)
    a, b = cast(x1, common_dtype), ravel(cast(x2, common_dtype))
    (length,) = b.shape
    if not length:
        return full(a.shape, invert, "bool", get_device(a))
    if common_dtype.is_complex:
        is_contained = any(equal(expand_dims(a, -1), b), -1)
    else:
        b = sort(b)
        is_contained = equal(take(b, minimum(searchsorted(b, a), length - 1), 0), a)
    return logical_not(is_contained) if invert else is_contained


def _sorts_before(a: Tensor, b: Tensor) -> Tensor:
    """Returns whether elements are sorted before others; NaN is last."""
    is_less = less(a, b)
    return logical_or(is_less, logical_and(isnan(b), logical_not(isnan(a)))) if dtype_of(a).is_floating else is_less
