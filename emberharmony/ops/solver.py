"""Linear algebra.

The last two axes hold the matrices; the other axes are batches, and are broadcast. Integers become the default float;
half precision is computed in float32.

A matrix that must be square but is not raises `ShapeError`. `LinAlgError` is raised if a matrix is singular, or is not
positive-definite where it must be, or has no singular values or eigenvalues because it holds NaN or infinities. To
detect this, MLX has to evaluate its tensors: all ops except `det` and `slogdet` force evaluation there, and run on the
CPU.

Signs: the largest component of each eigenvector and of each column of U is positive (for equal ones, the first; for
complex ones, real and positive). The diagonal of R is positive too. So if factors are unique except for their signs,
they agree between backends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.arrays.creation import eye, tril, triu
from emberharmony.ops.arrays.indexing import diagonal, where
from emberharmony.ops.arrays.shape import broadcast_to, expand_dims, matrix_transpose, squeeze
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype, finfo
from emberharmony.ops.elementwise.complex_numbers import conj, real
from emberharmony.ops.elementwise.elementary import log
from emberharmony.ops.flow.transforms import custom_gradient
from emberharmony.ops.logic.comparison import greater
from emberharmony.ops.math import add, divide, multiply, subtract
from emberharmony.ops.reductions.reduction import count_nonzero, max, sum
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared import solver as shared_solver
    from emberharmony.backend.shared.algebra import lapack, linear
    from emberharmony.ops.algebra import products
else:
    lapack, linear = (
        Deferred("emberharmony.backend.shared.algebra.lapack"),
        Deferred("emberharmony.backend.shared.algebra.linear"),
    )
    shared_solver = Deferred("emberharmony.backend.shared.solver")
    products = Deferred("emberharmony.ops.algebra.products")  # beside the norms, which import this module


@op(along="matrix", reads="data")
def det(x: TensorLike) -> Tensor:
    """Returns the determinant.

    Shape: (..., n, n) to (...).

    Raises:
        ShapeError: if the matrices are not square.

    See also: `slogdet`, without overflow; `logdet`, of positive-definite matrices.

    Example:
        >>> round(ops.det([[2.0, 0.0], [0.0, 3.0]]).tolist(), 4)
        6.0
    """
    return linear.call_lapack(lapack.det, [x])


@op(along="matrix", reads="data")
def slogdet(x: TensorLike) -> SlogdetResult:
    """Returns the sign of the determinant and the logarithm of its magnitude; 0 and -inf for a singular matrix.

    Raises:
        ShapeError: if the matrices are not square.

    See also: `det`, itself; `logdet`, of positive-definite matrices.
    """
    return linear.call_lapack(lapack.slogdet, [x])


@op(reads="checks")
def logdet(x: TensorLike) -> Tensor:
    """Returns the logarithm of the determinant of positive-definite matrices; the result is real.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if a matrix is not positive-definite.

    See also: `slogdet`, of any sign; `det`, itself.
    """
    return multiply(sum(log(real(diagonal(cholesky(x), 0, -2, -1))), -1), 2.0)


@op(along="matrix", reads="data")
def inv(x: TensorLike) -> Tensor:
    """Returns the inverse of square matrices.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if a matrix is singular.

    See also: `solve`, faster and more exact for a system; `pinv`, of any matrix.

    Example:
        >>> ops.inv([[4.0]]).tolist()
        [[0.25]]
    """
    return linear.call_lapack(lapack.inv, [x])


@op(reads="data")
def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """Returns the x that satisfies `a @ x = b`.

    Args:
        a: square matrices (..., n, n), real or complex; integers become the default float.
        b: a vector (n,) for one right-hand side, or matrices (..., n, k) whose columns are the right-hand sides.

    Raises:
        ShapeError: if `a` is not square, or if `b` does not fit it.
        LinAlgError: if a matrix is singular.

    See also: `lstsq`, of any shape; `cho_solve`, with a Cholesky factor; `solve_triangular`, with a triangle.

    Example:
        >>> ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).tolist()
        [1.0, 1.0]
    """
    return linear.call_lapack(lapack.solve, [a, b])


@op
def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """Returns the x that satisfies `a @ x = b` for a triangular `a`; the other half of `a` is not read.

    Args:
        a: square matrices (..., n, n), of which one triangle is read.
        b: a vector (n,) for one right-hand side, or matrices (..., n, k) whose columns are the right-hand sides.
        lower: whether the lower triangle of `a` is read; else the upper one is.

    Raises:
        ShapeError: if `a` is not square, or if `b` does not fit it.
        LinAlgError: if the diagonal of `a` holds a zero.

    See also: `solve`, for any matrix; `cho_solve`, for a Cholesky factor.

    Example:
        >>> ops.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True).tolist()
        [1.0, 2.0]
    """
    shared_solver.check_sides(a, b)
    return solve(tril(a) if lower else triu(a), b)


@op(along="matrix", reads="data")
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Returns the lower triangular L with `x = L @ L^H`; only the lower half of `x` is read.

    Args:
        upper: whether to return the conjugate transpose of L instead.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if a matrix is not positive-definite, or not finite.

    See also: `cho_solve`, to solve with it; `cholesky_inverse`, the inverse; `lu_factor`, of any square matrix.

    Example:
        >>> ops.cholesky([[4.0, 0.0], [0.0, 9.0]]).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    return linear.call_lapack(lapack.cholesky, [x], upper)


@op(reads="checks")
def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """Returns the inverse of a matrix, given its Cholesky factor `x`.

    Args:
        x: Cholesky factors (..., n, n), triangles; integers become the default float.
        upper: whether the factor is upper triangular; by default it is lower triangular.

    Raises:
        ShapeError: if the factor is not square.
        LinAlgError: if the diagonal of the factor holds a zero.

    See also: `cholesky`, the factor; `inv`, of any matrix.

    Example:
        >>> ops.cholesky_inverse([[2.0, 0.0], [0.0, 1.0]]).tolist()
        [[0.25, 0.0], [0.0, 1.0]]
    """
    inverse_factor = solve_triangular(x, eye(x.shape[-1], dtype=as_inexact(dtype(x)), device=get_device(x)), not upper)
    inverse_adjoint = conj(matrix_transpose(inverse_factor))
    return (
        products.matmul(inverse_factor, inverse_adjoint) if upper else products.matmul(inverse_adjoint, inverse_factor)
    )


@op(along="matrix", reads="data")
def lu_factor(x: TensorLike) -> LUResult:
    """Returns the LU decomposition with partial pivoting, packed like in SciPy; a singular matrix has a zero in U.

    Dtype: pivots are int64.

    See also: `lu`, unpacked; `solve`, for a system.

    Example:
        >>> ops.lu_factor([[0.0, 1.0], [2.0, 4.0]]).LU.tolist()
        [[2.0, 4.0], [0.0, 1.0]]
    """
    return linear.call_lapack(lapack.lu_factor, [x])


@op(along="matrix", reads="data")
def qr(x: TensorLike, mode: Literal["reduced", "complete"] = "reduced", positive: bool = True) -> QRResult:
    """Returns Q and R with `x = Q @ R`.

    Args:
        x: matrices (..., m, n), real or complex; integers become the default float.
        mode: "reduced" gives Q as many columns as R has rows; "complete" makes Q square.
        positive: whether the diagonal of R is non-negative, so that a matrix of full rank has one result; False gives
            the signs of the library, which are those of LAPACK, as NumPy and PyTorch return them.

    Raises:
        ShapeError: if `x` has fewer than two axes.
        ArgumentError: if `mode` is unknown.

    See also: `lstsq`, for a system; `svd`, with singular values.
    """
    return linear.call_lapack(lapack.qr, [x], mode, positive)


@op(along="matrix", reads="data")
def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | Any:
    """Returns the singular value decomposition `x = U[..., :k] @ diag(S) @ Vh[..., :k, :]`.

    Shape: (..., m, n) to (..., m, m), (..., k) and (..., n, n), where k is the smaller of m and n. If `full_matrices`
    is False, then U is (..., m, k) and Vh is (..., k, n).

    Args:
        x: matrices (..., m, n), real or complex; integers become the default float.
        full_matrices: whether U and Vh are square; else they have as many columns, or rows, as there are singular
            values.
        compute_uv: whether to compute U and Vh; if not, the result is the tensor S alone, that of `svdvals`.

    Raises:
        ShapeError: if `x` has fewer than two axes.
        LinAlgError: if `x` holds NaN or infinities.

    See also: `svdvals`, the values alone; `eigh`, of Hermitian matrices; `pinv`, the pseudo-inverse.
    """
    return linear.call_lapack(lapack.svd_or_singular_values, [x], full_matrices, compute_uv)


@op
def svdvals(x: TensorLike) -> Tensor:
    """Returns the singular values in descending order.

    Args:
        x: matrices (..., m, n), real or complex; integers become the default float.

    Raises:
        ShapeError: if `x` has fewer than two axes.
        LinAlgError: if `x` holds NaN or infinities.

    See also: `svd`, with the vectors; `matrix_norm`, as a norm; `matrix_rank`, how many.

    Example:
        >>> ops.svdvals([[3.0, 0.0], [0.0, 4.0]]).tolist()
        [4.0, 3.0]
    """
    return svd(x, False).S


@op(along="matrix", reads="data")
def eigh(x: TensorLike) -> EigResult:
    """Returns the eigenvalues, ascending, and the eigenvectors of Hermitian matrices; only the lower half is read.

    Args:
        x: Hermitian matrices (..., n, n), of which the lower half is read; integers become the default float.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if the algorithm does not converge, or if the lower half holds NaN or infinities.

    See also: `eigvalsh`, the values alone; `eig`, of any square matrix.
    """
    return linear.call_lapack(lapack.eigh, [x])


@op
def eigvalsh(x: TensorLike) -> Tensor:
    """Returns the eigenvalues of Hermitian matrices in ascending order; only the lower half is read.

    Args:
        x: Hermitian matrices (..., n, n), of which the lower half is read; integers become the default float.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if the algorithm does not converge, or if the lower half holds NaN or infinities.

    See also: `eigh`, with the vectors; `eigvals`, of any square matrix.
    """
    return eigh(x).eigenvalues


@op(along="matrix", reads="data")
def eig(x: TensorLike) -> EigResult:
    """Returns the eigenvalues and eigenvectors of square matrices, in no particular order.

    Dtype: always complex. MLX has only complex64, so float64 gives complex64 there.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if a matrix holds NaN or infinities.

    See also: `eigvals`, the values alone; `eigh`, of Hermitian matrices.
    """
    return linear.call_lapack(lapack.eig, [x])


@op
def eigvals(x: TensorLike) -> Tensor:
    """Returns the eigenvalues of square matrices, in no particular order.

    Dtype: always complex. MLX has only complex64, so float64 gives complex64 there.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if a matrix holds NaN or infinities.

    See also: `eig`, with the vectors; `eigvalsh`, of Hermitian matrices.
    """
    return eig(x).eigenvalues


@op(reads="checks")
def pinv(x: TensorLike, rcond: Operand | None = None, *, rtol: Operand | None = None) -> Tensor:
    """Returns the Moore-Penrose pseudo-inverse.

    Its derivative is that of matrices of the same rank, whose singular values may repeat or be 0.

    Args:
        x: matrices (..., m, n), real or complex; integers become the default float.
        rcond: singular values up to `rcond` times the largest one count as zero; one number, or one for each matrix.
            The default is eps times the larger of the number of rows and columns.
        rtol: another name of `rcond`; None leaves the choice to `rcond`.

    Raises:
        ArgumentError: if both `rcond` and `rtol` are given.
        ShapeError: if `x` has fewer than two axes.
        LinAlgError: if `x` holds NaN or infinities.

    See also: `inv`, of regular matrices; `lstsq`, for a system.
    """
    pseudo_inverse = custom_gradient(_pseudo_inverse)(to_compute_dtype(x), _given_option("rcond", rcond, rtol))
    return cast(pseudo_inverse, as_inexact(dtype(x)))


@op(reads="checks")
def matrix_rank(x: TensorLike, tol: Operand | None = None, *, rtol: Operand | None = None) -> Tensor:
    """Returns the rank of matrices: the number of singular values above a bound (int64).

    Args:
        x: matrices (..., m, n), real or complex; integers become the default float.
        tol: the bound; one number, or one for each matrix. None leaves the choice to `rtol`.
        rtol: the bound divided by the largest singular value, by default that of `pinv`.

    Raises:
        ArgumentError: if both `tol` and `rtol` are given.
        ShapeError: if `x` has fewer than two axes.
        LinAlgError: if `x` holds NaN or infinities.

    See also: `svdvals`, the values that count.

    Example:
        >>> ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).tolist()
        1
    """
    singular_values = svdvals(to_compute_dtype(x))
    _given_option("tol", tol, rtol)
    return count_nonzero(
        greater(
            singular_values,
            _singular_value_bound(singular_values, x, rtol)
            if tol is None
            else _singular_bound(singular_values, 1.0, tol),
        ),
        -1,
    )


@op(reads="checks")
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> Tensor:
    """Returns the x of least norm that minimises `norm(a @ x - b)`.

    Args:
        a: matrices (..., m, n), real or complex; integers become the default float.
        b: a vector (m,) for one right-hand side, or matrices (..., m, k) whose columns are the right-hand sides.
        rcond: singular values up to `rcond` times the largest one count as zero; None is eps times the larger of m and
            n.

    Raises:
        ShapeError: if `a` has fewer than two axes, or if `b` does not fit it.
        LinAlgError: if `a` holds NaN or infinities.

    See also: `solve`, of square matrices; `pinv`, as a matrix.
    """
    x = products.matmul(pinv(a, rcond), expand_dims(b, -1) if len(b.shape) == 1 else b)
    return squeeze(x, -1) if len(b.shape) == 1 else x


@op(reads="checks")
def matrix_power(x: TensorLike, n: int) -> Tensor:
    """Returns the n-th power of square matrices; a negative n gives powers of the inverse.

    Dtype: that of `x`. Powers of integers are exact; for a negative `n`, integers become the default float.

    Args:
        x: square matrices (..., n, n), real or complex.
        n: the exponent, an integer; 0 gives identity matrices.

    Raises:
        ShapeError: if the matrices are not square.
        ArgumentTypeError: if `n` is not an integer.
        LinAlgError: if `n` is negative and a matrix is singular.

    See also: `expm`, the exponential; `power`, element by element.

    Example:
        >>> ops.matrix_power([[2, 0], [0, 3]], 2).tolist()
        [[4, 0], [0, 9]]
    """
    n = as_index(n)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"expected square matrices on the last two axes, got shape {tuple(x.shape)}")
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=dtype(x), device=get_device(x)), tuple(x.shape))
    base, n = (inv(x), -n) if n < 0 else (x, n)
    x_power: Any = None
    while n:
        if n & 1:
            x_power = base if x_power is None else products.matmul(x_power, base)
        n >>= 1
        base = products.matmul(base, base) if n else base
    return x_power


def to_compute_dtype(x: Tensor) -> Tensor:
    """Returns a tensor in the dtype it is computed in: integers in the default float, half precision in float32."""
    float_dtype = as_inexact(dtype(x))
    return cast(x, "float32" if float_dtype.bits == 16 else float_dtype)


def _given_option(name: str, value: object, rtol: object) -> Any:
    """Returns the one of two options that is given, or None.

    Raises:
        ArgumentError: if both are given.
    """
    if value is not None and rtol is not None:
        raise ArgumentError(f"expected {name} or rtol, got both; leave one of them out")
    return rtol if value is None else value


def _pseudo_inverse(x: Tensor, share: Any) -> tuple[Tensor, Any]:
    """Returns the pseudo-inverse and its gradient function.

    Source: Golub and Pereyra, The differentiation of pseudo-inverses, 1973.
    """
    u, s, vh = svd(x, False)
    is_significant = greater(s, _singular_value_bound(s, x, share))
    inverse_values = where(is_significant, divide(1.0, where(is_significant, s, 1.0)), 0.0)
    matmul_op = products.matmul

    def gradient(x: Tensor, share: Any, upstream: Tensor) -> tuple[Tensor, None]:
        pseudo_inverse = pinv(x, share)
        inverse_adjoint, cotangent = _adjoint(pseudo_inverse), _adjoint(upstream)
        phase_product = matmul_op(cotangent, pseudo_inverse)
        right_product = matmul_op(phase_product, inverse_adjoint)
        first_terms = subtract(
            subtract(right_product, matmul_op(matmul_op(x, pseudo_inverse), right_product)),
            _adjoint(matmul_op(pseudo_inverse, phase_product)),
        )
        return add(
            first_terms,
            matmul_op(matmul_op(inverse_adjoint, pseudo_inverse), subtract(cotangent, matmul_op(phase_product, x))),
        ), None

    return matmul_op(multiply(_adjoint(vh), expand_dims(inverse_values, -2)), _adjoint(u)), gradient


def _adjoint(x: Tensor) -> Tensor:
    return conj(matrix_transpose(x))


def _singular_value_bound(s: Tensor, x: Tensor, rtol: object) -> Tensor:
    """Returns the bound up to which the singular values `s` of `x` count as rounding errors."""
    largest_value = max(s, -1, initial=0.0)
    return _singular_bound(s, largest_value, finfo(dtype(s)).eps * sorted(x.shape[-2:])[-1] if rtol is None else rtol)


def _singular_bound(s: Tensor, unit: Any, share: Any) -> Tensor:
    """Returns `share` times `unit` on the device of `s`, with an axis to compare it with the singular values `s`."""
    if hasattr(share, "shape"):
        share = to_device(share, get_device(s))
    return expand_dims(to_device(multiply(unit, share), get_device(s)), -1)
