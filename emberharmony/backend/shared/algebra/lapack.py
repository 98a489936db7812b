"""Linear algebra on host arrays by NumPy's LAPACK, with the signs and errors that `ops/solver.py` documents.

The NumPy backend uses these functions directly, the MLX backend on memory that it shares with NumPy. They take float32,
float64, complex64 or complex128. Matrices are on the last two axes; the axes before them are batch axes.
"""

import math

import numpy as np

from emberharmony.backend.shared.arrays.shape import require_matrices
from emberharmony.backend.shared.solver import check_qr_mode, check_sides, not_finite_error, require_square
from emberharmony.core.errors import LinAlgError
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult

NEARLY = 0.999
"""Components of at least this fraction of the largest one count as equal to it, and the first of them fixes the sign.

So rounding errors do not change which component that is.
"""


def _adjoint(x: np.ndarray) -> np.ndarray:
    transposed = x.mT
    return np.conj(transposed) if x.dtype.kind == "c" else transposed


def have_clear_signs(sums: list[float]) -> bool:
    """Returns whether each sum, of a unit vector's largest and smallest component, exceeds `1 - NEARLY` in magnitude.

    No component is above 1. So if the sum exceeds 1 - NEARLY in magnitude, no component of the other sign is nearly as
    large as the largest one.
    """
    return min(map(abs, sums)) > 1 - NEARLY


def _phases(columns: np.ndarray) -> np.ndarray:
    """Returns, for each unit vector, the factor of magnitude 1 that makes its largest component positive."""
    if not columns.size:
        return np.ones((*columns.shape[:-2], 1, columns.shape[-1]), columns.dtype)
    if columns.ndim == 2 and columns.dtype.kind != "c":  # the calls below take 2 µs more
        extreme_sums = np.maximum.reduce(columns) + np.minimum.reduce(columns)
        if have_clear_signs(extreme_sums.tolist()):
            return np.sign(extreme_sums)[None]
    magnitudes = np.abs(columns)
    largest_indices = (magnitudes >= NEARLY * np.maximum.reduce(magnitudes, -2, keepdims=True)).argmax(
        -2, keepdims=True
    )
    if columns.ndim == 2:  # np.take_along_axis takes 4 µs more
        pivot_values = columns[largest_indices, np.arange(columns.shape[-1])]
    else:
        pivot_values = np.take_along_axis(columns, largest_indices, -2)
    return (
        np.conj(_signs(pivot_values))
        if columns.dtype.kind == "c"
        else np.copysign(1, pivot_values, dtype=columns.dtype)
    )


def _signs(x: np.ndarray) -> np.ndarray:
    """Returns `x / abs(x)`, but 1 for zero and NaN."""
    signs = np.sign(x)
    return np.where(np.abs(signs) > 0, signs, 1).astype(x.dtype, copy=False)


def _require_finite(x: np.ndarray) -> np.ndarray:
    """Returns a tensor of matrices, checked to be finite, because LAPACK's `gesdd` in NumPy 2.4 hangs on other ones.

    It does not react to Ctrl-C either. If the sum of squares is finite, all elements are, which takes a third of the
    time for few elements. If it is not, it may have overflowed, so the elements are checked. `flat_x.dot` would warn.

    Raises:
        LinAlgError: if a matrix has infinities or NaN.
    """
    flat_x = x.ravel("K")
    if not math.isfinite(np.vdot(flat_x, flat_x).real) and not np.isfinite(x).all():
        raise not_finite_error(x.shape)
    return x


def _require_finite_lower(x: np.ndarray) -> np.ndarray:
    """Returns a tensor of square matrices, checked to have finite lower triangles.

    Raises:
        LinAlgError: if a lower triangle has infinities or NaN.
        ShapeError: if the matrices are not square.
    """
    if not np.isfinite(require_square(x)).all():
        _require_finite(np.tril(x))
    return x


def det(x: np.ndarray) -> np.ndarray:
    """Returns the determinants of square matrices."""
    return np.linalg.det(require_square(x))


def slogdet(x: np.ndarray) -> SlogdetResult:
    """Returns the signs and logarithms of the magnitudes of determinants; the sign is NaN if the logarithm is."""
    sign, logarithm = np.linalg.slogdet(require_square(x))
    return SlogdetResult(np.where(np.isnan(logarithm), logarithm, sign).astype(x.dtype), logarithm)


