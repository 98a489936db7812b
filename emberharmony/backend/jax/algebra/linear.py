"""Decompositions with derivatives, on JAX, whose own lack some: of wide QR, full SVD and general eigenvectors.

Factors that are unique only up to phases get them in `backend/arrayapi`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.arrayapi.extensions import Factors
from emberharmony.backend.jax.algebra.products_ops import chosen_precision
from emberharmony.backend.jax.derivatives import Arrays, with_differential
from emberharmony.backend.jax.dtypes import is_complex
from emberharmony.backend.jax.standard_ops import STANDARD
from emberharmony.backend.shared.algebra.solver_derivatives import Differentials


def _divide_by_triangle(x: jax.Array, r: jax.Array) -> jax.Array:
    """Returns `x @ inv(triu(r))`, where only the leading square block of `r` counts."""
    return lax.linalg.triangular_solve(r[..., : x.shape[-1]], x, left_side=False, lower=False)


def _congruence_transform(factor: jax.Array, x: jax.Array) -> jax.Array:
    """Returns `inv(factor) @ x @ adjoint(inv(factor))`."""
    half_solved = lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)
    return lax.linalg.triangular_solve(
        factor, half_solved, left_side=False, lower=True, transpose_a=True, conjugate_a=is_complex(factor)
    )


_RULES = Differentials(
    jnp,
    is_complex,
    lax.stop_gradient,
    # A compiler may compute equal values to different digits, so take the diagonal, a value and itself, as equal.
    same=lambda gaps: (gaps == 0) | jnp.eye(gaps.shape[-1], dtype=bool),
    over=_divide_by_triangle,
    within=_congruence_transform,
    similar=lambda vectors, x: jnp.linalg.solve(vectors, jnp.matmul(x, vectors, precision=chosen_precision())),
)
adjoint = _RULES.adjoint
_FACTORS = Factors(STANDARD)


def _cholesky(x: jax.Array) -> jax.Array:
    factor: jax.Array = lax.linalg.cholesky(x, symmetrize_input=False)
    return jnp.tril(factor)


cholesky = jax.jit(with_differential(_cholesky, _RULES.cholesky))


_QR = {
    (mode, positive): jax.jit(
        with_differential(functools.partial(_FACTORS.qr_factors, mode=mode, positive=positive), _RULES.qr)
    )
    for mode in ("reduced", "complete")
    for positive in (True, False)
}


def qr(x: jax.Array, mode: str, positive: bool) -> Any:
    """Returns the factors Q and R; `mode` is "reduced" or "complete"."""
    return _QR[mode, bool(positive)](x)


_SVD = {
    full_matrices: jax.jit(
        with_differential(functools.partial(_FACTORS.svd_factors, full_matrices=full_matrices), _RULES.svd)
    )
    for full_matrices in (False, True)
}


def svd(x: jax.Array, full_matrices: bool) -> Any:
    """Returns the factors U and Vh of the singular value decomposition, and between them the singular values."""
    return _SVD[bool(full_matrices)](x)


def _svdvals_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    return (_RULES.singular_values(svd(primals[0], False), tangents[0]),)


svdvals = jax.jit(with_differential(lambda x: jnp.linalg.svd(x, compute_uv=False), _svdvals_tangent))


eigh = jax.jit(with_differential(_FACTORS.eigh_factors, _RULES.eigh))


eig = jax.jit(with_differential(_FACTORS.eig_factors, _RULES.eig))
