"""Products of tensors: matrix products, products over axes, index expressions.

Dtype: promoted. Products of integers are exact modulo the range of the dtype. Half precision is accumulated in float32.
On the CPU, MLX adds float32 sequentially, so sums of more than 1024 products are divided into blocks or accumulated in
float64 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, SupportsIndex

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, AxisError, ShapeError
from emberharmony.core.numeric.promotion import promote
from emberharmony.core.types import Tensor, TensorLike, Tensors
from emberharmony.ops.arrays.indexing import diagonal
from emberharmony.ops.arrays.shape import moveaxis, reshape, stack, transpose, unstack
from emberharmony.ops.dtype import dtype
from emberharmony.ops.elementwise.complex_numbers import conj
from emberharmony.ops.math import multiply, subtract
from emberharmony.ops.reductions.reduction import sum
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared import solver as shared_solver
    from emberharmony.backend.shared.algebra import einsum as shared_einsum
else:
    shared_einsum = Deferred("emberharmony.backend.shared.algebra.einsum")
    shared_solver = Deferred("emberharmony.backend.shared.solver")


@op(autocast="half")
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the matrix product; a vector counts as a row on the left and as a column on the right.

    Shape: all axes except the last two are batches, and are broadcast.

    Args:
        x1: (..., m, k), or a vector (k,), of any dtype; both are promoted to one.
        x2: (..., k, n), or a vector (k,), of any dtype.

    Raises:
        ShapeError: if the inner lengths differ, or if the batches do not broadcast.

    See also: `dot`, without batches; `einsum`, over any axes; `vecdot`, of vectors; `linear`, with a bias.

    Example:
        >>> ops.matmul([[1, 2]], [[3], [4]]).tolist()
        [[11]]
    """
    ...


@op(autocast="half")
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products over the last axis of `x1` and the second-to-last axis of `x2`.

    For a vector `x2` it is the sum over its only axis.

    Args:
        x1: (..., k), or a number, of any dtype; both are promoted to one.
        x2: (..., k, n), a vector (k,), or a number.

    Raises:
        ShapeError: if these axes differ in length.

    See also: `matmul`, with batches; `tensordot`, over several axes.

    Example:
        >>> ops.dot([1, 2], [3, 4]).tolist()
        11
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    if len(x2.shape) <= 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, [[-1], [-2]])


@op(autocast="half")
def tensordot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2) -> Tensor:
    """Returns the sum of products over pairs of axes.

    Args:
        x1: a tensor of any dtype; its axes that are not paired come first in the result.
        x2: a tensor of any dtype; its axes that are not paired come last in the result.
        axes: a number n, which pairs the last n axes of `x1` with the first n of `x2`, or two lists of axes.

    Raises:
        AxisError: if an axis is out of range.
        ShapeError: if paired axes differ in length.

    See also: `einsum`, by letters; `matmul`, over one axis.

    Example:
        >>> ops.tensordot([1, 2], [3, 4], 1).tolist()
        11
    """
    rank1, rank2 = len(x1.shape), len(x2.shape)
    if isinstance(axes, SupportsIndex):
        pair_count = as_index(axes)
        if not 0 <= pair_count <= rank1 or pair_count > rank2:
            raise AxisError(
                f"expected at most as many pairs of axes as there are axes ({rank1} and {rank2}), got {pair_count}"
            )
        axes = (range(rank1 - pair_count, rank1), range(pair_count))
    summed_axes1, summed_axes2 = (
        nonnegative_axes(list(pair) if isinstance(pair, Sequence) else pair, n)
        for pair, n in zip(axes, (rank1, rank2), strict=True)
    )
    summed_lengths = [x1.shape[a] for a in summed_axes1]
    if summed_lengths != [x2.shape[a] for a in summed_axes2]:
        shapes_text = f"{tuple(x1.shape)} and {tuple(x2.shape)}"
        raise ShapeError(f"axes {summed_axes1} and {summed_axes2} of shapes {shapes_text} differ in number or length")
    other_axes1 = [a for a in range(rank1) if a not in summed_axes1]
    other_axes2 = [a for a in range(rank2) if a not in summed_axes2]
    row_lengths, column_lengths = [x1.shape[a] for a in other_axes1], [x2.shape[a] for a in other_axes2]
    left_matrix = reshape(transpose(x1, [*other_axes1, *summed_axes1]), (prod(row_lengths), prod(summed_lengths)))
    right_matrix = reshape(transpose(x2, [*summed_axes2, *other_axes2]), (prod(summed_lengths), prod(column_lengths)))
    return reshape(matmul(left_matrix, right_matrix), [*row_lengths, *column_lengths])


