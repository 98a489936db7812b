"""Decompositions with derivatives, on JAX, whose own lack some: of wide QR, full SVD and general eigenvectors.

The differential of a function `f` is `_f_moved` (see `derivatives.Differential`). Factors that are unique only up to
phases get the phases that `shared.lapack` chooses, and the differentials keep them. The differentials are right where
the factors are unique: singular values and eigenvalues are distinct, and matrices have full rank.

Source: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); for complex factors Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.derivatives import Arrays, differentiated
from emberharmony.backend.jax.dtypes import is_complex
from emberharmony.backend.shared import lapack
from emberharmony.core.errors import UnsupportedOpError


def adjoint(x: jax.Array) -> jax.Array:
    """Returns the conjugate transpose of matrices."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _hermitian(x: jax.Array) -> jax.Array:
    return (x + adjoint(x)) / 2


def _diagonal(x: jax.Array) -> jax.Array:
    return jnp.diagonal(x, 0, -2, -1)


def _as_matrix(diagonal: jax.Array) -> jax.Array:
    return diagonal[..., None] * jnp.eye(diagonal.shape[-1], dtype=diagonal.dtype)


def _imaginary(x: jax.Array) -> jax.Array:
    """Returns the imaginary part of complex numbers times i, as complex numbers."""
    return x - jnp.real(x)


def _signs(x: jax.Array) -> jax.Array:
    """Returns the sign or phase of numbers, a factor of magnitude 1; 1 for zero."""
    signs = jnp.sign(x)
    return jnp.where(signs == 0, jnp.ones_like(signs), signs)


def _first_largest(columns: jax.Array) -> jax.Array:
    """Returns the row of the first of the nearly largest components of each column."""
    sizes = jnp.abs(columns)
    return jnp.argmax(sizes >= lapack.NEARLY * jnp.max(sizes, -2, keepdims=True), -2, keepdims=True)


def _phases(columns: jax.Array) -> jax.Array:
    """Returns, for each column, the factor of magnitude 1 that makes its largest component positive."""
    return jnp.conj(_signs(jnp.take_along_axis(columns, _first_largest(columns), -2)))


def _over(r: jax.Array, x: jax.Array) -> jax.Array:
    """Returns `x @ inv(triu(r))`."""
    return lax.linalg.triangular_solve(r, x, left_side=False, lower=False)


def _cholesky(x: jax.Array) -> jax.Array:
    factor: jax.Array = lax.linalg.cholesky(x, symmetrize_input=False)
    return jnp.tril(factor)


def _cholesky_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    (factor,) = outputs
    half = lax.linalg.triangular_solve(factor, _hermitian(tangents[0]), left_side=True, lower=True)
    inner = lax.linalg.triangular_solve(
        factor, half, left_side=False, lower=True, transpose_a=True, conjugate_a=is_complex(factor)
    )
    return (factor @ (jnp.tril(inner, -1) + _as_matrix(_diagonal(inner) / 2)),)


cholesky = jax.jit(differentiated(_cholesky, _cholesky_moved))


