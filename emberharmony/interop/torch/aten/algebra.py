"""Linear algebra and Fourier transforms of ATen."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten

aten("inverse", "linalg_inv")(ops.inv)
aten("linalg_det", "det")(ops.det)
aten("linalg_matrix_power", "matrix_power")(ops.matrix_power)
aten("linalg_matrix_exp", "matrix_exp")(ops.linalg.expm)
aten("linalg_slogdet", "slogdet")(ops.slogdet)
aten("linalg_eigvalsh")(lambda x, UPLO="L": ops.eigvalsh(_lower(x, UPLO)))
aten("linalg_eig")(lambda x: tuple(ops.eig(x)))
aten("linalg_eigvals")(ops.eigvals)
aten("pinverse")(lambda x, rcond=1e-15: ops.pinv(x, rcond))


@aten("logdet")
def logdet(x: Any) -> Any:
    """Returns logarithms of determinants, NaN for negative ones."""
    sign, logarithm = ops.slogdet(x)
    return ops.where(ops.less(sign, 0), float("nan"), logarithm)


def _lower(x: Any, uplo: str) -> Any:
    """Returns matrices whose lower halves are those that PyTorch reads."""
    return x if uplo in ("L", "l") else ops.conj(ops.matrix_transpose(x))


@aten("cholesky_solve")
def cholesky_solve(x: Any, factor: Any, upper: bool = False) -> Any:
    """Returns the solutions of linear equations whose matrices have Cholesky factors."""
    lower = ops.conj(ops.matrix_transpose(factor)) if upper else factor
    first = ops.solve_triangular(lower, x, lower=True)
    return ops.solve_triangular(ops.conj(ops.matrix_transpose(lower)), first, lower=False)


aten("linalg_solve")(lambda x, other, left=True: _solve(x, other, left))


def _solve(x: Any, other: Any, left: bool) -> Any:
    if not left:
        return ops.matrix_transpose(_solve(ops.matrix_transpose(x), ops.matrix_transpose(other), True))
    if len(other.shape) == 1 or (len(other.shape) == len(x.shape) - 1 and other.shape == x.shape[:-1]):
        return ops.squeeze(ops.solve(x, ops.expand_dims(other, -1)), -1)
    return ops.solve(x, other)


@aten("linalg_inv_ex")
def inv_ex(x: Any, check_errors: bool = False) -> tuple[Any, Any]:
    """Returns inverses, and zeros for success."""
    return ops.inv(x), ops.zeros(tuple(x.shape[:-2]), "int32")


@aten("linalg_cholesky_ex")
def cholesky_ex(x: Any, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """Returns Cholesky factors, and zeros for success."""
    factor = ops.cholesky(x)
    return ops.matrix_transpose(ops.conj(factor)) if upper else factor, ops.zeros(tuple(x.shape[:-2]), "int32")


aten("cholesky", "linalg_cholesky")(lambda x, upper=False: cholesky_ex(x, upper)[0])


@aten("_linalg_det")
def linalg_det(x: Any) -> tuple[Any, Any, Any]:
    """Returns determinants; PyTorch adds a factorisation, which only its derivative uses."""
    return ops.det(x), x, ops.zeros(tuple(x.shape[:-1]), "int32")


@aten("_linalg_slogdet")
def linalg_slogdet(x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns the signs and the logarithms of the sizes of determinants, and what only PyTorch's derivative uses."""
    sign, logarithm = ops.slogdet(x)
    return sign, logarithm, x, ops.zeros(tuple(x.shape[:-1]), "int32")


@aten("_linalg_solve_ex")
def solve_ex(x: Any, other: Any, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    """Returns the solutions of linear equations, and what only PyTorch's derivative uses."""
    return _solve(x, other, left), x, ops.zeros(tuple(x.shape[:-1]), "int32"), ops.zeros(tuple(x.shape[:-2]), "int32")


@aten("_linalg_eigh")
def eigh(x: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Any, Any]:
    """Returns the eigenvalues and eigenvectors of Hermitian matrices."""
    values, vectors = ops.eigh(_lower(x, UPLO))
    return values, vectors


@aten("_linalg_svd")
def svd(x: Any, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None) -> tuple[Any, ...]:
    """Returns singular vectors and values."""
    if not compute_uv:
        nothing = ops.zeros((0,), ops.dtype(x))
        return nothing, ops.svdvals(x), nothing
    left, values, right = ops.svd(x, full_matrices)
    return left, values, right


@aten("linalg_qr")
def qr(x: Any, mode: str = "reduced") -> tuple[Any, Any]:
    """Returns QR factorisations."""
    q, r = ops.qr(x, mode)  # type: ignore[arg-type]
    return q, r


@aten("linalg_solve_triangular")
def solve_triangular(x: Any, other: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Returns the solutions of linear equations whose matrices are triangular."""
    if unitriangular:
        x = ops.add(ops.triu(x, 1) if upper else ops.tril(x, -1), ops.eye(x.shape[-1], dtype=ops.dtype(x)))
    if left:
        return ops.solve_triangular(x, other, lower=not upper)
    turned = ops.solve_triangular(ops.matrix_transpose(x), ops.matrix_transpose(other), lower=upper)
    return ops.matrix_transpose(turned)


_NORMS = ("backward", "ortho", "forward")
"""How transforms are scaled, by PyTorch's numbers for the forward transform."""


def _norm(normalization: int, forward: bool) -> Any:
    return _NORMS[normalization] if forward else _NORMS[2 - normalization]


@aten("_fft_c2c")
def fft_c2c(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """Returns Fourier transforms, or inverse ones."""
    return (ops.fftn if forward else ops.ifftn)(x, axes=tuple(dim), norm=_norm(normalization, forward))


@aten("_fft_r2c")
def fft_r2c(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """Returns Fourier transforms of real numbers."""
    function = ops.rfftn if onesided else ops.fftn
    return function(x, axes=tuple(dim), norm=_norm(normalization, True))


@aten("_fft_c2r")
def fft_c2r(x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    """Returns the real numbers of which complex ones are the one-sided Fourier transforms."""
    lengths = [x.shape[axis] for axis in dim[:-1]]
    return ops.irfftn(x, s=(*lengths, last_dim_size), axes=tuple(dim), norm=_norm(normalization, False))
