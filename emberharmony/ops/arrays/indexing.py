"""Reading and writing by index.

Indices count from -n to n - 1. An index out of range raises `IndexOutOfBoundsError` on NumPy and PyTorch. MLX raises it
only if the host knows the index (a number, a list or a NumPy array), because a tensor of indices is not read back.
There, reading out of range returns arbitrary memory, and writing out of range does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.options import refuse_sparse
from emberharmony.core.types import DTypeLike, Operand, Tensor, TensorLike, Tensors
from emberharmony.ops.arrays.creation import arange, zeros
from emberharmony.ops.arrays.shape import atleast_1d, concatenate, expand_dims, moveaxis, ravel, stack
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.logic.comparison import equal
from emberharmony.ops.tensor import cast, convert_to_tensor, on_host, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import indexing as shared_indexing
    from emberharmony.ops.arrays import scattering
else:
    shared_indexing = Deferred("emberharmony.backend.shared.arrays.indexing")
    scattering = Deferred("emberharmony.ops.arrays.scattering")  # which imports this module


@op(elementwise=True)
def where(condition: TensorLike, x1: Operand = None, x2: Operand = None) -> Tensor:
    """Returns `x1` where the condition is true, else `x2`; non-zero numbers count as true.

    Shape: all three are broadcast. Dtype: `x1` and `x2` are promoted.

    Args:
        condition: a tensor that broadcasts against the others; non-zero numbers count as true.
        x1: the values where the condition is true: a tensor or number, which broadcasts against the others. It must be
            given; None is an error.
        x2: the values where it is false: a tensor or number, which broadcasts against the others. It must be given;
            None is an error.

    Raises:
        DTypeError: if `x1` or `x2` is left out; `nonzero` gives the indices of the true elements.

    See also: `select`, of several conditions; `nonzero`, the indices; `divide_no_nan`, gradient-safe at 0.

    Example:
        >>> ops.where([True, False], [1, 2], 0).tolist()
        [1, 0]
    """
    ...


@op
def take(x: TensorLike, indices: Tensor | Sequence[int] | int, axis: int | None = None) -> Tensor:
    """Returns the slices of `x` at indices along an axis; with `axis=None` the elements of the flattened `x`.

    Shape: the axis is replaced by the shape of `indices`.

    Args:
        x: a tensor of any shape and dtype.
        indices: an integer, or integers of any shape, from -n to n - 1 along an axis of length n.
        axis: the axis that is indexed; None indexes the flattened `x`.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.

    See also: `take_along_axis`, by other indices at each place; `get_item`, by any key; `embedding`, of rows.

    Example:
        >>> ops.take([10, 20, 30], [2, 0]).tolist()
        [30, 10]
    """
    ...


@op(reads="data")
def take_along_axis(x: TensorLike, indices: Tensor | Sequence[int], axis: int | None = -1) -> Tensor:
    """Returns elements of `x` along an axis, by indices that differ for each position on the other axes.

    `argsort` returns such indices.

    Shape: that of `indices`, which has as many axes as `x`.

    Args:
        x: a tensor of any dtype.
        indices: integers from -n to n - 1 along an axis of length n; as many axes as `x`.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.

    See also: `put_along_axis`, the inverse.

    Example:
        >>> ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).tolist()
        [[2], [3]]
    """
    x, axis = (ravel(x), 0) if axis is None else (x, nonnegative_axes(axis, len(x.shape))[0])
    return _elements_at(x, shared_indexing.places_along(on_host(indices), x.shape, axis))


@op(view=True)
def get_item(x: TensorLike, key: object) -> Tensor:
    """Returns `x[key]` for integers, slices, None, Ellipsis, and integer or boolean tensors or lists.

    Slices may have negative steps. Tensors of uint8 are indices, not masks. With boolean keys the shape depends on the
    data, so they force evaluation on MLX.

    Args:
        x: a tensor of any shape and dtype.
        key: what stands in the brackets of `x[key]`.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.
        AxisError: if there are more indices than axes.
        ShapeError: if the shape of a mask does not fit.
        ArgumentTypeError: if `key` holds something that is not an index.
        ArgumentError: if the step of a slice is 0.

    See also: `set_item`, to write; `take`, along one axis; `slice`, of a block.

    Example:
        >>> ops.get_item([1, 2, 3], slice(None, None, -1)).tolist()
        [3, 2, 1]
    """
    key_parts = key if isinstance(key, tuple) else (key,)
    return _elements_at(x, shared_indexing.flat_selection(tuple(map(on_host, key_parts)), tuple(x.shape)))


@op(gradient="zero", reads="data")
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """Returns, for each axis, the indices of the non-zero elements (int64); forces evaluation on MLX.

    Args:
        x: a tensor with at least one axis, of any dtype.

    Raises:
        ShapeError: if `x` has no axes.

    See also: `argwhere`, as rows; `where`, to choose values.

    Example:
        >>> ops.nonzero([0, 5, 6])[0].tolist()
        [1, 2]
    """
    if not x.shape:
        raise ShapeError("a tensor without axes has no indices")
    index_arrays, device = to_numpy(cast(x, "bool")).nonzero(), get_device(x)
    return tuple([convert_to_tensor(axis_indices, "int64", device=device) for axis_indices in index_arrays])


@op(reads="host")
def argwhere(x: TensorLike) -> Tensor:
    """Returns the positions of the non-zero elements as rows of indices (int64); forces evaluation on MLX.

    Shape: (number of non-zero elements, number of axes).

    Args:
        x: a tensor of any shape and dtype.

    See also: `nonzero`, by axis.

    Example:
        >>> ops.argwhere([[0, 5], [6, 0]]).tolist()
        [[0, 1], [1, 0]]
    """
    return stack(nonzero(atleast_1d(x)), -1)[:, : len(x.shape)]


@op
def slice(inputs: TensorLike, start_indices: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Returns the block of a shape that begins at the given indices.

    Args:
        inputs: a tensor of any shape and dtype.
        start_indices: the first index of the block on each axis, from 0.
        shape: the length of the block on each axis.

    Raises:
        IndexOutOfBoundsError: if the block extends beyond `inputs`.

    See also: `slice_update`, to write; `get_item`, by any key.

    Example:
        >>> ops.slice([1, 2, 3, 4], [1], [2]).tolist()
        [2, 3]
    """
    return get_item(inputs, shared_indexing.block_slices(tuple(inputs.shape), on_host(start_indices), shape))


