"""The exponential of matrices, solutions by a Cholesky factor, P, L and U: extremes, gradients, transforms."""

from typing import Any

import numpy as np
from scipy import linalg

from emberharmony import ops

RNG = np.random.default_rng(11)
A = RNG.standard_normal((3, 3)).astype(np.float32)


def test_expm_of_large_and_small_norms_agrees_with_scipy(backend: str) -> None:
    turning = np.float64([[0.0, -1.0], [1.0, 0.0]])
    for angle in (1e-8, 1.0, 700.0, 1e5):
        wanted = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        found = ops.to_numpy(ops.expm(turning * angle))
        np.testing.assert_allclose(found, wanted, atol=1e-14 * max(angle, 1))
    stiff = np.float64([[-1000.0, 1.0], [0.0, -0.5]])
    np.testing.assert_allclose(ops.to_numpy(ops.expm(stiff)), linalg.expm(stiff), rtol=1e-10, atol=1e-300)


def test_expm_keeps_dtypes(backend: str) -> None:
    for dtype in ("float16", "float32", "complex64"):
        assert ops.dtype(ops.expm(ops.zeros((2, 2), dtype))) == dtype
    assert ops.expm([[0, 1], [0, 0]]).tolist() == [[1.0, 1.0], [0.0, 1.0]]


def test_expm_of_a_matrix_that_is_not_finite_is_nan_and_leaves_the_others(backend: str) -> None:
    matrices = np.stack([np.zeros((2, 2)), np.full((2, 2), np.nan), np.diag([np.inf, 0.0])])
    found = ops.to_numpy(ops.expm(matrices))
    assert found[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert np.isnan(found[1:]).all()


def test_expm_of_matrices_of_very_different_norms_has_finite_gradients(backend: str) -> None:
    x = np.stack([np.float32([[60.0]]), np.float32([[-1e4]]), np.float32([[0.5]])])
    slope = ops.to_numpy(ops.grad(lambda x: ops.sum(ops.expm(x)))(x))
    np.testing.assert_allclose(slope, np.exp(x.astype(np.float64)), rtol=1e-4)


def test_expm_maps_and_has_directional_derivatives(backend: str) -> None:
    batch, tangent = np.stack([A, 5 * A]), np.ones((3, 3), np.float32)
    wanted = np.stack([linalg.expm(x.astype(np.float64)) for x in batch])
    np.testing.assert_allclose(ops.to_numpy(ops.vmap(ops.expm)(batch)), wanted, rtol=1e-3, atol=1e-3)
    _, slope = ops.jvp(ops.expm, (A,), (tangent,))
    wanted = linalg.expm_frechet(A.astype(np.float64), tangent.astype(np.float64), compute_expm=False)
    np.testing.assert_allclose(ops.to_numpy(slope), wanted, rtol=1e-4, atol=1e-4)


def test_cho_solve_inverts_the_product_of_the_factor(backend: str) -> None:
    matrix = A @ A.T + np.eye(3, dtype=np.float32)
    for upper in (False, True):
        found = ops.cho_solve(ops.cholesky(matrix, upper), matrix @ A, upper)
        np.testing.assert_allclose(ops.to_numpy(found), A, atol=1e-4)
    slope = ops.grad(lambda b: ops.sum(ops.cho_solve(ops.cholesky(matrix), b)))(A[0])
    np.testing.assert_allclose(ops.to_numpy(slope), np.linalg.inv(matrix).sum(0), atol=1e-4)


def test_lu_rebuilds_the_matrix(backend: str) -> None:
    for shape in ((2, 3, 3), (4, 2), (2, 4)):
        x = RNG.standard_normal(shape).astype(np.float32)
        p, lower, upper = map(ops.to_numpy, ops.lu(x))
        np.testing.assert_allclose(p @ lower @ upper, x, atol=1e-5)
        assert set(p.ravel().tolist()) == {0.0, 1.0}
    found = ops.lu(A)
    assert ops.dtype(found.P) == ops.dtype(found.L) == ops.dtype(found.U) == "float32"
    mapped = ops.vmap(lambda x: ops.lu(x).U)(np.stack([A, A.T]))
    np.testing.assert_allclose(ops.to_numpy(mapped), [linalg.lu(x)[2] for x in (A, A.T)], atol=1e-5)


def test_the_gradients_of_the_factors_rebuild_that_of_the_matrix(backend: str) -> None:
    def rebuilt(x: Any) -> Any:
        p, lower, upper = ops.lu(x)
        return ops.sum(ops.multiply(ops.matmul(p, ops.matmul(lower, upper)), ops.convert_to_tensor(A.T.copy())))

    np.testing.assert_allclose(ops.to_numpy(ops.grad(rebuilt)(A)), A.T, atol=1e-4)
