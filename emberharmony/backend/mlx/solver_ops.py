"""Linear algebra, on MLX: by NumPy's LAPACK, which reads MLX's memory without a copy, with derivatives (see `linear`).

The linear algebra of MLX 0.32 supports only the CPU and real numbers. A NaN (eig) or an empty matrix (inv) can end the
process, and a matrix that is not positive-definite (cholesky) raises no error. Only real determinants are computed by
MLX itself: they cannot fail, and stay lazy.
"""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.algebra import linear
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.math_ops import is_complex
from emberharmony.backend.shared.algebra import lapack
from emberharmony.backend.shared.solver import check_sides, inexact, square
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult


def _det(x: mx.array) -> mx.array:
    if x.dtype == mx.float32:
        return mx.linalg.det(x, stream=mx.cpu)
    # mx.linalg.det (MLX 0.32) computes float64 with the precision of float32, so use the diagonal of the LU factors.
    factors, pivots = mx.linalg.lu_factor(x, stream=mx.cpu)
    swapped = (pivots != mx.arange(x.shape[-1], dtype=pivots.dtype)).astype(x.dtype)
    return mx.prod(mx.diagonal(factors, 0, -2, -1) * (1 - 2 * swapped), -1)


def _slogdet(x: mx.array) -> tuple[mx.array, mx.array]:
    sign, logarithm = mx.linalg.slogdet(x, stream=mx.cpu)
    # If the determinant is NaN, so is its sign.
    return mx.where(mx.isnan(logarithm), logarithm, sign), logarithm


_lazy_det, _hosted_det = linear.smooth(_det, linear.det_moved), linear.lapack_function(lapack.det, linear.det_moved)
_lazy_slogdet = linear.smooth(_slogdet, linear.slogdet_moved)
_hosted_slogdet = linear.lapack_function(lapack.slogdet, linear.slogdet_moved)


def _is_lazy(x: mx.array) -> bool:
    """Returns whether MLX can compute the determinants of square matrices itself.

    Raises:
        ShapeError: if the matrices are not square.
    """
    return bool(square(x).size) and not is_complex(x)


def _solve_systems(solve: Callable[[mx.array, mx.array], mx.array], a: mx.array, b: mx.array) -> mx.array:
    """Returns the solutions of linear systems; a vector `b` is one right-hand side, and batches broadcast.

    Raises:
        ShapeError: if the matrices are not square, or the right-hand sides do not fit.
    """
    check_sides(a, b)
    columns = b[..., None] if b.ndim == 1 else b
    if a.shape[:-2] != columns.shape[:-2]:
        batch = mx.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
        a, columns = (mx.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, columns))
    result = solve(a, columns)
    return result[..., 0] if b.ndim == 1 else result


class MLXSolverOps:
    """Holds the ops of `ops/solver.py`.

    The bodies compute on the host, which has no gradient, in less time on the CPU; these stay lazy inside of `compile`
    and `vmap`, and have derivatives.
    """

    inv = staticmethod(inexact(promotion)(linear.inv))
    svdvals = staticmethod(inexact(promotion)(linear.svdvals))
    eigvalsh = staticmethod(inexact(promotion)(linear.eigvalsh))
    eigvals = staticmethod(inexact(promotion)(linear.eigvals))

    @staticmethod
    @inexact(promotion)
    def det(x: mx.array) -> mx.array:
        return _lazy_det(x) if _is_lazy(x) else _hosted_det(x)

    @staticmethod
    @inexact(promotion)
    def slogdet(x: mx.array) -> SlogdetResult:
        return SlogdetResult(*(_lazy_slogdet(x) if _is_lazy(x) else _hosted_slogdet(x)))

    @staticmethod
    @inexact(promotion, 2)
    def solve(a: mx.array, b: mx.array) -> mx.array:
        return _solve_systems(linear.solve, a, b)

    @staticmethod
    @inexact(promotion, 2)
    def solve_triangular(a: mx.array, b: mx.array, lower: bool = False) -> mx.array:
        return _solve_systems(linear.below if lower else linear.above, a, b)

    @staticmethod
    @inexact(promotion)
    def cholesky(x: mx.array, upper: bool = False) -> mx.array:
        factor = linear.cholesky(x)
        return linear.adjoint(factor) if upper else factor

    @staticmethod
    @inexact(promotion)
    def qr(x: mx.array, mode: str = "reduced") -> QRResult:
        return QRResult(*linear.qr(x, mode))

    @staticmethod
    @inexact(promotion)
    def svd(x: mx.array, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | mx.array:
        return SVDResult(*linear.svd(x, full_matrices)) if compute_uv else linear.svdvals(x)

    @staticmethod
    @inexact(promotion)
    def eigh(x: mx.array) -> EigResult:
        return EigResult(*linear.eigh(x))

    @staticmethod
    @inexact(promotion)
    def eig(x: mx.array) -> EigResult:
        return EigResult(*linear.eig(x))

    @staticmethod
    @inexact(promotion)
    def lu_factor(x: mx.array) -> LUResult:
        packed, pivots = linear.lu(x)
        return LUResult(packed, pivots)
