"""Products of tensors: over matrices, axes and index expressions.

Dtype: promoted; integers are multiplied and added exactly, modulo their range. Half precision is accumulated in
float32, and so is float32 in float64 on MLX's CPU, whose own sums of long products lose digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import SupportsIndex

from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.solver import check_paired
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, AxisError, ShapeError
from emberharmony.core.promotion import promote
from emberharmony.core.types import Tensor, TensorLike, Tensors
from emberharmony.ops.complexes import conj
from emberharmony.ops.dtype import dtype
from emberharmony.ops.indexing import diagonal
from emberharmony.ops.math import multiply, subtract
from emberharmony.ops.reduction import sum
from emberharmony.ops.shape import moveaxis, reshape, stack, transpose, unstack
from emberharmony.ops.tensor import cast


@op
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the matrix product; a vector on the left is a row, on the right a column.

    Shape: batches, all axes but the last two, broadcast. Raises: ShapeError.

    Example:
        >>> ops.matmul([[1, 2]], [[3], [4]]).tolist()
        [[11]]
    """
    ...


@op
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products over the last axis of `x1` and the last but one of `x2` (or its only one).

    Raises: ShapeError.

    Example:
        >>> ops.dot([1, 2], [3, 4]).tolist()
        11
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    if len(x2.shape) <= 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, [[-1], [-2]])


@op
def tensordot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2) -> Tensor:
    """Returns the sum of products over pairs of axes: the last n of `x1` with the first n of `x2`, or those listed.

    Raises: AxisError; ShapeError if the paired axes differ in length.

    Example:
        >>> ops.tensordot([1, 2], [3, 4], 1).tolist()
        11
    """
    n1, n2 = len(x1.shape), len(x2.shape)
    if isinstance(axes, SupportsIndex):
        count = index(axes)
        if not 0 <= count <= n1 or count > n2:
            raise AxisError(f"tensors of {n1} and {n2} axes have no {count} pairs of axes to sum over")
        axes = (range(n1 - count, n1), range(count))
    first, second = (
        normalized(list(pair) if isinstance(pair, Sequence) else pair, n)
        for pair, n in zip(axes, (n1, n2), strict=True)
    )
    lengths = [x1.shape[a] for a in first]
    if lengths != [x2.shape[a] for a in second]:
        shapes = f"{tuple(x1.shape)} and {tuple(x2.shape)}"
        raise ShapeError(f"axes {first} and {second} of shapes {shapes} differ in number or length")
    kept1 = [a for a in range(n1) if a not in first]
    kept2 = [a for a in range(n2) if a not in second]
    rows, columns = [x1.shape[a] for a in kept1], [x2.shape[a] for a in kept2]
    left = reshape(transpose(x1, [*kept1, *first]), (prod(rows), prod(lengths)))
    right = reshape(transpose(x2, [*second, *kept2]), (prod(lengths), prod(columns)))
    return reshape(matmul(left, right), [*rows, *columns])


@op
def vdot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products of all elements, those of `x1` conjugated.

    Raises: ShapeError if they differ in number.

    Example:
        >>> ops.vdot([1, 2], [3, 4]).tolist()
        11
    """
    return matmul(conj(reshape(x1, -1)), reshape(x2, -1))


@op
def vecdot(x1: TensorLike, x2: TensorLike, axis: int = -1) -> Tensor:
    """Returns the sum of products along an axis, the elements of `x1` conjugated; the other axes broadcast.

    Raises: AxisError; ShapeError.

    Example:
        >>> ops.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    check_paired(x1, x2, axis)
    kind = promote(dtype(x1), dtype(x2))
    wide = "float32" if kind.is_floating and kind.bits == 16 else kind
    x1, x2 = (moveaxis(cast(x, wide), axis, -1) for x in (x1, x2))
    return cast(sum(multiply(conj(x1), x2), -1, dtype=wide), kind)


@op
def inner(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products over the last axes.

    Raises: ShapeError.

    Example:
        >>> ops.inner([[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    if len(x2.shape) == 1:
        return matmul(x1, x2)
    return matmul(x2, x1) if len(x1.shape) == 1 else tensordot(x1, x2, [[-1], [-1]])


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

    Raises: ArgumentError for a bad expression; ShapeError for shapes that do not fit.

    Example:
        >>> ops.einsum('ij,j->i', [[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    ...


@op
def multi_dot(arrays: Tensors) -> Tensor:
    """Returns the product of several matrices, multiplied in the cheapest order; the first and last may be vectors.

    Raises: ArgumentError for fewer than two; ShapeError.

    Example:
        >>> ops.multi_dot([[1, 2], [[1, 0], [0, 3]], [1, 1]]).tolist()
        7

    Source: Cormen et al., Introduction to Algorithms, matrix-chain multiplication.
    """
    if len(arrays) < 2:
        raise ArgumentError(f"multi_dot takes two matrices or more, not {len(arrays)}")
    shapes = [tuple(x.shape) for x in arrays]
    if any(len(shape) != 2 for shape in shapes[1:-1]) or not {len(shapes[0]), len(shapes[-1])} <= {1, 2}:
        raise ShapeError(f"multi_dot takes matrices, vectors only first and last, not shapes {shapes}")
    lengths = [shapes[0][0] if len(shapes[0]) == 2 else 1, *(shape[0] for shape in shapes[1:]), (*shapes[-1], 1)[1]]
    cost: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(arrays))}
    for width in range(1, len(arrays)):
        for i in range(len(arrays) - width):
            j = i + width
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        k = cost[i, j][1]
        return arrays[i] if i == j else matmul(product(i, k), product(k + 1, j))

    return product(0, len(arrays) - 1)


@op
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the Kronecker product; the one of fewer axes gets axes of length 1 in front.

    Example:
        >>> ops.kron([1, 2], [1, 1]).tolist()
        [1, 1, 2, 2]
    """
    n = max(len(x1.shape), len(x2.shape))
    shape1, shape2 = ((1,) * (n - len(x.shape)) + tuple(x.shape) for x in (x1, x2))
    spread1 = reshape(x1, [length for a in shape1 for length in (a, 1)])
    spread2 = reshape(x2, [length for b in shape2 for length in (1, b)])
    return reshape(multiply(spread1, spread2), [a * b for a, b in zip(shape1, shape2, strict=True)])


@op
def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Returns the sum of a diagonal of two axes.

    Dtype: as `sum`. Raises: ShapeError for fewer than two axes; AxisError.

    Example:
        >>> ops.trace([[1, 2], [3, 4]]).tolist()
        5
    """
    return sum(diagonal(x, offset, axis1, axis2), -1)


@op
def cross(x1: TensorLike, x2: TensorLike, axis: int = -1) -> Tensor:
    """Returns the vector product of vectors of three components along an axis; the other axes broadcast.

    Raises: AxisError; ShapeError for another length.

    Example:
        >>> ops.cross([1, 0, 0], [0, 1, 0]).tolist()
        [0, 0, 1]
    """
    lengths = [x.shape[normalized(axis, len(x.shape))[0]] for x in (x1, x2)]
    if lengths != [3, 3]:
        raise ShapeError(f"axis {axis} has lengths {lengths[0]} and {lengths[1]}, not 3")
    a0, a1, a2 = unstack(x1, axis=axis)
    b0, b1, b2 = unstack(x2, axis=axis)
    parts = [
        subtract(multiply(a1, b2), multiply(a2, b1)),
        subtract(multiply(a2, b0), multiply(a0, b2)),
        subtract(multiply(a0, b1), multiply(a1, b0)),
    ]
    return stack(parts, axis)
