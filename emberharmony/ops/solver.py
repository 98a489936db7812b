"""Linear algebra.

Matrices stand on the last two axes; the others are batches, and broadcast. Integers take the default float; half
precision is computed in float32. A matrix that is not square where it must be raises `ShapeError`; one that is
singular, or not positive-definite where it must be, or has no singular values or eigenvalues because it holds NaN or
infinities, `LinAlgError`. MLX has to evaluate its tensors to find that out: all but `det` and `slogdet` force
evaluation there, and run on the CPU.

Signs: the largest component of each eigenvector and of each column of U is positive (of equal ones the first; real and
positive where they are complex), and so is the diagonal of R. So factors agree between backends wherever they are
unique but for signs.
"""

from __future__ import annotations

from operator import index
from typing import Any, Literal

from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentTypeError, ShapeError
from emberharmony.core.promotion import as_inexact
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.comparison import greater
from emberharmony.ops.complexes import conj, real
from emberharmony.ops.creation import eye
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype, finfo
from emberharmony.ops.elementary import log
from emberharmony.ops.indexing import diagonal, where
from emberharmony.ops.math import divide, multiply
from emberharmony.ops.products import matmul
from emberharmony.ops.reduction import count_nonzero, max, sum
from emberharmony.ops.shape import broadcast_to, expand_dims, matrix_transpose, squeeze
from emberharmony.ops.tensor import cast


@op
def det(x: TensorLike) -> Tensor:
    """Returns the determinant.

    Shape: (..., n, n) to (...). Raises: ShapeError.

    Example:
        >>> round(ops.det([[2.0, 0.0], [0.0, 3.0]]).tolist(), 4)
        6.0
    """
    ...


@op
def slogdet(x: TensorLike) -> SlogdetResult:
    """Returns the sign and the logarithm of the magnitude of the determinant, 0 and -inf for a singular matrix.

    Raises: ShapeError.
    """
    ...


@op
def logdet(x: TensorLike) -> Tensor:
    """Returns the logarithm of the determinant of positive-definite matrices; it is real.

    Raises: ShapeError; LinAlgError if one is not positive-definite.
    """
    return multiply(sum(log(real(diagonal(cholesky(x), 0, -2, -1))), -1), 2.0)


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

    Raises: ShapeError; LinAlgError for a zero on the diagonal.

    Example:
        >>> ops.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True).tolist()
        [1.0, 2.0]
    """
    ...


@op
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Returns the lower triangular L with `x = L @ L^H`, or its conjugate transpose; reads the lower half only.

    Raises: ShapeError; LinAlgError if `x` is not positive-definite, or not finite.

    Example:
        >>> ops.cholesky([[4.0, 0.0], [0.0, 9.0]]).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    ...


@op
def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """Returns the inverse of a matrix from its Cholesky factor `x`, lower triangular unless `upper`.

    Raises: ShapeError; LinAlgError for a zero on the diagonal.

    Example:
        >>> ops.cholesky_inverse([[2.0, 0.0], [0.0, 1.0]]).tolist()
        [[0.25, 0.0], [0.0, 1.0]]
    """
    root = solve_triangular(x, eye(x.shape[-1], dtype=as_inexact(dtype(x)), device=get_device(x)), not upper)
    adjoint = conj(matrix_transpose(root))
    return matmul(root, adjoint) if upper else matmul(adjoint, root)


@op
def lu_factor(x: TensorLike) -> LUResult:
    """Returns the LU decomposition with partial pivoting, packed as in SciPy; a singular matrix has a zero in U.

    Dtype: pivots are int64.

    Example:
        >>> ops.lu_factor([[0.0, 1.0], [2.0, 4.0]]).LU.tolist()
        [[2.0, 4.0], [0.0, 1.0]]
    """
    ...


@op
def qr(x: TensorLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Returns Q and R with `x = Q @ R`; "complete" makes Q square.

    Raises: ShapeError; ArgumentError for another mode.
    """
    ...


@op
def svd(x: TensorLike, full_matrices: bool = True) -> SVDResult:
    """Returns the singular value decomposition `x = U[..., :k] @ diag(S) @ Vh[..., :k, :]`.

    Shape: (..., m, n) to (..., m, m), (..., k), (..., n, n) with k the lesser of m and n, which without
    `full_matrices` stands for the second m and the first n too. Raises: ShapeError; LinAlgError for NaN and infinities.
    """
    ...


@op
def svdvals(x: TensorLike) -> Tensor:
    """Returns the singular values in descending order.

    Raises: ShapeError; LinAlgError for NaN and infinities.

    Example:
        >>> ops.svdvals([[3.0, 0.0], [0.0, 4.0]]).tolist()
        [4.0, 3.0]
    """
    return svd(x, False).S


