"""Linear algebra.

Matrices stand on the last two axes; the others are batches and broadcast. Integers take the default float where the
result is not an integer; half precision is computed in float32. A matrix that is not square where it must be raises
`ShapeError`; one that is singular, or not positive-definite where it must be, raises `LinAlgError`: MLX has to be
evaluated to find that out, so `inv`, `solve`, `cholesky`, `svd` and `eigh` force evaluation there. MLX computes them
on the CPU.

Signs: the largest component of each singular and eigenvector is made positive (real, for complex ones), and the
diagonal of R in `qr`, so that factors agree between backends wherever the values differ.
"""

from __future__ import annotations

import builtins
from typing import Literal

from emberharmony.core.constants import inf
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError
from emberharmony.core.results import EigResult, QRResult, SlogdetResult, SVDResult
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.ops.comparison import greater, less, logical_and
from emberharmony.ops.complexes import conj
from emberharmony.ops.creation import eye
from emberharmony.ops.dtypes import dtype
from emberharmony.ops.elementary import log
from emberharmony.ops.indexing import diagonal, where
from emberharmony.ops.math import absolute, add, divide, multiply, power, sqrt
from emberharmony.ops.products import matmul
from emberharmony.ops.reduction import count_nonzero, max, min, sum
from emberharmony.ops.shape import (
    expand_dims,
    matrix_transpose,
    moveaxis,
    reshape,
    squeeze,
)
from emberharmony.ops.tensor import cast


@op
def det(x: TensorLike) -> Tensor:
    """Returns the determinant.

    Example:
        >>> round(ops.det([[2.0, 0.0], [0.0, 3.0]]).tolist(), 4)
        6.0
    """
    ...


@op
def slogdet(x: TensorLike) -> SlogdetResult:
    """Returns the sign and the logarithm of the magnitude of the determinant, 0 and -inf for a singular matrix."""
    ...


@op
def logdet(x: TensorLike) -> Tensor:
    """Returns the logarithm of the determinant of positive-definite matrices.

    Raises: LinAlgError if one is not positive-definite.
    """
    return multiply(sum(log(diagonal(cholesky(x), 0, -2, -1)), -1), 2.0)


@op
def inv(x: TensorLike) -> Tensor:
    """Returns the inverse.

    Raises: ShapeError, LinAlgError.

    Example:
        >>> ops.inv([[4.0]]).tolist()
        [[0.25]]
    """
    ...


@op
def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """Returns x with `a @ x = b`; a vector `b` is one right-hand side, else its columns are.

    Raises: ShapeError, LinAlgError.

    Example:
        >>> ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).tolist()
        [1.0, 1.0]
    """
    ...


@op
def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """Returns x with `a @ x = b`, `a` being triangular; its other half is not read.

    Raises: ShapeError.
    """
    ...


@op
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Returns the lower triangular L with `x = L @ L^H`, or its conjugate transpose; reads the lower half only.

    Raises: ShapeError; LinAlgError if `x` is not positive-definite.

    Example:
        >>> ops.cholesky([[4.0, 0.0], [0.0, 9.0]]).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    ...