@op(autocast="half")
def vdot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products of all elements, where those of `x1` are conjugated.

    Args:
        x1: a tensor of any shape and dtype, which is flattened.
        x2: a tensor of as many elements, which is flattened.

    Raises:
        ShapeError: if the operands differ in their number of elements.

    See also: `vecdot`, along an axis.

    Example:
        >>> ops.vdot([1, 2], [3, 4]).tolist()
        11
    """
    return matmul(conj(reshape(x1, -1)), reshape(x2, -1))


@op(autocast="half")
def vecdot(x1: TensorLike, x2: TensorLike, axis: int = -1) -> Tensor:
    """Returns the sum of products along an axis, where the elements of `x1` are conjugated; other axes broadcast.

    Args:
        x1: a tensor of any dtype, which broadcasts against `x2` except along `axis`.
        x2: a tensor with the same length along `axis`.

    Raises:
        AxisError: if `axis` is out of range.
        ShapeError: if the axis differs in length, or if the other axes do not broadcast.

    See also: `vdot`, of all elements.

    Example:
        >>> ops.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    shared_solver.check_equal_lengths(x1, x2, axis)
    result_dtype = promote(dtype(x1), dtype(x2))
    wide_dtype = "float32" if result_dtype.is_floating and result_dtype.bits == 16 else result_dtype
    x1, x2 = (moveaxis(cast(x, wide_dtype), axis, -1) for x in (x1, x2))
    return cast(sum(multiply(conj(x1), x2), -1, dtype=wide_dtype), result_dtype)


