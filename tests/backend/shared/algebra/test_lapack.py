"""Decompositions on the host: the product of the factors is the matrix."""

import numpy as np
import pytest

from emberharmony.backend.shared.algebra import lapack
from emberharmony.errors import ShapeError

RNG = np.random.default_rng(0)
SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3)]


def made(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    x = RNG.standard_normal(shape)
    return x + 1j * RNG.standard_normal(shape) if dtype is complex else x


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_product_of_qr_and_svd_factors_is_the_matrix(shape: tuple[int, ...], dtype: type) -> None:
    x = made(shape, dtype)
    q, r = lapack.qr(x)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    u, s, vh = lapack.svd(x, full_matrices=False)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, atol=1e-12)
    np.testing.assert_allclose(lapack.svdvals(x), s, atol=1e-12)


@pytest.mark.parametrize("dtype", [float, complex])
def test_a_matrix_scales_its_eigenvectors_by_the_eigenvalues(dtype: type) -> None:
    x = made((2, 3, 3), dtype)
    values, vectors = lapack.eig(x)
    np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], atol=1e-12)
    hermitian = x + np.conj(np.swapaxes(x, -1, -2))
    values, vectors = lapack.eigh(hermitian)
    np.testing.assert_allclose(hermitian @ vectors, vectors * values[..., None, :], atol=1e-12)
    np.testing.assert_allclose(lapack.eigvalsh(hermitian), values, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_product_of_lu_factors_is_the_matrix_with_permuted_rows(shape: tuple[int, ...]) -> None:
    x = made(shape, float)
    packed, pivots = map(np.asarray, lapack.lu_factor(x))
    k = min(shape[-2:])
    lower = np.tril(packed[..., :, :k], -1) + np.eye(shape[-2], k)
    upper = np.triu(packed[..., :k, :])
    order = lapack.row_order(pivots, shape[-2])
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(x, order[..., None], -2), atol=1e-12)


def test_solve_triangular_ignores_the_other_triangle() -> None:
    a, b = made((3, 3), float), made((3, 2), float)
    np.testing.assert_allclose(lapack.solve_triangular(a, b, lower=True), np.linalg.solve(np.tril(a), b), atol=1e-9)
    np.testing.assert_allclose(lapack.solve_triangular(a, b), np.linalg.solve(np.triu(a), b), atol=1e-9)


def test_the_adjugate_of_a_singular_matrix_is_finite() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(lapack.adjugate(x), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)


@pytest.mark.parametrize("function", [lapack.det, lapack.inv, lapack.eig, lapack.eigvals, lapack.cholesky])
def test_a_matrix_that_is_not_square_is_refused(function: object) -> None:
    with pytest.raises(ShapeError):
        function(np.ones((2, 3)))  # type: ignore[operator]