def _qr(mode: str, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    q, r = jnp.linalg.qr(x, mode=mode)
    # QR is unique only up to signs, or phases; choose those that make the diagonal of R positive.
    signs = _signs(_diagonal(r))
    extra = jnp.ones((*signs.shape[:-1], q.shape[-1] - signs.shape[-1]), signs.dtype)
    signs = jnp.concatenate([signs, extra], -1)
    return q * signs[..., None, :], r * jnp.conj(signs)[..., :, None]


def _qr_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    q, r = outputs
    k = min(r.shape[-2:])
    if q.shape[-1] > k:
        raise UnsupportedOpError(
            "the additional columns of Q in mode 'complete' are arbitrary and have no derivative; use mode 'reduced'"
        )
    square = r[..., :k]
    scaled = _over(square, tangents[0][..., :k])
    inner = adjoint(q) @ scaled
    lower = jnp.tril(inner, -1)
    turn = lower - adjoint(lower)
    if is_complex(inner):
        # The diagonal of R must stay real.
        turn = turn + _as_matrix(_imaginary(_diagonal(inner)))
    grown = jnp.triu(inner - turn)
    beside = adjoint(q) @ tangents[0][..., k:] - turn @ r[..., k:] if r.shape[-1] > k else r[..., k:]
    return scaled - q @ grown, jnp.concatenate([grown @ square, beside], -1)


_BY_MODE = {mode: jax.jit(differentiated(functools.partial(_qr, mode), _qr_moved)) for mode in ("reduced", "complete")}


def qr(x: jax.Array, mode: str) -> Any:
    """Returns the factors Q and R; `mode` is "reduced" or "complete"."""
    return _BY_MODE[mode](x)


def _gaps(values: jax.Array) -> jax.Array:
    """Returns `1 / (values[j] - values[i])` as a matrix, and 0 where the two are equal."""
    gaps = values[..., None, :] - values[..., :, None]
    # A compiler may compute the two squares to different digits, so do not compare a value with itself.
    same = (gaps == 0) | jnp.eye(values.shape[-1], dtype=bool)
    return jnp.where(same, 0, 1 / jnp.where(same, 1, gaps))


def _turned_back(columns: jax.Array, moved: jax.Array) -> jax.Array:
    """Returns the rates, times i, at which columns must rotate so that their largest components stay real.

    Args:
        columns: the vectors, shape (..., n, k).
        moved: their tangents before the rotation.
    """
    first = _first_largest(columns)
    largest = jnp.real(jnp.take_along_axis(columns, first, -2))
    return -_imaginary(jnp.take_along_axis(moved, first, -2)) / largest


def _padded(columns: jax.Array, like: jax.Array) -> jax.Array:
    """Returns columns followed by zero columns, as many as `like` has in all."""
    extra = like.shape[-1] - columns.shape[-1]
    return jnp.concatenate([columns, jnp.zeros((*like.shape[:-1], extra), like.dtype)], -1) if extra else columns


def _svd(full: bool, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    u, s, vh = jnp.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    # Singular vectors are unique only up to a common phase; choose it so that the backends agree.
    phases = _phases(u[..., :k])
    u = jnp.concatenate([u[..., :k] * phases, u[..., k:]], -1)
    return u, s, jnp.concatenate([vh[..., :k, :] * adjoint(phases), vh[..., k:, :]], -2)


def _svd_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    u_full, s, vh_full = outputs
    k = s.shape[-1]
    u, v, tangent = u_full[..., :k], adjoint(vh_full[..., :k, :]), tangents[0]
    scale, gaps = s[..., None, :].astype(u.dtype), _gaps(s * s).astype(u.dtype)
    inner = adjoint(u) @ tangent @ v
    left, right = inner * scale, adjoint(inner) * scale
    turn = gaps * (left + adjoint(left))
    if is_complex(u):
        turn = turn + _as_matrix(_imaginary(_diagonal(inner)) / s)
    u_moved, v_moved = u @ turn, v @ (gaps * (right + adjoint(right)))
    if u.shape[-2] > k:
        u_moved = u_moved + (tangent @ v - u @ inner) / scale
    if v.shape[-2] > k:
        v_moved = v_moved + (adjoint(tangent) @ u - v @ adjoint(inner)) / scale
    if is_complex(u):
        angle = _turned_back(u, u_moved)
        u_moved, v_moved = u_moved + angle * u, v_moved + angle * v
    # Columns beyond the singular values are arbitrary, and are treated as constant.
    return _padded(u_moved, u_full), jnp.real(_diagonal(inner)), adjoint(_padded(v_moved, adjoint(vh_full)))


_SVD = {full: jax.jit(differentiated(functools.partial(_svd, full), _svd_moved)) for full in (False, True)}


def svd(x: jax.Array, full_matrices: bool) -> Any:
    """Returns the factors U and Vh of the singular value decomposition, and between them the singular values."""
    return _SVD[bool(full_matrices)](x)


def _svdvals_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    u, _, vh = svd(primals[0], False)
    return (jnp.real(_diagonal(adjoint(u) @ tangents[0] @ adjoint(vh))),)


svdvals = jax.jit(differentiated(lambda x: jnp.linalg.svd(x, compute_uv=False), _svdvals_moved))


def _eigh(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(x, "L", symmetrize_input=False)
    return values, vectors * _phases(vectors)


def _eigh_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    values, vectors = outputs
    inner = adjoint(vectors) @ _hermitian(tangents[0]) @ vectors
    moved = vectors @ (_gaps(values).astype(inner.dtype) * inner)
    if is_complex(vectors):
        moved = moved + _turned_back(vectors, moved) * vectors
    return jnp.real(_diagonal(inner)), moved


eigh = jax.jit(differentiated(_eigh, _eigh_moved))


def _eig(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eig(x)
    return values, vectors * _phases(vectors)


def _eig_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Any:
    values, vectors = outputs
    inner = jnp.linalg.solve(vectors, tangents[0].astype(vectors.dtype) @ vectors)
    moved = vectors @ (_gaps(values) * inner)
    along = jnp.real(jnp.sum(jnp.conj(vectors) * moved, -2, keepdims=True))
    return _diagonal(inner), moved + (_turned_back(vectors, moved) - along) * vectors


eig = jax.jit(differentiated(_eig, _eig_moved))
