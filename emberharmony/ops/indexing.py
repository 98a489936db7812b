"""Reading and writing by index.

Indices count from -n to n - 1. An index outside raises `IndexOutOfBoundsError` on NumPy and PyTorch; on MLX it does
where the index is known to the host (a number, list or NumPy array). A tensor of indices is not read back there: what
is read outside is then whatever lies in memory, and what is written outside is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.types import DTypeLike, Operand, Tensor, TensorLike, Tensors
from emberharmony.ops.creation import zeros
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of


@op
def where(condition: TensorLike, x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1` where the condition holds, else `x2`; a condition of numbers holds where they are not 0.

    Shape: all three are broadcast. Dtype: that of `x1` and `x2` promoted.

    Example:
        >>> ops.where([True, False], [1, 2], 0).tolist()
        [1, 0]
    """
    ...


@op
def take(x: TensorLike, indices: Tensor | Sequence[int] | int, axis: int | None = None) -> Tensor:
    """Returns the slices of `x` at indices along an axis; with None of the flattened `x`.

    Shape: the axis is replaced by the shape of `indices`. Raises: IndexOutOfBoundsError.

    Example:
        >>> ops.take([10, 20, 30], [2, 0]).tolist()
        [30, 10]
    """
    ...


@op
def take_along_axis(x: TensorLike, indices: Tensor | Sequence[int], axis: int | None = -1) -> Tensor:
    """Returns elements of `x` by indices that vary along with the other axes, as `argsort` gives them.

    Shape: that of `indices`, which has as many axes as `x`. Raises: IndexOutOfBoundsError.

    Example:
        >>> ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).tolist()
        [[2], [3]]
    """
    ...


@op
def get_item(x: TensorLike, key: object) -> Tensor:
    """Returns `x[key]`: integers, slices (negative steps too), None, Ellipsis, integer and boolean tensors or lists.

    The shape depends on the data for boolean keys, which forces evaluation on MLX. Tensors of uint8 are indices.

    Raises: IndexOutOfBoundsError; AxisError for too many indices; ShapeError for a mask that does not fit;
    ArgumentTypeError for what is no index; ArgumentError for a step of 0.

    Example:
        >>> ops.get_item([1, 2, 3], slice(None, None, -1)).tolist()
        [3, 2, 1]
    """
    ...


@op
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """Returns, per axis, the indices of the elements that are not zero (int64); forces evaluation on MLX.

    Raises: ShapeError without axes.

    Example:
        >>> ops.nonzero([0, 5, 6])[0].tolist()
        [1, 2]
    """
    ...


@op
def slice(x: TensorLike, start_indices: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Returns the block of a shape that begins at these indices.

    Raises: IndexOutOfBoundsError if the block leaves `x`.

    Example:
        >>> ops.slice([1, 2, 3, 4], [1], [2]).tolist()
        [2, 3]
    """
    ...


@op
def slice_update(x: TensorLike, start_indices: Sequence[int], updates: TensorLike) -> Tensor:
    """Returns `x` with the block that begins at these indices replaced.

    Dtype: that of `x`. Raises: IndexOutOfBoundsError if the block leaves `x`.

    Example:
        >>> ops.slice_update([1, 2, 3], [1], [9]).tolist()
        [1, 9, 3]
    """
    ...


@op
def scatter(indices: Tensor | Sequence[Any], values: TensorLike, shape: Sequence[int]) -> Tensor:
    """Returns zeros of a shape with values added at indices, which repeat where they do.

    Shape: indices (..., k) name positions in the first k axes; values (...) + shape[k:].

    Raises: IndexOutOfBoundsError; ShapeError.

    Example:
        >>> ops.scatter([[1], [1]], [2, 3], (3,)).tolist()
        [0, 5, 0]
    """
    return scatter_update(zeros(shape, dtype_of(values), get_device(values)), indices, values, "add")


@op
def scatter_update(
    x: TensorLike,
    indices: Tensor | Sequence[Any],
    updates: TensorLike,
    reduction: Literal["add", "max", "min", "mul"] | None = None,
) -> Tensor:
    """Returns `x` with values written at indices, or combined with what stands there by a reduction.

    Without a reduction the last of equal indices wins on NumPy and MLX, any of them on PyTorch.

    Shape: indices (..., k) name positions in the first k axes; updates (...) + x.shape[k:]. Dtype: that of `x`.

    Raises: IndexOutOfBoundsError; ShapeError; ArgumentError for another reduction.

    Example:
        >>> ops.scatter_update([1, 2, 3], [[0], [2]], [7, 8]).tolist()
        [7, 2, 8]
        >>> ops.scatter_update([1, 2, 3], [[0], [0]], [7, 8], "add").tolist()
        [16, 2, 3]
    """
    ...


@op
def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Returns a diagonal of two axes, as the last axis of the result.

    Example:
        >>> ops.diagonal([[1, 2], [3, 4]]).tolist()
        [1, 4]
    """
    ...


@op
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns the row and column indices (int64) on and below the k-th diagonal of an (n, m) matrix."""
    ...


@op
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns the row and column indices (int64) on and above the k-th diagonal of an (n, m) matrix.

    Example:
        >>> [i.tolist() for i in ops.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    ...


@op
def select(condlist: Tensors, choicelist: Tensors, default: Operand = 0) -> Tensor:
    """Returns, element by element, the choice of the first condition that holds, or `default`.

    Shape: all are broadcast. Dtype: that of the choices and `default` promoted.

    Raises: ArgumentError if there are not as many choices as conditions, or none.

    Example:
        >>> ops.select([[True, False, False], [True, True, False]], [[1, 2, 3], [4, 5, 6]]).tolist()
        [1, 5, 0]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(f"{len(condlist)} conditions do not choose from {len(choicelist)} choices")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


@op
def unravel_index(indices: Tensor | Sequence[Any] | int, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Returns positions in the flattened form of a shape as one tensor of indices (int64) an axis.

    Raises: IndexOutOfBoundsError for a position outside, which negative ones are; unchecked for tensors on MLX.

    Example:
        >>> [i.tolist() for i in ops.unravel_index([1, 5], (2, 3))]
        [[0, 1], [1, 2]]
    """
    ...


@op
def one_hot(x: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Returns 1 at each class and 0 elsewhere, along a new axis; a class outside gives zeros.

    Dtype: the default float unless `dtype` says otherwise.

    Raises: ArgumentError for a negative number of classes.

    Example:
        >>> ops.one_hot([0, 2], 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    ...