@op(autocast="half")
def inner(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the sum of products over the last axes.

    Args:
        x1: (..., k), or a number, of any dtype; its other axes come first in the result.
        x2: (..., k), or a number; its other axes come last in the result.

    Raises:
        ShapeError: if the last axes differ in length.

    See also: `matmul`, with the transposed matrix; `outer`, of all pairs.

    Example:
        >>> ops.inner([[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return multiply(x1, x2)
    if len(x2.shape) == 1:
        return matmul(x1, x2)
    return matmul(x2, x1) if len(x1.shape) == 1 else tensordot(x1, x2, [[-1], [-1]])


@op(autocast="half")
def outer(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the products of each element of `x1` with each element of `x2`, both flattened.

    Args:
        x1: a tensor of m elements, of any dtype, for the rows of the result (m, n).
        x2: a tensor of n elements, of any dtype, for its columns.

    See also: `kron`, of matrices; `inner`, summed.

    Example:
        >>> ops.outer([1, 2], [3, 4]).tolist()
        [[3, 4], [6, 8]]
    """
    return multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


@op(autocast="half")
def einsum(subscripts: str, *operands: TensorLike) -> Tensor:
    """Returns the sum of products that an index expression in Einstein notation describes.

    Args:
        subscripts: a letter for each axis of each operand, and those of the result: "ij,jk->ik". Without "->", the
            result has the letters that occur once, in alphabetical order; "..." stands for axes that broadcast.
        *operands: tensors of any dtype, one for each term; they are promoted to one dtype.

    Raises:
        ArgumentError: if the expression is malformed.
        ShapeError: if the shapes do not fit the expression.

    See also: `tensordot`, by numbers of axes; `matmul`, of two matrices; `rearrange`, without sums.

    Example:
        >>> ops.einsum('ij,j->i', [[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    return shared_einsum.einsum(subscripts, *operands)


@op(autocast="half")
def multi_dot(arrays: Tensors) -> Tensor:
    """Returns the product of several matrices, multiplied in the cheapest order.

    The first and the last operand may be vectors.

    Args:
        arrays: at least two matrices, each with as many rows as the one before it has columns.

    Raises:
        ArgumentError: if there are fewer than two operands.
        ShapeError: if the shapes do not fit.

    See also: `matmul`, of two matrices.

    Example:
        >>> ops.multi_dot([[1, 2], [[1, 0], [0, 3]], [1, 1]]).tolist()
        7

    Source: Cormen et al., Introduction to Algorithms, matrix-chain multiplication.
    """
    if len(arrays) < 2:
        raise ArgumentError(f"expected at least two matrices, got {len(arrays)}")
    shapes = [tuple(x.shape) for x in arrays]
    if any(len(shape) != 2 for shape in shapes[1:-1]) or not {len(shapes[0]), len(shapes[-1])} <= {1, 2}:
        raise ShapeError(f"expected matrices, with vectors only first and last, got shapes {shapes}")
    dimensions = [shapes[0][0] if len(shapes[0]) == 2 else 1, *(shape[0] for shape in shapes[1:]), (*shapes[-1], 1)[1]]
    cost_and_split_by_span: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(arrays))}
    for span_width in range(1, len(arrays)):
        for i in range(len(arrays) - span_width):
            j = i + span_width
            cost_and_split_by_span[i, j] = min(
                (
                    cost_and_split_by_span[i, k][0]
                    + cost_and_split_by_span[k + 1, j][0]
                    + dimensions[i] * dimensions[k + 1] * dimensions[j + 1],
                    k,
                )
                for k in range(i, j)
            )

    def product_of_span(i: int, j: int) -> Tensor:
        split_index = cost_and_split_by_span[i, j][1]
        return arrays[i] if i == j else matmul(product_of_span(i, split_index), product_of_span(split_index + 1, j))

    return product_of_span(0, len(arrays) - 1)


@op
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns the Kronecker product; the operand with fewer axes first gets leading axes of length 1.

    Args:
        x1: a tensor of any shape and dtype; each element is replaced by its multiple of `x2`.
        x2: a tensor of any shape and dtype.

    See also: `outer`, of vectors.

    Example:
        >>> ops.kron([1, 2], [1, 1]).tolist()
        [1, 1, 2, 2]
    """
    rank = max(len(x1.shape), len(x2.shape))
    shape1, shape2 = ((1,) * (rank - len(x.shape)) + tuple(x.shape) for x in (x1, x2))
    interleaved1 = reshape(x1, [length for a in shape1 for length in (a, 1)])
    interleaved2 = reshape(x2, [length for b in shape2 for length in (1, b)])
    return reshape(multiply(interleaved1, interleaved2), [a * b for a, b in zip(shape1, shape2, strict=True)])


@op
def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Returns the sum along a diagonal of two axes.

    Dtype: that of `sum`.

    Args:
        x: a tensor with at least two axes, of any dtype.
        offset: the diagonal: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.
        axis1: the axis of the rows; by default the first.
        axis2: the axis of the columns; by default the second.

    Raises:
        ShapeError: if `x` has fewer than two axes.
        AxisError: if an axis is out of range.

    See also: `diagonal`, not summed; `linalg_trace`, of the last two axes.

    Example:
        >>> ops.trace([[1, 2], [3, 4]]).tolist()
        5
    """
    return sum(diagonal(x, offset, axis1, axis2), -1)


@op
def cross(
    x1: TensorLike, x2: TensorLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = -1
) -> Tensor:
    """Returns the cross product of vectors of three components along an axis; the other axes broadcast.

    Args:
        x1: a tensor of any dtype, of length 3 along its axis of vectors.
        x2: a tensor of any dtype, of length 3 along its axis of vectors.
        axisa: the axis of the vectors in `x1`, from -ndim to ndim - 1.
        axisb: the axis of the vectors in `x2`, from -ndim to ndim - 1.
        axisc: the axis of the vectors in the result, from -ndim to ndim - 1.
        axis: one axis that takes the place of all three, unless it is -1 or None.

    Raises:
        AxisError: if `axis` is out of range.
        ShapeError: if the axis does not have length 3.

    See also: `vecdot`, the scalar product.

    Example:
        >>> ops.cross([1, 0, 0], [0, 1, 0]).tolist()
        [0, 0, 1]
    """
    if axis not in (-1, None):
        axisa = axisb = axisc = axis
    operands_and_axes = (x1, axisa), (x2, axisb)
    component_counts = [x.shape[nonnegative_axes(axis, len(x.shape))[0]] for x, axis in operands_and_axes]
    if component_counts != [3, 3]:
        raise ShapeError(
            f"expected length 3 along axes {axisa} and {axisb}, got {component_counts[0]} and {component_counts[1]}"
        )
    a0, a1, a2 = unstack(x1, axis=axisa)
    b0, b1, b2 = unstack(x2, axis=axisb)
    components = [
        subtract(multiply(a1, b2), multiply(a2, b1)),
        subtract(multiply(a2, b0), multiply(a0, b2)),
        subtract(multiply(a0, b1), multiply(a1, b0)),
    ]
    return stack(components, axisc)
