"""Ops of `ops.linalg` that differ from the ops of the same name in `ops`: they use the last two axes."""

from __future__ import annotations

from typing import Literal

from emberharmony.core.dispatch import op
from emberharmony.core.options import as_number
from emberharmony.core.types import DTypeLike, Tensor, TensorLike
from emberharmony.ops.algebra.norms import matrix_norm
from emberharmony.ops.arrays.indexing import diagonal
from emberharmony.ops.math import divide, multiply
from emberharmony.ops.reductions.reduction import max, min, sum
from emberharmony.ops.solver import inv, svdvals


@op(reads="checks")
def linalg_cond(x: TensorLike, p: float | Literal["fro", "nuc"] | None = None) -> Tensor:
    """Returns the condition number `norm(x) * norm(inv(x))`; by the 2-norm, infinity for a singular matrix.

    Args:
        x: matrices (..., m, n), square unless the norm is 2 or -2; integers become the default float.
        p: the `ord` of `matrix_norm`; None is 2.

    Raises:
        ShapeError: if the shape does not suit the norm, or if there are no elements.
        ArgumentError: if `p` is unknown.
        LinAlgError: if `p` is 2 or -2 and a matrix holds NaN or infinities; for another `p`, if a matrix is singular.

    See also: `svdvals`, by which it is computed.

    Example:
        >>> ops.linalg.cond([[4.0, 0.0], [0.0, 2.0]]).tolist()
        2.0
    """
    if p is not None and not isinstance(p, str):
        p = as_number("p", p)
    if p not in (None, 2, -2):
        return multiply(matrix_norm(x, p), matrix_norm(inv(x), p))
    singular_values = svdvals(x)
    largest_value, smallest_value = max(singular_values, -1), min(singular_values, -1)
    return divide(smallest_value, largest_value) if p == -2 else divide(largest_value, smallest_value)


@op(view=True)
def linalg_diagonal(x: TensorLike, offset: int = 0) -> Tensor:
    """Returns a diagonal of the last two axes, as the last axis of the result.

    Args:
        x: matrices (..., m, n) of any dtype.
        offset: the diagonal: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    See also: `diagonal`, of any two axes.

    Example:
        >>> ops.linalg.diagonal([[1, 2], [3, 4]]).tolist()
        [1, 4]
    """
    return diagonal(x, offset, -2, -1)


@op
def linalg_trace(x: TensorLike, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the sum along a diagonal of the last two axes.

    Args:
        x: matrices (..., m, n) of any dtype.
        offset: the diagonal: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    See also: `trace`, of any two axes.

    Example:
        >>> ops.linalg.trace([[1, 2], [3, 4]]).tolist()
        5
    """
    return sum(diagonal(x, offset, -2, -1), -1, dtype=dtype)
