"""Operators of ATen for linear algebra and Fourier transforms, computed by ops."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.interop.torch.aten.table import aten

aten("inverse", "linalg_inv")(ops.inv)
aten("linalg_det", "det")(ops.det)
aten("linalg_matrix_power", "matrix_power")(ops.matrix_power)
aten("linalg_matrix_exp", "matrix_exp")(ops.linalg.expm)
aten("linalg_slogdet", "slogdet")(ops.slogdet)
aten("linalg_eigvalsh")(lambda x, UPLO="L": ops.eigvalsh(_transpose_if_upper(x, UPLO)))
aten("linalg_eig")(lambda x: tuple(ops.eig(x)))
aten("linalg_eigvals")(ops.eigvals)
aten("pinverse")(lambda x, rcond=1e-15: ops.pinv(x, rcond))


@aten("logdet")
def logdet(x: Any) -> Any:
    """Returns the logarithms of the determinants of matrices; NaN for negative determinants."""
    sign, logarithm = ops.slogdet(x)
    return ops.where(ops.less(sign, 0), float("nan"), logarithm)


def _transpose_if_upper(x: Any, uplo: str) -> Any:
    """Returns matrices with the triangle that PyTorch reads, named by `uplo`, as their lower triangle."""
    return x if uplo in ("L", "l") else ops.conj(ops.matrix_transpose(x))


@aten("cholesky_solve")
def cholesky_solve(x: Any, factor: Any, upper: bool = False) -> Any:
    """Returns the solutions of linear equations, given the Cholesky factors of their matrices."""
    lower_factor = ops.conj(ops.matrix_transpose(factor)) if upper else factor
    forward_solution = ops.solve_triangular(lower_factor, x, lower=True)
    return ops.solve_triangular(ops.conj(ops.matrix_transpose(lower_factor)), forward_solution, lower=False)


aten("linalg_solve")(lambda x, other, left=True: _solve(x, other, left))


def _solve(x: Any, other: Any, left: bool) -> Any:
    if not left:
        return ops.matrix_transpose(_solve(ops.matrix_transpose(x), ops.matrix_transpose(other), True))
    if len(other.shape) == 1 or (len(other.shape) == len(x.shape) - 1 and other.shape == x.shape[:-1]):
        return ops.squeeze(ops.solve(x, ops.expand_dims(other, -1)), -1)
    return ops.solve(x, other)


@aten("linalg_inv_ex")
def inv_ex(x: Any, check_errors: bool = False) -> tuple[Any, Any]:
    """Returns the inverses of matrices, and zeros as error codes."""
    return ops.inv(x), ops.zeros(tuple(x.shape[:-2]), "int32")


@aten("linalg_cholesky_ex")
def cholesky_ex(x: Any, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """Returns the Cholesky factors of matrices, and zeros as error codes."""
    factor = ops.cholesky(x)
    return ops.matrix_transpose(ops.conj(factor)) if upper else factor, ops.zeros(tuple(x.shape[:-2]), "int32")


aten("cholesky", "linalg_cholesky")(lambda x, upper=False: cholesky_ex(x, upper)[0])


@aten("_linalg_det")
def linalg_det(x: Any) -> tuple[Any, Any, Any]:
    """Returns the determinants of matrices, and placeholders for the LU factors that PyTorch returns with them."""
    return ops.det(x), x, ops.zeros(tuple(x.shape[:-1]), "int32")


@aten("_linalg_slogdet")
def linalg_slogdet(x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns the signs and log magnitudes of determinants, and placeholders for the LU factors of PyTorch."""
    sign, logarithm = ops.slogdet(x)
    return sign, logarithm, x, ops.zeros(tuple(x.shape[:-1]), "int32")