def adjugate(x: np.ndarray) -> np.ndarray:
    """Returns the transposed matrices of cofactors: determinant times inverse, but defined for singular matrices too.

    For a matrix that is not finite it is NaN.
    """
    is_finite = np.isfinite(require_square(x)).all((-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(is_finite, x, 0))
    # For each singular value, multiply the others: nothing is divided by a singular value, so one may be 0.
    products_of_others = np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
    unit_determinant = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    adjugates = unit_determinant * (_adjoint(vh) * products_of_others[..., None, :].astype(x.dtype)) @ _adjoint(u)
    return np.where(is_finite, adjugates, np.nan).astype(x.dtype, copy=False)


def inv(x: np.ndarray) -> np.ndarray:
    """Returns the inverses of square matrices."""
    return np.linalg.inv(require_square(x))


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the solutions of systems of linear equations."""
    check_sides(a, b)
    return np.linalg.solve(a, b)


def solve_triangular(a: np.ndarray, b: np.ndarray, lower: bool = False) -> np.ndarray:
    """Returns the solutions of systems of linear equations whose matrices are triangular."""
    check_sides(a, b)
    return np.linalg.solve(np.tril(a) if lower else np.triu(a), b)


def cholesky(x: np.ndarray, upper: bool = False) -> np.ndarray:
    """Returns the Cholesky factors, lower or upper triangular, of positive-definite matrices.

    Raises:
        LinAlgError: if a matrix is not positive-definite.
        ShapeError: if the matrices are not square.
    """
    factor = np.linalg.cholesky(require_square(x))
    # LAPACK reports no error for matrices with NaN.
    if not np.isfinite(factor).all():
        raise LinAlgError("the matrix is not positive-definite")
    return _adjoint(factor) if upper else factor


def qr(x: np.ndarray, mode: str = "reduced", positive: bool = True) -> QRResult:
    """Returns the QR decompositions of matrices, by default with non-negative diagonals of R."""
    check_qr_mode(mode)
    q, r = np.linalg.qr(require_matrices(x), "complete" if mode == "complete" else "reduced")
    if not positive:
        return QRResult(q, r)
    signs = _signs(np.diagonal(r, 0, -2, -1))
    k = signs.shape[-1]
    q[..., :k] *= signs[..., None, :]
    r[..., :k, :] *= np.conj(signs)[..., None]
    return QRResult(q, np.triu(r))  # a negative sign makes -0.0 of the zeros below the diagonal


def svd(x: np.ndarray, full_matrices: bool = True) -> SVDResult:
    """Returns the singular value decompositions of matrices."""
    u, s, vh = np.linalg.svd(_require_finite(require_matrices(x)), full_matrices)
    fix_signs(u, vh, full_matrices)
    return SVDResult(u, s, vh)


def fix_signs(u: np.ndarray, vh: np.ndarray, full_matrices: bool) -> None:
    """Writes singular vectors over themselves, with the phases that make the largest component of each in U positive.

    Args:
        u, vh: the matrices of a singular value decomposition.
        full_matrices: whether they have more vectors than there are singular values.
    """
    if full_matrices:
        k = min(u.shape[-1], vh.shape[-2])
        u, vh = u[..., :k], vh[..., :k, :]
    phases = _phases(u)
    u *= phases
    vh *= _adjoint(phases)


def svd_or_singular_values(
    x: np.ndarray, full_matrices: bool = True, compute_uv: bool = True
) -> SVDResult | np.ndarray:
    """Returns the singular value decompositions of matrices, or only the singular values."""
    return svd(x, full_matrices) if compute_uv else svdvals(x)


def svdvals(x: np.ndarray) -> np.ndarray:
    """Returns the singular values of matrices."""
    return np.linalg.svdvals(_require_finite(require_matrices(x)))


def eigh(x: np.ndarray) -> EigResult:
    """Returns eigenvalues and eigenvectors of Hermitian matrices."""
    eigenvalues, eigenvectors = np.linalg.eigh(_require_finite_lower(x))
    return EigResult(eigenvalues, eigenvectors * _phases(eigenvectors))


def eigvalsh(x: np.ndarray) -> np.ndarray:
    """Returns eigenvalues of Hermitian matrices."""
    return np.linalg.eigvalsh(_require_finite_lower(x))


def eig(x: np.ndarray) -> EigResult:
    """Returns the eigenvalues and eigenvectors of square matrices, always complex."""
    # Do not cast real matrices to complex first: LAPACK's real kernel returns exact conjugate pairs of eigenvalues.
    eigenvalues, eigenvectors = np.linalg.eig(_require_finite(require_square(x)))
    complex_dtype = np.result_type(x.dtype, np.complex64)
    eigenvectors = eigenvectors.astype(complex_dtype, copy=False)
    return EigResult(eigenvalues.astype(complex_dtype, copy=False), eigenvectors * _phases(eigenvectors))


def eigvals(x: np.ndarray) -> np.ndarray:
    """Returns the eigenvalues of square matrices, always complex."""
    return np.linalg.eigvals(_require_finite(require_square(x))).astype(
        np.result_type(x.dtype, np.complex64), copy=False
    )


def lu_factor(x: np.ndarray) -> LUResult:
    """Returns the LU factors of matrices in one matrix, and for each step the row that was swapped with its own.

    NumPy has no LU decomposition.
    """
    lu = require_matrices(x).copy()
    k = min(lu.shape[-2:])
    pivots = np.zeros((*lu.shape[:-2], k), np.int64)
    for j in range(k):
        pivots[..., j] = j + np.abs(lu[..., j:, j]).argmax(-1)
        pivot_index = pivots[..., j, None, None]
        pivot_row = np.take_along_axis(lu, pivot_index, -2)
        np.put_along_axis(lu, pivot_index, lu[..., j : j + 1, :].copy(), -2)
        lu[..., j : j + 1, :] = pivot_row
        pivot_value = pivot_row[..., j : j + 1]
        # If the pivot is 0, the column below it is 0 too, so it may be divided by 1.
        lu[..., j + 1 :, j : j + 1] /= np.where(pivot_value == 0, 1, pivot_value)
        lu[..., j + 1 :, j + 1 :] -= lu[..., j + 1 :, j : j + 1] * pivot_row[..., j + 1 :]
    return LUResult(lu, pivots)


def row_order(pivots: np.ndarray, rows: int) -> np.ndarray:
    """Returns, for each row of the factors, which row of the matrix it is, by the swaps that `lu_factor` returns.

    Args:
        pivots: from `lu_factor`, (..., k).
        rows: the number of rows of the matrix.
    """
    permutation = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for j in range(pivots.shape[-1]):
        pivot_index = pivots[..., j : j + 1]
        pivot_rows = np.take_along_axis(permutation, pivot_index, -1)
        np.put_along_axis(permutation, pivot_index, permutation[..., j : j + 1].copy(), -1)
        permutation[..., j : j + 1] = pivot_rows
    return permutation
