"""Decompositions with derivatives, on JAX, whose own lack some: of wide QR, full SVD and general eigenvectors.

Factors that are unique only up to phases get the phases that `shared.lapack` chooses.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.derivatives import Arrays, differentiated
from emberharmony.backend.jax.dtypes import is_complex
from emberharmony.backend.shared.solver_derivatives import Differentials


def _over(x: jax.Array, r: jax.Array) -> jax.Array:
    """Returns `x @ inv(triu(r))`, where only the leading square block of `r` counts."""
    return lax.linalg.triangular_solve(r[..., : x.shape[-1]], x, left_side=False, lower=False)


def _within(factor: jax.Array, x: jax.Array) -> jax.Array:
    """Returns `inv(factor) @ x @ adjoint(inv(factor))`."""
    half = lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)
    return lax.linalg.triangular_solve(
        factor, half, left_side=False, lower=True, transpose_a=True, conjugate_a=is_complex(factor)
    )


_RULES = Differentials(
    jnp,
    is_complex,
    lax.stop_gradient,
    # A compiler may compute the two values to different digits, so do not compare a value with itself.
    same=lambda gaps: (gaps == 0) | jnp.eye(gaps.shape[-1], dtype=bool),
    over=_over,
    within=_within,
    similar=lambda vectors, x: jnp.linalg.solve(vectors, x @ vectors),
)
adjoint = _RULES.adjoint


def _signs(x: jax.Array) -> jax.Array:
    """Returns the sign or phase of numbers, a factor of magnitude 1; 1 for zero."""
    signs = jnp.sign(x)
    return jnp.where(signs == 0, jnp.ones_like(signs), signs)


def _phases(columns: jax.Array) -> jax.Array:
    """Returns, for each column, the factor of magnitude 1 that makes its largest component positive."""
    return jnp.conj(_signs(jnp.take_along_axis(columns, _RULES.first_largest(columns), -2)))


def _cholesky(x: jax.Array) -> jax.Array:
    factor: jax.Array = lax.linalg.cholesky(x, symmetrize_input=False)
    return jnp.tril(factor)


cholesky = jax.jit(differentiated(_cholesky, _RULES.cholesky))


def _qr(mode: str, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    q, r = jnp.linalg.qr(x, mode=mode)
    # QR is unique only up to signs, or phases; choose those that make the diagonal of R positive.
    signs = _signs(_RULES.diagonal(r))
    extra = jnp.ones((*signs.shape[:-1], q.shape[-1] - signs.shape[-1]), signs.dtype)
    signs = jnp.concatenate([signs, extra], -1)
    # A negative sign makes -0.0 of the zeros below the diagonal.
    return q * signs[..., None, :], jnp.triu(r * jnp.conj(signs)[..., :, None])


_BY_MODE = {mode: jax.jit(differentiated(functools.partial(_qr, mode), _RULES.qr)) for mode in ("reduced", "complete")}


def qr(x: jax.Array, mode: str) -> Any:
    """Returns the factors Q and R; `mode` is "reduced" or "complete"."""
    return _BY_MODE[mode](x)


def _svd(full: bool, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    u, s, vh = jnp.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    # Singular vectors are unique only up to a common phase; choose it so that the backends agree.
    phases = _phases(u[..., :k])
    u = jnp.concatenate([u[..., :k] * phases, u[..., k:]], -1)
    return u, s, jnp.concatenate([vh[..., :k, :] * adjoint(phases), vh[..., k:, :]], -2)


_SVD = {full: jax.jit(differentiated(functools.partial(_svd, full), _RULES.svd)) for full in (False, True)}


def svd(x: jax.Array, full_matrices: bool) -> Any:
    """Returns the factors U and Vh of the singular value decomposition, and between them the singular values."""
    return _SVD[bool(full_matrices)](x)


def _svdvals_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    return (_RULES.singular_values(svd(primals[0], False), tangents[0]),)


svdvals = jax.jit(differentiated(lambda x: jnp.linalg.svd(x, compute_uv=False), _svdvals_moved))


def _eigh(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(x, "L", symmetrize_input=False)
    return values, vectors * _phases(vectors)


eigh = jax.jit(differentiated(_eigh, _RULES.eigh))


def _eig(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eig(x)
    return values, vectors * _phases(vectors)


eig = jax.jit(differentiated(_eig, _RULES.eig))
