"""Norms of vectors and matrices, and distances.

Dtype: integers become the default float. Complex tensors give the dtype of their parts. Half precision is computed in
float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.numeric.constants import inf
from emberharmony.core.options import constant
from emberharmony.core.types import Axis, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.arrays.shape import expand_dims, moveaxis, reshape
from emberharmony.ops.dtype import cast_option, dtype
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.logic.comparison import equal, greater, less, logical_and
from emberharmony.ops.math import absolute, add, divide, maximum, multiply, power, sqrt, square, subtract
from emberharmony.ops.reductions.reduction import count_nonzero, max, min, sum
from emberharmony.ops.solver import svdvals, to_compute_dtype
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.algebra import norms as shared_norms
    from emberharmony.backend.shared.neural import normalization as shared_normalization
else:
    shared_normalization = Deferred("emberharmony.backend.shared.neural.normalization")
    shared_norms = Deferred("emberharmony.backend.shared.algebra.norms")


@op(autocast="float32")
def vector_norm(x: TensorLike, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Returns the p-norm of vectors over axes, by default of all elements.

    The gradient for a vector of zeros is 0.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        ord: the p of the norm: 2 is the Euclidean norm, 1 the sum of magnitudes, infinity the largest; 0 counts the
            non-zero elements.

    Raises:
        AxisError: if an axis is out of range.
        ArgumentError: if `ord` is not a number.

    See also: `norm`, as in NumPy; `normalize`, to divide by it; `matrix_norm`, of matrices.

    Example:
        >>> ops.vector_norm([3.0, 4.0]).tolist()
        5.0
    """
    magnitudes = absolute(to_compute_dtype(x))
    norms = _vector_norm(magnitudes, axis, keepdims, shared_norms.norm_order(constant("ord", ord)))
    x_dtype = dtype(x)
    return cast(norms, x_dtype) if x_dtype.is_floating and x_dtype.bits == 16 else norms


