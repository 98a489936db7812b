"""Products of tensors: over matrices, axes and index expressions.

Dtype: promoted; integers are multiplied and added exactly, as int64. Half precision is accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from emberharmony.core.dispatch import op
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.dtypes import dtype
from emberharmony.ops.complexes import conj
from emberharmony.ops.indexing import diagonal
from emberharmony.ops.math import multiply, subtract
from emberharmony.ops.reduction import sum
from emberharmony.ops.shape import expand_dims, reshape, stack, transpose, unstack


@op
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the matrix product; a vector on the left is a row, on the right a column.

    Dtype: promoted; integers are multiplied exactly. Raises: ShapeError.

    Example:
        >>> ops.matmul([[1, 2]], [[3], [4]]).tolist()
        [[11]]
    """
    ...


@op
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products over the last axis of `x1` and the last but one of `x2` (or its only one).

    Example:
        >>> ops.dot([1, 2], [3, 4]).tolist()
        11
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    axis = len(x2.shape) - 2 if len(x2.shape) > 1 else 0
    return tensordot(x1, x2, [[len(x1.shape) - 1], [axis]])


@op
def tensordot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Returns the sum of products over pairs of axes: the last n of `x1` with the first n of `x2`, or those listed.

    Example:
        >>> ops.tensordot([1, 2], [3, 4], 1).tolist()
        11
    """
    n1, n2 = len(x1.shape), len(x2.shape)
    if isinstance(axes, int):
        first, second = list(range(n1 - axes, n1)), list(range(axes))
    else:
        first, second = [a % n1 for a in axes[0]], [a % n2 for a in axes[1]]
    kept1 = [a for a in range(n1) if a not in first]
    kept2 = [a for a in range(n2) if a not in second]
    length = prod([x1.shape[a] for a in first])
    left = reshape(transpose(x1, [*kept1, *first]), (prod([x1.shape[a] for a in kept1]), length))
    right = reshape(
        transpose(x2, [*second, *kept2]), (prod([x2.shape[a] for a in second]), prod([x2.shape[a] for a in kept2]))
    )
    return reshape(matmul(left, right), [*(x1.shape[a] for a in kept1), *(x2.shape[a] for a in kept2)])


@op
def vdot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products of all elements, those of `x1` conjugated.

    Example:
        >>> ops.vdot([1, 2], [3, 4]).tolist()
        11
    """
    products = multiply(conj(reshape(x1, -1)), reshape(x2, -1))
    return sum(products, dtype=dtype(products))


@op
def vecdot(x1: TensorLike, x2: TensorLike, axis: int = -1) -> Tensor:
    """Returns the sum of products along an axis, the elements of `x1` conjugated.

    Example:
        >>> ops.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    products = multiply(conj(x1), x2)
    return sum(products, axis, dtype=dtype(products))


@op
def inner(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products over the last axes."""
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    return tensordot(x1, x2, [[-1], [-1]])


@op
def outer(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns all products of an element of `x1` with one of `x2`, both flattened.

    Example:
        >>> ops.outer([1, 2], [3, 4]).tolist()
        [[3, 4], [6, 8]]
    """
    return multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


@op
def einsum(subscripts: str, *operands: TensorLike) -> Tensor:
    """Returns the sum of products that an index expression in Einstein's notation names.

    Dtype: promoted; integers are exact. Raises: ArgumentError for a bad expression, ShapeError for shapes that do not
    fit.

    Example:
        >>> ops.einsum('ij,j->i', [[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    ...


@op
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the Kronecker product of two matrices or vectors of as many axes.

    Example:
        >>> ops.kron([1, 2], [1, 1]).tolist()
        [1, 1, 2, 2]
    """
    spread1 = expand_dims(x1, [2 * a + 1 for a in range(len(x1.shape))])
    spread2 = expand_dims(x2, [2 * a for a in range(len(x2.shape))])
    shape = [a * b for a, b in zip(x1.shape, x2.shape, strict=True)]
    return reshape(multiply(spread1, spread2), shape)


@op
def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Returns the sum of a diagonal of two axes.

    Example:
        >>> ops.trace([[1, 2], [3, 4]]).tolist()
        5
    """
    return sum(diagonal(x, offset, axis1, axis2), -1)


@op
def cross(x1: TensorLike, x2: TensorLike, axis: int = -1) -> Tensor:
    """Returns the vector product of vectors of three components along an axis.

    Raises: ShapeError for another length.

    Example:
        >>> ops.cross([1, 0, 0], [0, 1, 0]).tolist()
        [0, 0, 1]
    """
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ShapeError(f"axis {axis} has lengths {x1.shape[axis]} and {x2.shape[axis]}, not 3")
    a0, a1, a2 = unstack(x1, axis=axis)
    b0, b1, b2 = unstack(x2, axis=axis)
    parts = [
        subtract(multiply(a1, b2), multiply(a2, b1)),
        subtract(multiply(a2, b0), multiply(a0, b2)),
        subtract(multiply(a0, b1), multiply(a1, b0)),
    ]
    return stack(parts, axis)