@op
def slice_update(inputs: TensorLike, start_indices: Sequence[int], updates: TensorLike) -> Tensor:
    """Returns `inputs` with the block that begins at the given indices replaced.

    Dtype: that of `inputs`.

    Args:
        inputs: a tensor of any shape and dtype.
        start_indices: the first index of the block on each axis, from 0.
        updates: the new block, with as many axes as `inputs`.

    Raises:
        IndexOutOfBoundsError: if the block extends beyond `inputs`.

    See also: `slice`, to read; `set_item`, by any key.

    Example:
        >>> ops.slice_update([1, 2, 3], [1], [9]).tolist()
        [1, 9, 3]
    """
    flat_indices = shared_indexing.places_with_block(tuple(inputs.shape), on_host(start_indices), tuple(updates.shape))
    if not flat_indices.size:
        return inputs
    return take(concatenate([ravel(inputs), ravel(cast(updates, dtype_of(inputs)))]), flat_indices)


@op(finite="gradient", reads="checks")
def scatter(indices: Tensor | Sequence[Any], values: TensorLike, shape: Sequence[int]) -> Tensor:
    """Returns a tensor of zeros with values added at indices; values at equal indices are summed.

    Shape: indices (..., k) are positions in the first k axes; values (...) + shape[k:].

    Args:
        indices: integers (..., k): the place of each value in the first k axes.
        values: the values, of shape (...) + shape[k:] and any dtype that adds.
        shape: the lengths of the axes of the result.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.
        ShapeError: if the shape of `values` does not fit.

    See also: `scatter_update`, into a given tensor; `segment_sum`, along the first axis.

    Example:
        >>> ops.scatter([[1], [1]], [2, 3], (3,)).tolist()
        [0, 5, 0]
    """
    return scatter_update(zeros(shape, dtype_of(values), get_device(values)), indices, values, "add")


@op(finite="no", reads="data")
def scatter_update(
    inputs: TensorLike,
    indices: Tensor | Sequence[Any],
    updates: TensorLike,
    reduction: Literal["add", "max", "min", "mul"] | None = None,
) -> Tensor:
    """Returns `inputs` with values written at indices, or combined by a reduction with the elements there.

    Without a reduction, if indices are equal, the last value is kept on NumPy and MLX, and any of them on PyTorch.

    Shape: indices (..., k) are positions in the first k axes; updates (...) + inputs.shape[k:]. Dtype: that of
    `inputs`.

    Args:
        inputs: a tensor of any shape and dtype.
        indices: integers (..., k): the place of each value in the first k axes.
        updates: the values, of shape (...) + inputs.shape[k:].
        reduction: "add", "max", "min" or "mul" combine the values with the elements there; None replaces these.

    Raises:
        IndexOutOfBoundsError: if an index is out of range.
        ShapeError: if the shape of `updates` does not fit.
        ArgumentError: if `reduction` is unknown.

    See also: `scatter`, into zeros; `set_item`, by any key.

    Example:
        >>> ops.scatter_update([1, 2, 3], [[0], [2]], [7, 8]).tolist()
        [7, 2, 8]
        >>> ops.scatter_update([1, 2, 3], [[0], [0]], [7, 8], "add").tolist()
        [16, 2, 3]
    """
    return scattering.scatter_update(inputs, indices, updates, reduction)


