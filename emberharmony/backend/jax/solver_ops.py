"""Linear algebra, on JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.jax.algebra import linear
from emberharmony.backend.jax.dtypes import promotion
from emberharmony.backend.jax.tracing import bool_or_default
from emberharmony.backend.shared.arrays.shape import require_matrices
from emberharmony.backend.shared.solver import (
    cast_to_inexact,
    check_qr_mode,
    check_sides,
    not_finite_error,
    require_square,
)
from emberharmony.core.errors import LinAlgError
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult


def _require_finite(x: jax.Array, read: jax.Array | None = None) -> jax.Array:
    """Returns `x` after a check that its matrices, or the given parts of them, are finite, if values can be read.

    Raises:
        LinAlgError: if an element is infinite or NaN.
    """
    if not bool_or_default(jnp.isfinite(x if read is None else read).all(), True):
        raise not_finite_error(x.shape)
    return x


def _require_finite_lower(x: jax.Array) -> jax.Array:
    """Returns `x` after a check that its matrices are square and have finite lower triangles.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if an element on or below a diagonal is infinite or NaN.
    """
    return _require_finite(require_square(x), jnp.tril(x))


def _solution_if_invertible(a: jax.Array, solutions: jax.Array) -> jax.Array:
    """Returns the solution of linear systems after a check that the matrices are not singular, if values can be read.

    Raises:
        LinAlgError: if a matrix is singular.
    """
    if bool_or_default(jnp.isfinite(solutions).all(), True):
        return solutions
    factors = lax.linalg.lu(lax.stop_gradient(a))[0]
    if bool_or_default(jnp.any(jnp.diagonal(factors, 0, -2, -1) == 0), False):
        raise LinAlgError("Singular matrix")
    return solutions


def _broadcast_systems(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the matrices and the right-hand sides, as matrices, of linear systems with broadcast leading axes."""
    columns = b[..., None] if b.ndim == 1 else b
    batch_shape = jnp.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    return jnp.broadcast_to(a, (*batch_shape, *a.shape[-2:])), jnp.broadcast_to(
        columns, (*batch_shape, *columns.shape[-2:])
    )


class JAXSolverOps:
    """Holds the ops of `ops/solver.py`.

    The bodies compute on the host, which has no gradient and which no compiled program has; they take up to 7.3 times
    as long, for few elements.
    """

    @staticmethod
    @cast_to_inexact(promotion)
    def det(x: jax.Array) -> jax.Array:
        if not require_square(x).size:  # of which the derivative of JAX 0.10 reads an element
            return jnp.ones(x.shape[:-2], x.dtype)
        return jnp.linalg.det(x)

    @staticmethod
    @cast_to_inexact(promotion)
    def slogdet(x: jax.Array) -> SlogdetResult:
        sign, logarithm = jnp.linalg.slogdet(require_square(x))
        # If the determinant is NaN, so is its sign.
        return SlogdetResult(jnp.where(jnp.isnan(logarithm), jnp.nan, sign).astype(sign.dtype), logarithm)

    @staticmethod
    @cast_to_inexact(promotion)
    def inv(x: jax.Array) -> jax.Array:
        return _solution_if_invertible(x, jnp.linalg.inv(require_square(x)))

    @staticmethod
    @cast_to_inexact(promotion, 2)
    def solve(a: jax.Array, b: jax.Array) -> jax.Array:
        check_sides(a, b)
        a, columns = _broadcast_systems(a, b)
        solutions = _solution_if_invertible(a, jnp.linalg.solve(a, columns))
        return solutions[..., 0] if b.ndim == 1 else solutions

    @staticmethod
    @cast_to_inexact(promotion, 2)
    def solve_triangular(a: jax.Array, b: jax.Array, lower: bool = False) -> jax.Array:
        check_sides(a, b)
        if bool_or_default(jnp.any(jnp.diagonal(a, 0, -2, -1) == 0), False):
            raise LinAlgError("expected an invertible triangular matrix, got a singular one: its diagonal has a zero")
        a, columns = _broadcast_systems(a, b)
        solutions = lax.linalg.triangular_solve(a, columns, left_side=True, lower=bool(lower))
        return solutions[..., 0] if b.ndim == 1 else solutions

    @staticmethod
    @cast_to_inexact(promotion)
    def cholesky(x: jax.Array, upper: bool = False) -> jax.Array:
        factor = linear.cholesky(require_square(x))
        if not bool_or_default(jnp.isfinite(factor).all(), True):
            raise LinAlgError("expected a finite, positive-definite matrix; is it symmetric, or Hermitian?")
        return linear.adjoint(factor) if upper else factor

    @staticmethod
    @cast_to_inexact(promotion)
    def qr(x: jax.Array, mode: str = "reduced", positive: bool = True) -> QRResult:
        check_qr_mode(mode)
        return QRResult(*linear.qr(require_matrices(x), mode, positive))

    @staticmethod
    @cast_to_inexact(promotion)
    def svd(x: jax.Array, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | jax.Array:
        x = _require_finite(require_matrices(x))
        return SVDResult(*linear.svd(x, full_matrices)) if compute_uv else linear.svdvals(x)

    @staticmethod
    @cast_to_inexact(promotion)
    def svdvals(x: jax.Array) -> jax.Array:
        return linear.svdvals(_require_finite(require_matrices(x)))

    @staticmethod
    @cast_to_inexact(promotion)
    def eigh(x: jax.Array) -> EigResult:
        return EigResult(*linear.eigh(_require_finite_lower(x)))

    @staticmethod
    @cast_to_inexact(promotion)
    def eigvalsh(x: jax.Array) -> jax.Array:
        return linear.eigh(_require_finite_lower(x))[0]

    @staticmethod
    @cast_to_inexact(promotion)
    def eig(x: jax.Array) -> EigResult:
        return EigResult(*linear.eig(_require_finite(require_square(x))))

    @staticmethod
    @cast_to_inexact(promotion)
    def eigvals(x: jax.Array) -> jax.Array:
        return linear.eig(_require_finite(require_square(x)))[0]

    @staticmethod
    @cast_to_inexact(promotion)
    def lu_factor(x: jax.Array) -> LUResult:
        factors, pivots, _ = lax.linalg.lu(require_matrices(x))
        return LUResult(factors, pivots.astype(np.int64))
