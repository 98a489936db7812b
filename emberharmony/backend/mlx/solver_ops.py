"""Linear algebra, on MLX: by NumPy's LAPACK, which reads MLX's memory without a copy, with derivatives (see `linear`).

The linear algebra of MLX 0.32 supports only the CPU and real numbers. A NaN (eig) or an empty matrix (inv) can end the
process, and a matrix that is not positive-definite (cholesky) raises no error. Only real determinants are computed by
MLX itself: they cannot fail, and stay lazy.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.shared.solver import cast_to_inexact, check_sides
from emberharmony.core.deferred import Deferred
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult

if TYPE_CHECKING:
    from emberharmony.backend.mlx.algebra import linear
else:
    linear = Deferred("emberharmony.backend.mlx.algebra.linear")


def _solve_systems(solve: Callable[[mx.array, mx.array], mx.array], a: mx.array, b: mx.array) -> mx.array:
    """Returns the solutions of linear systems; a vector `b` is one right-hand side, and batches broadcast.

    Raises:
        ShapeError: if the matrices are not square, or the right-hand sides do not fit.
    """
    check_sides(a, b)
    columns = b[..., None] if b.ndim == 1 else b
    if a.shape[:-2] != columns.shape[:-2]:
        batch_shape = mx.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
        a, columns = (mx.broadcast_to(x, (*batch_shape, *x.shape[-2:])) for x in (a, columns))
    solutions = solve(a, columns)
    return solutions[..., 0] if b.ndim == 1 else solutions


class MLXSolverOps:
    """Holds the ops of `ops/solver.py`.

    The bodies compute on the host, which has no gradient, in less time on the CPU; these stay lazy inside of `compile`
    and `vmap`, and have derivatives.
    """

    inv = staticmethod(cast_to_inexact(promotion)(lambda x: linear.inv(x)))
    svdvals = staticmethod(cast_to_inexact(promotion)(lambda x: linear.svdvals(x)))
    eigvalsh = staticmethod(cast_to_inexact(promotion)(lambda x: linear.eigvalsh(x)))
    eigvals = staticmethod(cast_to_inexact(promotion)(lambda x: linear.eigvals(x)))

    @staticmethod
    @cast_to_inexact(promotion)
    def det(x: mx.array) -> mx.array:
        return linear.det(x)

    @staticmethod
    @cast_to_inexact(promotion)
    def slogdet(x: mx.array) -> SlogdetResult:
        return SlogdetResult(*linear.slogdet(x))

    @staticmethod
    @cast_to_inexact(promotion, 2)
    def solve(a: mx.array, b: mx.array) -> mx.array:
        return _solve_systems(linear.solve, a, b)

    @staticmethod
    @cast_to_inexact(promotion, 2)
    def solve_triangular(a: mx.array, b: mx.array, lower: bool = False) -> mx.array:
        return _solve_systems(linear.solve_lower if lower else linear.solve_upper, a, b)

    @staticmethod
    @cast_to_inexact(promotion)
    def cholesky(x: mx.array, upper: bool = False) -> mx.array:
        factor = linear.cholesky(x)
        return linear.adjoint(factor) if upper else factor

    @staticmethod
    @cast_to_inexact(promotion)
    def qr(x: mx.array, mode: str = "reduced", positive: bool = True) -> QRResult:
        return QRResult(*linear.qr(x, mode, positive))

    @staticmethod
    @cast_to_inexact(promotion)
    def svd(x: mx.array, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | mx.array:
        return SVDResult(*linear.svd(x, full_matrices)) if compute_uv else linear.svdvals(x)

    @staticmethod
    @cast_to_inexact(promotion)
    def eigh(x: mx.array) -> EigResult:
        return EigResult(*linear.eigh(x))

    @staticmethod
    @cast_to_inexact(promotion)
    def eig(x: mx.array) -> EigResult:
        return EigResult(*linear.eig(x))

    @staticmethod
    @cast_to_inexact(promotion)
    def lu_factor(x: mx.array) -> LUResult:
        packed, pivots = linear.lu(x)
        return LUResult(packed, pivots)