@aten("_linalg_solve_ex")
def solve_ex(x: Any, other: Any, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    """Returns the solutions of linear equations, and placeholders for the factors that PyTorch returns with them."""
    return _solve(x, other, left), x, ops.zeros(tuple(x.shape[:-1]), "int32"), ops.zeros(tuple(x.shape[:-2]), "int32")


@aten("_linalg_eigh")
def eigh(x: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Any, Any]:
    """Returns the eigenvalues and eigenvectors of Hermitian matrices."""
    eigenvalues, eigenvectors = ops.eigh(_transpose_if_upper(x, UPLO))
    return eigenvalues, eigenvectors


@aten("_linalg_svd")
def svd(x: Any, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None) -> tuple[Any, ...]:
    """Returns the singular value decompositions of matrices: left vectors, values, and right vectors."""
    if not compute_uv:
        empty_tensor = ops.zeros((0,), ops.dtype(x))
        return empty_tensor, ops.svdvals(x), empty_tensor
    u, singular_values, vh = ops.svd(x, full_matrices)
    return u, singular_values, vh


@aten("linalg_qr")
def qr(x: Any, mode: str = "reduced") -> tuple[Any, Any]:
    """Returns the QR decompositions of matrices: Q and R."""
    q, r = ops.qr(x, mode, positive=False)  # type: ignore[arg-type]
    return q, r


@aten("linalg_solve_triangular")
def solve_triangular(x: Any, other: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Returns the solutions of linear equations with triangular matrices."""
    if unitriangular:
        x = ops.add(ops.triu(x, 1) if upper else ops.tril(x, -1), ops.eye(x.shape[-1], dtype=ops.dtype(x)))
    if left:
        return ops.solve_triangular(x, other, lower=not upper)
    transposed_solution = ops.solve_triangular(ops.matrix_transpose(x), ops.matrix_transpose(other), lower=upper)
    return ops.matrix_transpose(transposed_solution)


_NORMS = ("backward", "ortho", "forward")
"""The scaling modes of Fourier transforms, indexed by PyTorch's numbers for the forward transform."""


def _fft_norm(normalization: int, forward: bool) -> Any:
    return _NORMS[normalization] if forward else _NORMS[2 - normalization]


@aten("_fft_c2c")
def fft_c2c(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """Returns the discrete Fourier transform of complex numbers over axes, or the inverse transform."""
    return (ops.fftn if forward else ops.ifftn)(x, axes=tuple(dim), norm=_fft_norm(normalization, forward))


@aten("_fft_r2c")
def fft_r2c(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """Returns the discrete Fourier transform of real numbers over axes, one-sided or whole."""
    transform = ops.rfftn if onesided else ops.fftn
    return transform(x, axes=tuple(dim), norm=_fft_norm(normalization, True))


@aten("_fft_c2r")
def fft_c2r(x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    """Returns the inverse Fourier transform of one-sided complex spectra: real numbers."""
    output_lengths = [x.shape[axis] for axis in dim[:-1]]
    return ops.irfftn(x, s=(*output_lengths, last_dim_size), axes=tuple(dim), norm=_fft_norm(normalization, False))


@aten("cholesky_inverse")
def cholesky_inverse(x: Any, upper: bool = False) -> Any:
    """Returns the inverses of matrices, given their Cholesky factors."""
    return cholesky_solve(ops.eye(x.shape[-1], dtype=ops.dtype(x)), x, upper)


@aten("linalg_lu_factor_ex")
def lu_factor_ex(x: Any, pivot: bool = True, check_errors: bool = False) -> tuple[Any, Any, Any]:
    """Returns the LU factors of matrices packed into one matrix each, the pivots from 1 on, and zeros as error codes.

    Raises:
        UnsupportedOpError: without pivoting.
    """
    if not pivot:
        raise UnsupportedOpError("an LU decomposition without pivoting: decompose with pivot=True")
    # The packed matrix is made of the factors of `ops.lu`, which has a derivative; the pivots need none.
    _, lower, upper = ops.lu(x)
    n = min(x.shape[-2:])
    lower_part = ops.pad(ops.tril(lower, -1), [*[(0, 0)] * (len(x.shape) - 1), (0, x.shape[-1] - n)])
    upper_part = ops.pad(upper, [*[(0, 0)] * (len(x.shape) - 2), (0, x.shape[-2] - n), (0, 0)])
    pivots = ops.lu_factor(ops.stop_gradient(x))[1]
    return (
        ops.add(lower_part, upper_part),
        ops.cast(ops.add(pivots, 1), "int32"),
        ops.zeros(tuple(x.shape[:-2]), "int32"),
    )


@aten("linalg_lu")
def lu(x: Any, pivot: bool = True) -> tuple[Any, Any, Any]:
    """Returns the LU decompositions of matrices: permutation matrices, lower and upper factors.

    Raises:
        UnsupportedOpError: without pivoting.
    """
    if not pivot:
        raise UnsupportedOpError("an LU decomposition without pivoting: decompose with pivot=True")
    permutation, lower, upper = ops.lu(x)
    return permutation, lower, upper


def _row_order_of_pivots(pivots: Any, size: int) -> Any:
    """Returns the order of rows after the row exchanges that pivots, counted from 1, describe."""
    row_order = ops.broadcast_to(ops.arange(size), (*pivots.shape[:-1], size))
    positions = ops.arange(size)
    for i in range(pivots.shape[-1]):
        pivot_index = ops.subtract(ops.cast(pivots[..., i : i + 1], "int64"), 1)
        row_at_pivot = ops.take_along_axis(row_order, pivot_index, axis=-1)
        row_order = ops.where(
            ops.equal(positions, pivot_index),
            row_order[..., i : i + 1],
            ops.where(ops.equal(positions, i), row_at_pivot, row_order),
        )
    return row_order


@aten("lu_unpack")
def lu_unpack(x: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Any, Any, Any]:
    """Returns permutation matrices, lower and upper factors from packed LU factors and pivots."""
    n = min(x.shape[-2:])
    empty_tensor = ops.zeros((0,), ops.dtype(x))
    row_order = _row_order_of_pivots(pivots, x.shape[-2])
    identity = ops.eye(x.shape[-2], dtype=ops.dtype(x))
    permutation = ops.matrix_transpose(ops.take(identity, row_order, axis=0)) if unpack_pivots else empty_tensor
    if not unpack_data:
        return permutation, empty_tensor, empty_tensor
    lower = ops.add(ops.tril(x[..., :n], -1), ops.eye(x.shape[-2], n, dtype=ops.dtype(x)))
    return permutation, lower, ops.triu(x[..., :n, :])


@aten("linalg_lu_solve")
def lu_solve(x: Any, pivots: Any, other: Any, left: bool = True, adjoint: bool = False) -> Any:
    """Returns the solutions of linear equations, given the packed LU factors and pivots of their matrices."""
    permutation, lower, upper = lu_unpack(x, pivots)
    matrix = ops.matmul(permutation, ops.matmul(lower, upper))
    return _solve(ops.conj(ops.matrix_transpose(matrix)) if adjoint else matrix, other, left)


@aten("triangular_solve")
def triangular_solve(
    x: Any, matrix: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    """Returns the solutions of linear equations with triangular matrices, and these matrices."""
    triangle = ops.triu(matrix) if upper else ops.tril(matrix)
    coefficients = ops.matrix_transpose(triangle) if transpose else triangle
    return solve_triangular(coefficients, x, upper != transpose, True, unitriangular), matrix


@aten("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def pinv(x: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Returns pseudo-inverses; singular values below `rtol` times the largest, or below `atol`, count as 0."""
    if x.shape[-1] == 0 or x.shape[-2] == 0:
        return ops.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), ops.dtype(x))
    if hermitian:
        x = ops.add(ops.tril(x), ops.conj(ops.matrix_transpose(ops.tril(x, -1))))
    if atol is None:
        return ops.pinv(x, rtol=rtol)
    largest_singular_value = ops.stop_gradient(ops.svdvals(x))[..., 0]
    relative_atol = ops.divide(atol, ops.where(ops.equal(largest_singular_value, 0), 1, largest_singular_value))
    if rtol is None:
        rtol = ops.where(ops.greater(atol, 0), 0.0, max(x.shape[-2:]) * ops.finfo(ops.dtype(x)).eps)
    return ops.pinv(x, rtol=ops.maximum(relative_atol, rtol))