@op(reads="checks")
def matrix_norm(x: TensorLike, ord: float | Literal["fro", "nuc"] = "fro", keepdims: bool = False) -> Tensor:
    """Returns the norm of matrices.

    Args:
        x: matrices (..., m, n) of any dtype; integers become the default float.
        ord: "fro", "nuc" (sum of singular values), 1 or inf (largest column or row sum) or 2 (largest singular value);
            -1, -inf and -2 take the smallest instead.
        keepdims: whether the last two axes stay, with length 1.

    Raises:
        ArgumentError: if `ord` is unknown.
        ShapeError: if `x` has fewer than two axes.
        LinAlgError: if `x` holds NaN or infinities and `ord` needs singular values.

    See also: `vector_norm`, of vectors; `linalg_cond`, of condition.

    Example:
        >>> ops.matrix_norm([[1, -2], [3, 4]], 1).tolist()
        6.0
    """
    constant("ord", ord)
    if ord == "fro":
        return vector_norm(x, (-2, -1), keepdims)
    if ord in ("nuc", 2, -2):
        singular_values = svdvals(x)
        singular_norm = (
            sum(singular_values, -1)
            if ord == "nuc"
            else max(singular_values, -1)
            if ord == 2
            else min(singular_values, -1)
        )
        return expand_dims(singular_norm, (-2, -1)) if keepdims else singular_norm
    if ord not in (1, -1, inf, -inf):
        raise ArgumentError(f"expected ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    line_sums = vector_norm(x, -2 if ord in (1, -1) else -1, True, 1)
    return max(line_sums, (-2, -1), keepdims) if ord in (1, inf) else min(line_sums, (-2, -1), keepdims)


@op(autocast="float32", reads="checks")
def norm(
    x: TensorLike,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Axis = None,
    keepdims: bool = False,
) -> Tensor:
    """Returns the norm of vectors (one axis) or matrices (two axes); without `ord` and `axis`, of all elements.

    Args:
        x: a tensor of any dtype; integers become the default float.
        ord: for one axis the p of `vector_norm`, for two the `ord` of `matrix_norm`; None is the square root of the sum
            of all squares.
        axis: one axis of vectors, or two axes of matrices; None takes all axes.

    Raises:
        AxisError: if an axis is out of range.
        ArgumentError: if `ord` is not defined for this number of axes.

    See also: `vector_norm`, of vectors alone; `matrix_norm`, of matrices alone.

    Example:
        >>> ops.norm([3.0, 4.0]).tolist()
        5.0
    """
    constant("ord", ord)
    if ord is None:
        return vector_norm(x, axis, keepdims)
    axes = tuple(range(len(x.shape))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) == 1 and not isinstance(ord, str):
        return vector_norm(x, axes, keepdims, ord)
    if len(axes) != 2:
        raise ArgumentError(f"ord {ord!r} is defined for matrices, so expected two axes, got {axes}")
    norms = matrix_norm(moveaxis(x, axes, (-2, -1)), ord)
    return expand_dims(norms, [a % len(x.shape) for a in axes]) if keepdims else norms


@op(autocast="float32")
def normalize(x: TensorLike, axis: Axis = -1, order: float = 2, epsilon: Varying | None = None) -> Tensor:
    """Returns `x` divided by its norms over an axis; norms below `epsilon` are replaced by `epsilon`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        order: the p of the norm: 2 is the Euclidean norm, 1 the sum of magnitudes, infinity the largest.
        epsilon: the least divisor: a number, or a tensor that broadcasts; None is 1e-7.

    Raises:
        AxisError: if an axis is out of range.
        ArgumentError: if `order` is not a number.

    See also: `vector_norm`, the divisor; `rms_normalization`, by the root mean square.

    Example:
        >>> ops.normalize([[3.0, 0.0], [0.0, 0.0]]).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    norms = vector_norm(x, axis, True, shared_norms.norm_order(constant("order", order), "order"))
    return divide(
        x, maximum(norms, shared_normalization.EPSILON if epsilon is None else cast_option("epsilon", epsilon, norms))
    )


@op(autocast="float32")
def cdist(x: TensorLike, y: TensorLike, p: float = 2.0) -> Tensor:
    """Returns the distance, by the p-norm, between each row of `x` and each row of `y`.

    Shape: (..., m, d), (..., n, d) to (..., m, n).

    Args:
        x: points (..., m, d); integers become the default float.
        y: points (..., n, d); integers become the default float.
        p: the p of the norm: 2 is the Euclidean distance, 1 the sum of distances along the axes, infinity their
            largest.

    Raises:
        ShapeError: if the rows differ in length, or if the batches do not broadcast.
        ArgumentError: if `p` is not a number.

    See also: `vector_norm`, of one difference.

    Example:
        >>> ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
        [[5.0, 1.0]]
    """
    # Convert to float, because the differences of unsigned integers would wrap.
    return vector_norm(
        subtract(expand_dims(add(x, 0.0), -2), expand_dims(add(y, 0.0), -3)),
        -1,
        False,
        shared_norms.norm_order(constant("p", p), "p"),
    )


def _vector_norm(magnitudes: Tensor, axis: Axis, keepdims: bool, ord: float) -> Tensor:
    if ord == inf:
        return max(magnitudes, axis, keepdims, 0.0)
    if ord == -inf:
        return min(magnitudes, axis, keepdims)
    if ord == 0:
        return cast(count_nonzero(magnitudes, axis, keepdims), dtype(magnitudes))
    if ord == 1:
        return sum(magnitudes, axis, keepdims)
    # Divide by the largest element (by the smallest for a negative order), so that powers do not overflow. The norm
    # does not depend on that scale, so no derivative flows through it.
    extreme_magnitude = stop_gradient(min(magnitudes, axis, True, inf) if ord < 0 else max(magnitudes, axis, True, 0.0))
    scale = where(logical_and(greater(extreme_magnitude, 0), less(extreme_magnitude, inf)), extreme_magnitude, 1.0)
    scaled_magnitudes = divide(magnitudes, scale)
    power_sum = sum(square(scaled_magnitudes) if ord == 2 else power(scaled_magnitudes, float(ord)), axis, keepdims)
    # The derivative of the root at 0 is infinite and would make the gradient NaN, so take the root of 1 there instead.
    is_zero = logical_and(equal(power_sum, 0), ord > 0)
    safe_sum = where(is_zero, 1.0, power_sum)
    root_of_sum = where(is_zero, 0.0, sqrt(safe_sum) if ord == 2 else power(safe_sum, 1.0 / ord))
    return multiply(root_of_sum, scale if keepdims else reshape(scale, root_of_sum.shape))
