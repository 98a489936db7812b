"""Linear algebra by the array API standard's names; where they differ from `ops`, the last two axes count."""

from __future__ import annotations

from typing import Literal

from emberharmony.core.dispatch import op
from emberharmony.core.types import DTypeLike, Tensor, TensorLike
from emberharmony.ops.indexing import diagonal as _diagonal
from emberharmony.ops.math import divide, multiply
from emberharmony.ops.norms import matrix_norm as matrix_norm
from emberharmony.ops.norms import norm as norm
from emberharmony.ops.norms import vector_norm as vector_norm
from emberharmony.ops.products import cross as cross
from emberharmony.ops.products import matmul as matmul
from emberharmony.ops.products import multi_dot as multi_dot
from emberharmony.ops.products import outer as outer
from emberharmony.ops.products import tensordot as tensordot
from emberharmony.ops.products import vecdot as vecdot
from emberharmony.ops.reduction import max, min, sum
from emberharmony.ops.shape import matrix_transpose as matrix_transpose
from emberharmony.ops.solver import cholesky as cholesky
from emberharmony.ops.solver import cholesky_inverse as cholesky_inverse
from emberharmony.ops.solver import det as det
from emberharmony.ops.solver import eig as eig
from emberharmony.ops.solver import eigh as eigh
from emberharmony.ops.solver import eigvals as eigvals
from emberharmony.ops.solver import eigvalsh as eigvalsh
from emberharmony.ops.solver import inv as inv
from emberharmony.ops.solver import lstsq as lstsq
from emberharmony.ops.solver import lu_factor as lu_factor
from emberharmony.ops.solver import matrix_power as matrix_power
from emberharmony.ops.solver import matrix_rank as matrix_rank
from emberharmony.ops.solver import pinv as pinv
from emberharmony.ops.solver import qr as qr
from emberharmony.ops.solver import slogdet as slogdet
from emberharmony.ops.solver import solve as solve
from emberharmony.ops.solver import solve_triangular as solve_triangular
from emberharmony.ops.solver import svd as svd
from emberharmony.ops.solver import svdvals as svdvals


@op
def linalg_cond(x: TensorLike, p: float | Literal["fro", "nuc"] | None = None) -> Tensor:
    """Returns the condition number `norm(x) * norm(inv(x))`, by the 2-norm inf for a singular matrix.

    Args:
        p: see `ord` of `matrix_norm`; None is 2.

    Raises: ShapeError, also without elements; ArgumentError for another `p`; LinAlgError for a singular matrix unless p
    is 2 or -2, and then for NaN and infinities.

    Example:
        >>> ops.linalg.cond([[4.0, 0.0], [0.0, 2.0]]).tolist()
        2.0
    """
    if p not in (None, 2, -2):
        return multiply(matrix_norm(x, p), matrix_norm(inv(x), p))
    s = svdvals(x)
    largest, least = max(s, -1), min(s, -1)
    return divide(least, largest) if p == -2 else divide(largest, least)


@op
def linalg_diagonal(x: TensorLike, offset: int = 0) -> Tensor:
    """Returns a diagonal of the last two axes, as the last axis of the result.

    Example:
        >>> ops.linalg.diagonal([[1, 2], [3, 4]]).tolist()
        [1, 4]
    """
    return _diagonal(x, offset, -2, -1)


@op
def linalg_trace(x: TensorLike, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the sum of a diagonal of the last two axes.

    Example:
        >>> ops.linalg.trace([[1, 2], [3, 4]]).tolist()
        5
    """
    return sum(_diagonal(x, offset, -2, -1), -1, dtype=dtype)


cond = linalg_cond
diagonal = linalg_diagonal
trace = linalg_trace