@op
def qr(x: TensorLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Returns Q and R with `x = Q @ R`; "complete" makes Q square.

    Raises: ArgumentError for another mode.
    """
    ...


@op
def svd(x: TensorLike, full_matrices: bool = False) -> SVDResult:
    """Returns the singular value decomposition `x = U @ diag(S) @ Vh`.

    Raises: LinAlgError if it does not converge.
    """
    ...


@op
def svdvals(x: TensorLike) -> Tensor:
    """Returns the singular values in descending order.

    Example:
        >>> ops.svdvals([[3.0, 0.0], [0.0, 4.0]]).tolist()
        [4.0, 3.0]
    """
    return svd(x).S


@op
def eigh(x: TensorLike) -> EigResult:
    """Returns the eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which the lower half is read.

    Raises: LinAlgError if it does not converge.
    """
    ...


@op
def eigvalsh(x: TensorLike) -> Tensor:
    """Returns the eigenvalues of Hermitian matrices, ascending."""
    return eigh(x).eigenvalues


@op
def eig(x: TensorLike) -> EigResult:
    """Returns the eigenvalues and eigenvectors of square matrices, always complex, in no order.

    Dtype: complex; MLX has complex64 only, also for float64.
    """
    ...


@op
def eigvals(x: TensorLike) -> Tensor:
    """Returns the eigenvalues of square matrices, always complex, in no order."""
    return eig(x).eigenvalues


@op
def pinv(x: TensorLike, rtol: float | None = None) -> Tensor:
    """Returns the Moore-Penrose inverse; singular values below `rtol` times the largest count as zero."""
    u, s, vh = svd(x)
    limit = multiply(max(s, -1, True, 0.0), _rtol(x) if rtol is None else rtol)
    inverse = where(greater(s, limit), divide(1.0, where(greater(s, limit), s, 1.0)), 0.0)
    return matmul(multiply(conj(matrix_transpose(vh)), expand_dims(inverse, -2)), conj(matrix_transpose(u)))


@op
def matrix_rank(x: TensorLike, rtol: float | None = None) -> Tensor:
    """Returns the number of singular values above `rtol` times the largest (int64).

    Example:
        >>> ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).tolist()
        1
    """
    s = svdvals(x)
    return count_nonzero(greater(s, multiply(max(s, -1, True, 0.0), _rtol(x) if rtol is None else rtol)), -1)


@op
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> Tensor:
    """Returns the x of least norm that minimises `norm(a @ x - b)`."""
    x = matmul(pinv(a, rcond), expand_dims(b, -1) if len(b.shape) == 1 else b)
    return squeeze(x, -1) if len(b.shape) == 1 else x


@op
def matrix_power(x: TensorLike, n: int) -> Tensor:
    """Returns the n-th power of square matrices; negative ones of the inverse.

    Example:
        >>> ops.matrix_power([[2, 0], [0, 3]], 2).tolist()
        [[4, 0], [0, 9]]
    """
    if n < 0:
        x, n = inv(x), -n
    result = add(multiply(x, 0), eye(x.shape[-1], dtype=dtype(x)))
    while n:
        if n & 1:
            result = matmul(result, x)
        x, n = (matmul(x, x) if n > 1 else x), n >> 1
    return result


@op
def vector_norm(x: TensorLike, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Returns the p-norm of vectors over axes, by default of all elements: p is `ord`, 0 counts what is not zero.

    Example:
        >>> ops.vector_norm([3.0, 4.0]).tolist()
        5.0
    """
    size = absolute(add(x, 0.0))
    if ord == inf:
        return max(size, axis, keepdims, 0.0)
    if ord == -inf:
        return min(size, axis, keepdims)
    if ord == 0:
        return cast(count_nonzero(size, axis, keepdims), dtype(size))
    if ord == 1:
        return sum(size, axis, keepdims)
    # Scaled by the largest element, no square overflows.
    top = max(size, axis, True, 0.0)
    scale = where(logical_and(greater(top, 0), less(top, inf)), top, 1.0)
    total = sum(power(divide(size, scale), float(ord)), axis, keepdims)
    root = sqrt(total) if ord == 2 else power(total, 1.0 / ord)
    return multiply(root, scale if keepdims else reshape(scale, root.shape))


@op
def matrix_norm(x: TensorLike, ord: float | Literal["fro", "nuc"] = "fro", keepdims: bool = False) -> Tensor:
    """Returns the norm of matrices.

    Args:
        ord: "fro", "nuc" (sum of singular values), 1 or inf (largest column or row sum), 2 (largest singular value);
            the negative ones take the least. Another raises ArgumentError.
    """
    if ord == "fro":
        return vector_norm(x, (-2, -1), keepdims)
    if ord in ("nuc", 2, -2):
        s = svdvals(x)
        value = sum(s, -1) if ord == "nuc" else max(s, -1) if ord == 2 else min(s, -1)
        return expand_dims(value, (-2, -1)) if keepdims else value
    if ord not in (1, -1, inf, -inf):
        raise ArgumentError(f"ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    sums = sum(absolute(x), -2 if ord in (1, -1) else -1, True)
    return max(sums, (-2, -1), keepdims) if ord in (1, inf) else min(sums, (-2, -1), keepdims)


@op
def norm(
    x: TensorLike,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Axis = None,
    keepdims: bool = False,
) -> Tensor:
    """Returns the norm of vectors (one axis) or matrices (two axes); without `ord` and `axis` of all elements.

    Example:
        >>> ops.norm([3.0, 4.0]).tolist()
        5.0
    """
    if ord is None:
        return vector_norm(x, axis, keepdims)
    axes = tuple(range(len(x.shape))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) == 1 and not isinstance(ord, str):
        return vector_norm(x, axes, keepdims, ord)
    if len(axes) != 2:
        raise ArgumentError(f"ord {ord!r} is defined for matrices, over two axes, not over axes {axes}")
    value = matrix_norm(moveaxis(x, axes, (-2, -1)), ord)
    return expand_dims(value, [a % len(x.shape) for a in axes]) if keepdims else value


def _rtol(x: Tensor) -> float:
    """Returns the relative size below which singular values of `x` are rounding."""
    eps = {"float64": 2.0**-52, "complex128": 2.0**-52}.get(dtype(add(x, 0.0)).name, 2.0**-23)
    return eps * int(builtins.max(x.shape[-2:]))