@op(view=True)
def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Returns a diagonal of two axes, as the last axis of the result.

    Args:
        x: a tensor with at least two axes, of any dtype.
        offset: the diagonal: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.
        axis1: the axis of the rows; by default the first.
        axis2: the axis of the columns; by default the second.

    See also: `diag`, of a matrix; `trace`, summed.

    Example:
        >>> ops.diagonal([[1, 2], [3, 4]]).tolist()
        [1, 4]
    """
    return _elements_at(x, shared_indexing.places_on_diagonal(x, offset, axis1, axis2))


@op
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns the row and column indices (int64) on and below the k-th diagonal of an (n, m) matrix.

    Args:
        n: the number of rows.
        k: the last diagonal that counts: 0 is the main one, k > 0 the k-th above it.
        m: the number of columns; None is `n`.

    See also: `triu_indices`, the other half; `tril`, the matrix.
    """
    row_indices, column_indices = map(convert_to_tensor, shared_indexing.triangle_indices(True, n, k, m))
    return row_indices, column_indices


@op
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns the row and column indices (int64) on and above the k-th diagonal of an (n, m) matrix.

    Args:
        n: the number of rows.
        k: the first diagonal that counts: 0 is the main one, k > 0 the k-th above it.
        m: the number of columns; None is `n`.

    See also: `tril_indices`, the other half; `triu`, the matrix.

    Example:
        >>> [i.tolist() for i in ops.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    row_indices, column_indices = map(convert_to_tensor, shared_indexing.triangle_indices(False, n, k, m))
    return row_indices, column_indices


@op
def select(condlist: Tensors, choicelist: Tensors, default: Operand = 0) -> Tensor:
    """Returns, element by element, the choice of the first condition that is true, or `default` if none is.

    Shape: all operands are broadcast. Dtype: the choices and `default` are promoted.

    Args:
        condlist: boolean tensors, one for each choice; the first one that is true counts.
        choicelist: as many tensors, which broadcast against the conditions.
        default: the value where no condition is true: a number, or a tensor that broadcasts.

    Raises:
        ArgumentError: if the numbers of conditions and choices differ, or if there are none.

    See also: `where`, of one condition.

    Example:
        >>> ops.select([[True, False, False], [True, True, False]], [[1, 2, 3], [4, 5, 6]]).tolist()
        [1, 5, 0]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(f"expected one choice for each condition, got {len(condlist)} and {len(choicelist)}")
    selected_values = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        selected_values = where(condition, choice, selected_values)
    return selected_values


@op(reads="data")
def unravel_index(indices: Tensor | Sequence[Any] | int, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Returns positions in a flattened tensor as one tensor of indices (int64) for each axis of its shape.

    Args:
        indices: integers of any shape, from 0: positions in the flattened tensor.
        shape: the lengths of the axes of that tensor.

    Raises:
        IndexOutOfBoundsError: if a position is negative or too large; MLX does not check tensors of positions.

    See also: `argmax`, whose result it splits.

    Example:
        >>> [i.tolist() for i in ops.unravel_index([1, 5], (2, 3))]
        [[0, 1], [1, 2]]
    """
    return tuple(
        [
            convert_to_tensor(axis_indices)
            for axis_indices in shared_indexing.unravel(host_indices(on_host(indices)), shape)
        ]
    )


@op(gradient="zero")
def one_hot(
    x: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None, sparse: bool = False
) -> Tensor:
    """Returns 1 at the index of each class and 0 elsewhere, along a new axis; a class out of range gives zeros.

    Dtype: the default float unless `dtype` is given.

    Args:
        x: integers of any shape: the index of each class.
        num_classes: the number of classes: the length of the new axis.
        axis: the place of the new axis in the result; by default the last.
        dtype: the dtype of the result; None is the default float.

    Raises:
        ArgumentError: if `num_classes` is negative, or `sparse` is True.
        ArgumentTypeError: if `x` is floating or complex.

    See also: `multi_hot`, for several classes; `argmax`, the inverse.

    Example:
        >>> ops.one_hot([0, 2], 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    refuse_sparse("sparse", sparse)
    class_numbers = arange(shared_indexing.class_count(num_classes, x), device=get_device(x))
    is_class = equal(expand_dims(x, -1), class_numbers)
    return cast(is_class if axis == -1 else moveaxis(is_class, -1, axis), default_float() if dtype is None else dtype)


def _elements_at(x: Tensor, places: Any) -> Tensor:
    """Returns elements of the flattened `x` at places that the host knows, in their shape."""
    return take(ravel(x), places) if places.size else zeros(places.shape, dtype_of(x), get_device(x))
