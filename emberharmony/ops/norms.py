"""Norms of vectors and matrices, and what is measured by them.

Dtype: integers take the default float, complex tensors give their part's dtype; half precision is computed in float32.
"""

from __future__ import annotations

from typing import Literal

from emberharmony.core.constants import inf
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.options import constant
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.ops.comparison import equal, greater, less, logical_and
from emberharmony.ops.dtype import dtype
from emberharmony.ops.indexing import where
from emberharmony.ops.math import absolute, add, divide, maximum, multiply, power, sqrt, square, subtract
from emberharmony.ops.reduction import count_nonzero, max, min, sum
from emberharmony.ops.shape import expand_dims, moveaxis, reshape
from emberharmony.ops.solver import computed, svdvals
from emberharmony.ops.tensor import cast


@op
def vector_norm(x: TensorLike, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Returns the p-norm of vectors over axes, by default of all elements: p is `ord`, 0 counts what is not zero.

    The gradient at a vector of zeros is 0. Raises: AxisError.

    Example:
        >>> ops.vector_norm([3.0, 4.0]).tolist()
        5.0
    """
    sizes = absolute(computed(x))
    result = _vector_norm(sizes, axis, keepdims, constant("ord", ord))
    kind = dtype(x)
    return cast(result, kind) if kind.is_floating and kind.bits == 16 else result


@op
def matrix_norm(x: TensorLike, ord: float | Literal["fro", "nuc"] = "fro", keepdims: bool = False) -> Tensor:
    """Returns the norm of matrices.

    Args:
        ord: "fro", "nuc" (sum of singular values), 1 or inf (largest column or row sum), 2 (largest singular value);
            the negative ones take the least. Another raises ArgumentError.

    Raises: ShapeError; LinAlgError for NaN and infinities where `ord` asks for singular values.

    Example:
        >>> ops.matrix_norm([[1, -2], [3, 4]], 1).tolist()
        6.0
    """
    if ord == "fro":
        return vector_norm(x, (-2, -1), keepdims)
    if ord in ("nuc", 2, -2):
        s = svdvals(x)
        value = sum(s, -1) if ord == "nuc" else max(s, -1) if ord == 2 else min(s, -1)
        return expand_dims(value, (-2, -1)) if keepdims else value
    if ord not in (1, -1, inf, -inf):
        raise ArgumentError(f"ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    sums = vector_norm(x, -2 if ord in (1, -1) else -1, True, 1)
    return max(sums, (-2, -1), keepdims) if ord in (1, inf) else min(sums, (-2, -1), keepdims)


@op
def norm(
    x: TensorLike,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Axis = None,
    keepdims: bool = False,
) -> Tensor:
    """Returns the norm of vectors (one axis) or matrices (two axes); without `ord` and `axis` of all elements.

    Raises: AxisError; ArgumentError for an `ord` that so many axes do not have.

    Example:
        >>> ops.norm([3.0, 4.0]).tolist()
        5.0
    """
    if constant("ord", ord) is None:
        return vector_norm(x, axis, keepdims)
    axes = tuple(range(len(x.shape))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) == 1 and not isinstance(ord, str):
        return vector_norm(x, axes, keepdims, ord)
    if len(axes) != 2:
        raise ArgumentError(f"ord {ord!r} is defined for matrices, over two axes, not over axes {axes}")
    value = matrix_norm(moveaxis(x, axes, (-2, -1)), ord)
    return expand_dims(value, [a % len(x.shape) for a in axes]) if keepdims else value


@op
def normalize(x: TensorLike, axis: Axis = -1, order: float = 2, epsilon: float = 1e-7) -> Tensor:
    """Returns `x` divided by its norms over an axis, each at least `epsilon`.

    Raises: AxisError.

    Example:
        >>> ops.normalize([[3.0, 0.0], [0.0, 0.0]]).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    return divide(x, maximum(vector_norm(x, axis, True, order), epsilon))


@op
def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0) -> Tensor:
    """Returns the distances, by the p-norm, of each row of `x1` to each row of `x2`.

    Shape: (..., m, d), (..., n, d) to (..., m, n). Raises: ShapeError.

    Example:
        >>> ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
        [[5.0, 1.0]]
    """
    # As floats, since the differences of unsigned integers would wrap.
    return vector_norm(subtract(expand_dims(add(x1, 0.0), -2), expand_dims(add(x2, 0.0), -3)), -1, False, p)


def _vector_norm(sizes: Tensor, axis: Axis, keepdims: bool, ord: float) -> Tensor:
    if ord == inf:
        return max(sizes, axis, keepdims, 0.0)
    if ord == -inf:
        return min(sizes, axis, keepdims)
    if ord == 0:
        return cast(count_nonzero(sizes, axis, keepdims), dtype(sizes))
    if ord == 1:
        return sum(sizes, axis, keepdims)
    # Scaled by the largest element, no square overflows.
    top = max(sizes, axis, True, 0.0)
    scale = where(logical_and(greater(top, 0), less(top, inf)), top, 1.0)
    scaled = divide(sizes, scale)
    total = sum(square(scaled) if ord == 2 else power(scaled, float(ord)), axis, keepdims)
    # The root of zero has an infinite slope, which would make the gradient NaN.
    none = logical_and(equal(total, 0), ord > 0)
    safe = where(none, 1.0, total)
    root = where(none, 0.0, sqrt(safe) if ord == 2 else power(safe, 1.0 / ord))
    return multiply(root, scale if keepdims else reshape(scale, root.shape))