@op
def eigh(x: TensorLike) -> EigResult:
    """Returns the eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which the lower half is read.

    Raises: ShapeError; LinAlgError if it does not converge, or for NaN and infinities in the lower half.
    """
    ...


@op
def eigvalsh(x: TensorLike) -> Tensor:
    """Returns the eigenvalues of Hermitian matrices, ascending; reads the lower half.

    Raises: ShapeError; LinAlgError if it does not converge, or for NaN and infinities in the lower half.
    """
    return eigh(x).eigenvalues


@op
def eig(x: TensorLike) -> EigResult:
    """Returns the eigenvalues and eigenvectors of square matrices, always complex, in no order.

    Dtype: complex; MLX has complex64 only, also for float64. Raises: ShapeError; LinAlgError for NaN and infinities.
    """
    ...


@op
def eigvals(x: TensorLike) -> Tensor:
    """Returns the eigenvalues of square matrices, always complex, in no order.

    Dtype: complex; MLX has complex64 only, also for float64. Raises: ShapeError; LinAlgError for NaN and infinities.
    """
    return eig(x).eigenvalues


@op
def pinv(x: TensorLike, rtol: Operand | None = None) -> Tensor:
    """Returns the Moore-Penrose inverse.

    Args:
        rtol: singular values up to so many times the largest count as zero, one number or one for each matrix; by
            default eps times the larger of the matrix' lengths.

    Raises: ShapeError; LinAlgError for NaN and infinities.
    """
    u, s, vh = svd(computed(x), False)
    kept = greater(s, _limit(s, x, rtol))
    inverse = where(kept, divide(1.0, where(kept, s, 1.0)), 0.0)
    result = matmul(multiply(conj(matrix_transpose(vh)), expand_dims(inverse, -2)), conj(matrix_transpose(u)))
    return cast(result, as_inexact(dtype(x)))


@op
def matrix_rank(x: TensorLike, rtol: Operand | None = None) -> Tensor:
    """Returns the number of singular values above `rtol` times the largest (int64); see `pinv`.

    Raises: ShapeError; LinAlgError for NaN and infinities.

    Example:
        >>> ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).tolist()
        1
    """
    s = svdvals(computed(x))
    return count_nonzero(greater(s, _limit(s, x, rtol)), -1)


@op
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> Tensor:
    """Returns the x of least norm that minimises `norm(a @ x - b)`; a vector `b` is one right-hand side.

    Args:
        rcond: see `rtol` of `pinv`.

    Raises: ShapeError; LinAlgError for NaN and infinities.
    """
    x = matmul(pinv(a, rcond), expand_dims(b, -1) if len(b.shape) == 1 else b)
    return squeeze(x, -1) if len(b.shape) == 1 else x


@op
def matrix_power(x: TensorLike, n: int) -> Tensor:
    """Returns the n-th power of square matrices; negative ones of the inverse.

    Dtype: that of `x`; integers are exact, and take the default float if n is negative.
    Raises: ShapeError; ArgumentTypeError if n is no integer; LinAlgError for a negative power of a singular matrix.

    Example:
        >>> ops.matrix_power([[2, 0], [0, 3]], 2).tolist()
        [[4, 0], [0, 9]]
    """
    try:
        n = index(n)
    except TypeError as error:
        raise ArgumentTypeError(f"n is an integer, not {n!r}") from error
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"square matrices are wanted on the last two axes, this tensor has shape {tuple(x.shape)}")
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=dtype(x), device=get_device(x)), tuple(x.shape))
    base, n = (inv(x), -n) if n < 0 else (x, n)
    result: Any = None
    while n:
        if n & 1:
            result = base if result is None else matmul(result, base)
        n >>= 1
        base = matmul(base, base) if n else base
    return result


def computed(x: Tensor) -> Tensor:
    """Returns a tensor in the dtype it is computed in: integers in the default float, half precision in float32."""
    kind = as_inexact(dtype(x))
    return cast(x, "float32" if kind.bits == 16 else kind)


def _limit(s: Tensor, x: Tensor, rtol: object) -> Tensor:
    """Returns the size up to which the singular values `s` of `x` are rounding errors."""
    largest = max(s, -1, initial=0.0)
    share = finfo(dtype(s)).eps * sorted(x.shape[-2:])[-1] if rtol is None else rtol
    if hasattr(share, "shape"):
        share = to_device(share, get_device(s))
    return expand_dims(multiply(largest, share), -1)
