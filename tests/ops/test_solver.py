"""Linear algebra beyond the sample rows: errors, factors that are not unique, conventions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core import errors
from tests.together import together

Array = np.ndarray[Any, Any]
RECT = np.ones((2, 3), np.float32)
SINGULAR = np.ones((3, 3), np.float32)
NAN = np.full((3, 3), np.nan, np.float32)
INFINITE = np.array([[-np.inf, 6, 0], [0, 1, 0.25], [0.5, 1, -0.5]], np.float32)
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]], np.float32)
SQUARE_ONLY = (
    *("det", "slogdet", "logdet", "inv", "cholesky", "cholesky_inverse", "eigh", "eigvalsh", "eig", "eigvals"),
)
ERRORS: list[tuple[Callable[[], object], type[Exception]]] = [
    (lambda: ops.inv(SINGULAR), errors.LinAlgError),
    (lambda: ops.inv(np.stack([np.eye(3, dtype=np.float32), SINGULAR])), errors.LinAlgError),
    (lambda: ops.solve(SINGULAR, SINGULAR[0]), errors.LinAlgError),
    (lambda: ops.solve(np.eye(2), np.ones(3)), errors.ShapeError),
    (lambda: ops.solve(np.eye(2), np.float64(1)), errors.ShapeError),
    (lambda: ops.solve(np.ones((2, 2, 2)), np.ones((3, 2, 1))), errors.ShapeError),
    (lambda: ops.solve(RECT, RECT[0]), errors.ShapeError),
    (lambda: ops.solve_triangular(np.tril(SINGULAR, -1), SINGULAR), errors.LinAlgError),
    (lambda: ops.solve_triangular(np.eye(2), np.ones(3)), errors.ShapeError),
    (lambda: ops.cholesky(INDEFINITE), errors.LinAlgError),
    (lambda: ops.cholesky(np.stack([np.eye(2, dtype=np.float32), INDEFINITE])), errors.LinAlgError),
    (lambda: ops.cholesky(NAN), errors.LinAlgError),
    (lambda: ops.cholesky(np.diag([np.inf, 1.0])), errors.LinAlgError),
    (lambda: ops.logdet(INDEFINITE), errors.LinAlgError),
    (lambda: ops.cholesky_inverse(np.zeros((2, 2))), errors.LinAlgError),
    (lambda: ops.svd(NAN), errors.LinAlgError),
    (lambda: ops.svdvals(NAN), errors.LinAlgError),
    (lambda: ops.pinv(NAN), errors.LinAlgError),
    (lambda: ops.eigh(NAN), errors.LinAlgError),
    (lambda: ops.eig(NAN), errors.LinAlgError),
    (lambda: ops.eigvals(NAN), errors.LinAlgError),
    (lambda: ops.eigvals(np.diag([np.inf, 1.0])), errors.LinAlgError),
    (lambda: ops.norm(INFINITE, "nuc"), errors.LinAlgError),
    (lambda: ops.matrix_norm(np.stack([np.eye(3), INFINITE]), -2), errors.LinAlgError),
    (lambda: ops.linalg.cond(INFINITE), errors.LinAlgError),
    (lambda: ops.qr(RECT, "raw"), errors.ArgumentError),
    (lambda: ops.qr(RECT[0]), errors.ShapeError),
    (lambda: ops.svd(RECT[0]), errors.ShapeError),
    (lambda: ops.lu_factor(RECT[0]), errors.ShapeError),
    (lambda: ops.matrix_rank(RECT[0]), errors.ShapeError),
    (lambda: ops.lstsq(RECT, np.ones(3)), errors.ShapeError),
    (lambda: ops.matrix_power(RECT, 2), errors.ShapeError),
    (lambda: ops.matrix_power(SINGULAR, -1), errors.LinAlgError),
    (lambda: ops.matrix_power(SINGULAR, 0.5), errors.ArgumentTypeError),
]


@together("call, typed", ERRORS)
def test_bad_input_raises_a_typed_error(call: Callable[[], object], typed: type[Exception], backend: str) -> None:
    with pytest.raises(typed, match=rf"\(\) on backend '{backend}'"):
        ops.eval(call())  # Dask raises when a block is computed


@pytest.mark.parametrize("op", SQUARE_ONLY)
def test_a_matrix_that_is_not_square_is_refused(op: str, backend: str) -> None:
    for shape in ((2, 3), (3,), (4, 0, 2)):
        with pytest.raises(errors.ShapeError):
            getattr(ops, op)(np.ones(shape, np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@together("op", ["svd", "svdvals", "pinv", "matrix_rank", "lstsq", "eigh", "eigvalsh", "eig", "eigvals", "linalg_cond"])
def test_a_matrix_with_nan_or_infinity_is_refused(op: str, bad: float, dtype: str, backend: str) -> None:
    x = np.stack([np.eye(3), np.eye(3)]).astype(dtype)
    x[1, 2, 0] = bad
    further = (np.ones((3, 1), dtype),) if op == "lstsq" else ()
    with pytest.raises(errors.LinAlgError, match=r"got infinities or NaN in shape"):
        ops.eval(getattr(ops.linalg if op == "linalg_cond" else ops, op.removeprefix("linalg_"))(x, *further))


def test_a_matrix_whose_squares_overflow_has_singular_values(backend: str) -> None:
    x = np.float32([[0.0, 1e30], [-2e30, 0.0]])
    u, s, vh = ops.svd(x)
    np.testing.assert_allclose(ops.to_numpy(s), [2e30, 1e30], rtol=1e-6)
    np.testing.assert_allclose(ops.to_numpy(ops.matmul(u * s, vh)), x, rtol=1e-6, atol=1e24)


def test_the_upper_triangle_of_a_hermitian_matrix_is_not_read(backend: str) -> None:
    x = np.array([[2.0, np.inf], [0.0, 3.0]])
    assert host(ops.eigvalsh(x)).tolist() == host(ops.eigh(x).eigenvalues).tolist() == [2.0, 3.0]
    assert np.allclose(host(ops.cholesky(x)) ** 2, [[2.0, 0.0], [0.0, 3.0]])


def host(value: Any) -> Array:
    return np.asarray(ops.to_numpy(value))


def matrices(rows: int | None = None) -> st.SearchStrategy[Array]:
    """Returns batches of two random matrices, real or complex, square or with the given number of rows."""

    def build(seed: int, n: int, kind: str) -> Array:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((2, rows or n, n)) + 1j * rng.standard_normal((2, rows or n, n))
        return (x if kind == "complex64" else x.real).astype(kind)

    kinds = st.sampled_from(["float32", "float64", "complex64"])
    return st.builds(build, st.integers(0, 2**31), st.integers(1, 5), kinds)


def eps(x: Array) -> float:
    return float(np.finfo(x.dtype).eps)


every_backend = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)


def adjoint(x: Array) -> Array:
    return np.conj(x.swapaxes(-1, -2))


def is_real_and_positive(x: Array, tolerance: float) -> bool:
    return bool(np.all(x.real > 0) and np.all(np.abs(x.imag) <= tolerance))


def decisive(columns: Array) -> Array:
    """Returns the first component of each column whose magnitude is within 0.1 % of the largest."""
    sizes = np.abs(columns)
    first = (sizes >= 0.999 * sizes.max(-2, keepdims=True)).argmax(-2, keepdims=True)
    return np.take_along_axis(columns, first, -2)


@every_backend
@given(x=matrices(rows=4), mode=st.sampled_from(["reduced", "complete"]))
def test_the_product_of_q_and_r_is_the_matrix(backend: str, x: Array, mode: str) -> None:
    result = ops.qr(x, mode)
    q, r = host(result.Q), host(result.R)
    k = 4 if mode == "complete" else min(x.shape[-2:])
    assert q.shape == (2, 4, k)
    assert r.shape == (2, k, x.shape[-1])
    assert q.dtype == r.dtype == x.dtype
    assert np.allclose(q @ r, x, atol=50 * eps(x))
    assert np.allclose(adjoint(q) @ q, np.eye(k), atol=50 * eps(x))
    assert not np.tril(r, -1).any()
    assert is_real_and_positive(np.diagonal(r, 0, -2, -1), 50 * eps(x))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_q_and_r_have_the_signs_of_lapack_on_request(
    backend: str, dtype: type, shape: tuple[int, ...], mode: Any
) -> None:
    parts = np.random.default_rng(3).standard_normal((2, *shape))
    x = (parts[0] + 1j * parts[1] if dtype is np.complex64 else parts[0]).astype(dtype)
    made, wanted = ops.qr(x, mode, positive=False), np.linalg.qr(x, mode)
    for ours, numpys in zip(made, wanted, strict=True):
        assert np.allclose(host(ours), numpys, atol=50 * eps(x))


@every_backend
@given(x=matrices(rows=3), full=st.booleans())
def test_the_product_of_the_svd_factors_is_the_matrix(backend: str, x: Array, full: bool) -> None:
    u, s, vh = (host(part) for part in ops.svd(x, full))
    k = min(x.shape[-2:])
    assert u.shape[-1] == (3 if full else k)
    assert vh.shape[-2] == (x.shape[-1] if full else k)
    assert np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=100 * eps(x))
    assert np.allclose(adjoint(u) @ u, np.eye(u.shape[-1]), atol=100 * eps(x))
    assert np.all(s[..., :-1] >= s[..., 1:])
    assert is_real_and_positive(decisive(u[..., :k]), 50 * eps(x))
    assert np.allclose(host(ops.svdvals(x)), s, rtol=100 * eps(x), atol=100 * eps(x))


@every_backend
@given(x=matrices())
def test_eigh_gives_eigenvectors_with_ordered_eigenvalues(backend: str, x: Array) -> None:
    hermitian = x + adjoint(x)
    result = ops.eigh(hermitian)
    values, vectors = host(result.eigenvalues), host(result.eigenvectors)
    assert np.allclose(hermitian @ vectors, vectors * values[..., None, :], atol=200 * eps(x))
    assert np.all(values[..., :-1] <= values[..., 1:])
    assert is_real_and_positive(decisive(vectors), 50 * eps(x))
    assert np.allclose(host(ops.eigvalsh(hermitian)), values, atol=200 * eps(x))


@every_backend
@given(x=matrices())
def test_eig_gives_complex_eigenvectors_of_length_one(backend: str, x: Array) -> None:
    result = ops.eig(x)
    values, vectors = host(result.eigenvalues), host(result.eigenvectors)
    narrow = backend == "mlx" or x.dtype.itemsize == 4 or x.dtype.kind == "c"
    assert values.dtype == vectors.dtype == host(ops.eigvals(x)).dtype == ("complex64" if narrow else "complex128")
    tolerance = 2e-4 if narrow else 1e-11
    assert np.allclose(x @ vectors, vectors * values[..., None, :], atol=tolerance)
    assert np.allclose(np.linalg.norm(vectors, axis=-2), 1, atol=tolerance)
    assert np.allclose(values.sum(-1), np.trace(x, 0, -2, -1), atol=tolerance)
    assert np.allclose(host(ops.eigvals(x)).sum(-1), np.trace(x, 0, -2, -1), atol=tolerance)


@every_backend
@given(x=matrices(rows=4))
def test_the_product_of_the_lu_factors_is_the_matrix_with_permuted_rows(backend: str, x: Array) -> None:
    result = ops.lu_factor(x)
    lu, pivots = host(result.LU), host(result.pivots)
    k = min(x.shape[-2:])
    assert pivots.dtype == np.int64
    assert pivots.shape == (2, k)
    lower = np.tril(lu[..., :, :k], -1) + np.eye(4, k)
    for one, left, upper, swaps in zip(x, lower, np.triu(lu[..., :k, :]), pivots, strict=True):
        rows = one.copy()
        for i, j in enumerate(swaps):
            rows[[i, j]] = rows[[j, i]]
        assert np.allclose(left @ upper, rows, atol=50 * eps(x))
    # LAPACK chooses pivots of complex matrices by |re| + |im|, so the magnitude of a factor may reach sqrt(2).
    assert np.all(np.abs(lower) <= (2**0.5 if x.dtype.kind == "c" else 1) + 2 * eps(x))


def test_lu_factor_of_a_singular_matrix_has_a_zero_pivot(backend: str) -> None:
    assert host(ops.lu_factor(SINGULAR).LU).tolist() == [[1, 1, 1], [1, 0, 0], [1, 0, 0]]


def test_the_signs_of_factors_are_fixed_by_the_first_of_equal_components(backend: str) -> None:
    half = 0.5**0.5
    vectors = host(ops.eigh([[2.0, 1.0], [1.0, 2.0]]).eigenvectors)
    assert np.allclose(vectors, [[half, half], [-half, half]], atol=1e-6)
    u, s, vh = (host(part) for part in ops.svd([[2.0, 1.0], [2.0, -1.0]]))
    assert np.allclose(u, [[half, half], [half, -half]], atol=1e-6)
    assert np.allclose(u * s @ vh, [[2.0, 1.0], [2.0, -1.0]], atol=1e-6)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("ratio", [0.5, 0.9985, 0.9995, 1.0])
def test_the_first_component_of_nearly_the_largest_magnitude_is_positive(
    backend: str, ratio: float, full_matrices: bool
) -> None:
    # The second component of the first column is the largest one, and of the other sign than the first.
    column = np.array([ratio, -1.0, 0.1, 0.2])
    left = np.linalg.qr(np.column_stack([column, np.eye(4)[:, 2:], np.ones(4)]))[0]
    right = np.linalg.qr(np.arange(9.0).reshape(3, 3) + np.eye(3))[0]
    x = ((left[:, :3] * [3.0, 2.0, 1.0]) @ right).astype(np.float32)
    u, s, vh = (host(part) for part in ops.svd(x, full_matrices=full_matrices))
    assert np.allclose(u[:, :3] * s @ vh, x, atol=1e-5)
    vectors = host(ops.eigh(((left * [4.0, 3.0, 2.0, 1.0]) @ left.T).astype(np.float32)).eigenvectors)
    for columns in (u[:, :3], vectors):
        sizes = np.abs(columns)
        first = (sizes >= 0.999 * sizes.max(0)).argmax(0)
        assert (np.take_along_axis(columns, first[None], 0) > 0).all()
    assert u[0, 0] * (0.999 - ratio) < 0  # the first component is positive only if it is nearly as large


def test_decompositions_take_matrices_whose_squares_overflow_without_a_warning(backend: str) -> None:
    x = np.array([[1e30, 2e30], [-3e30, 1e30]], np.float32)
    u, s, vh = (host(part) for part in ops.svd(x))
    assert np.allclose(u * (s / 1e30) @ vh, x / 1e30, atol=1e-5)
    assert np.allclose(host(ops.svdvals(x)) / 1e30, s / 1e30, atol=1e-5)


def test_hermitian_ops_read_only_one_triangle(backend: str) -> None:
    x = np.array([[4.0, 99.0], [2.0, 5.0]], np.float32)
    symmetric = np.array([[4.0, 2.0], [2.0, 5.0]], np.float32)
    assert np.array_equal(host(ops.cholesky(x)), host(ops.cholesky(symmetric)))
    assert np.array_equal(host(ops.cholesky(x, True)), host(ops.cholesky(symmetric, True)))
    assert np.array_equal(host(ops.eigvalsh(x)), host(ops.eigvalsh(symmetric)))
    assert host(ops.solve_triangular(x, [4.0, 12.0], lower=True)).tolist() == [1.0, 2.0]


def test_a_matrix_of_right_hand_sides_is_never_a_batch_of_vectors(backend: str) -> None:
    a = np.stack([np.eye(2) * 2, np.eye(2) * 4]).astype(np.float32)
    b = np.array([[2.0, 4.0], [6.0, 8.0]], np.float32)
    for solved in (ops.solve(a, b), ops.solve_triangular(a, b)):
        assert host(solved).tolist() == [[[1, 2], [3, 4]], [[0.5, 1], [1.5, 2]]]
    assert host(ops.solve(a, b[0])).tolist() == [[1, 2], [0.5, 1]]


def test_inverse_determinant_and_solution_propagate_nan(backend: str) -> None:
    for result in (ops.inv(NAN), ops.det(NAN), ops.solve(NAN, NAN[0]), *ops.slogdet(NAN)):
        assert np.isnan(host(result)).all()


def test_the_determinant_of_a_singular_matrix_is_zero(backend: str) -> None:
    assert abs(float(ops.det([[1.0, 2.0], [2.0, 4.0]]))) < 1e-6
    sign, logarithm = ops.slogdet(np.zeros((2, 2), np.float32))
    assert (float(sign), float(logarithm)) == (0.0, -np.inf)


def test_the_gradient_of_a_zero_determinant_is_the_cofactor_matrix(backend: str) -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert np.allclose(host(ops.grad(ops.det)(singular)), [[4, -2], [-2, 1]])
    both = ops.grad(lambda x: ops.sum(ops.det(x)))(np.stack([singular, np.diag([2.0, 5.0])]))
    assert np.allclose(host(both), [[[4, -2], [-2, 1]], [[5, 0], [0, 2]]])


def test_the_logarithm_of_a_zero_determinant_has_no_finite_derivative(backend: str) -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    if backend in ("mlx", "jax"):  # they read no values there
        assert not np.isfinite(host(ops.grad(lambda x: ops.slogdet(x)[1])(singular))).any()
        return
    with pytest.raises(errors.LinAlgError, match=r"slogdet|inv\(\)"):
        ops.grad(lambda x: ops.slogdet(x)[1])(singular)
    with pytest.raises(errors.LinAlgError, match=r"slogdet|inv\(\)"):
        ops.jvp(lambda x: ops.slogdet(x)[1], (singular,), (singular,))


def test_the_hessian_of_the_determinant_at_the_identity_is_right(backend: str) -> None:
    found = host(ops.hessian(ops.det)(np.eye(2)))
    assert np.allclose(found, [[[[0, 0], [0, 1]], [[0, 0], [-1, 0]]], [[[0, -1], [0, 0]], [[1, 0], [0, 0]]]])


def test_integer_matrices_give_floats_and_their_powers_are_exact(backend: str) -> None:
    x = np.array([[1, 1], [1, 0]])
    assert ops.dtype(ops.inv(x)) == "float32"
    assert ops.matrix_power(x, np.int64(90)).tolist()[0][1] == 2880067194370816120
    assert ops.dtype(ops.matrix_power(x, -1)) == "float32"
    assert ops.matrix_power(np.full((2, 2), np.nan), 0).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_half_precision_keeps_its_dtype(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        x = ops.cast([[4.0, 1.0], [1.0, 2.0]], dtype)
        for result in (ops.inv(x), ops.cholesky(x), ops.pinv(x), ops.svd(x).U, ops.eigh(x).eigenvalues, ops.det(x)):
            assert ops.dtype(result) == dtype
        assert int(ops.matrix_rank(ops.cast([[1.0, 2.0], [2.0, 4.0]], dtype))) == 1


def test_the_derivative_of_a_completed_q_is_refused_on_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"), pytest.raises(errors.UnsupportedOpError, match="mode 'reduced'"):
        mx.grad(lambda x: mx.sum(ops.qr(x, "complete").Q))(mx.array(RECT.T))


@pytest.mark.parametrize(
    "op", ["inv", "cholesky", "cholesky_inverse", "qr", "svdvals", "pinv", "slogdet", "matrix_norm", "norm", "logdet"]
)
def test_the_gradients_on_torch_pass_its_own_gradcheck(op: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    with ops.use_backend("torch"):
        assert torch.autograd.gradcheck(lambda x: getattr(ops, op)((x + x.mT) / 2), x)
        assert torch.autograd.gradcheck(lambda x: ops.solve(x, x.mT), x)
        # The product of the factors is checked, because the signs of the factors are arbitrary.
        assert torch.autograd.gradcheck(lambda x: ops.svd(x, False).U @ ops.svd(x, False).Vh, x)


@pytest.mark.parametrize(
    "values", [lambda x: ops.eigh(x).eigenvalues, lambda x: ops.svd(x).S, ops.svdvals, ops.eigvalsh]
)
def test_sums_of_equal_eigenvalues_and_singular_values_have_a_gradient(values: Any, backend: str) -> None:
    found = ops.grad(lambda x: ops.sum(values(x)))(np.eye(3))
    np.testing.assert_allclose(ops.to_numpy(found), np.eye(3), atol=1e-6)


HERMITIAN: list[Callable[[Any], Any]] = [
    ops.cholesky,
    lambda x: ops.cholesky(x, True),
    lambda x: ops.eigh(x).eigenvectors,
    ops.eigvalsh,
    ops.logdet,
]


@pytest.mark.parametrize("kind", ["float64", "complex64"])
@pytest.mark.parametrize("function", HERMITIAN)
def test_forward_and_reverse_mode_use_the_hermitian_part(function: Any, kind: str, backend: str) -> None:
    rng = np.random.default_rng(3)

    def random(shape: tuple[int, ...], dtype: Any) -> Array:
        x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)

    x, tangent = random((2, 3, 3), kind), random((2, 3, 3), kind)
    x, atol = x @ adjoint(x) + 3 * np.eye(3, dtype=kind), 2000 * eps(x)
    pushed = host(ops.jvp(function, (x,), (tangent,))[1])
    part = host(ops.jvp(function, (x,), ((tangent + adjoint(tangent)) / 2,))[1])
    np.testing.assert_allclose(pushed, part, atol=atol)
    cotangent = random(pushed.shape, pushed.dtype)
    (pulled,) = ops.vjp(function, x)[1](cotangent)
    there, back = (cotangent.conj() * pushed).sum().real, (host(pulled).conj() * tangent).sum().real
    assert abs(there - back) < atol * 10
    np.testing.assert_allclose(host(pulled), adjoint(host(pulled)), atol=atol)


def test_the_second_derivative_in_forward_mode_equals_that_in_reverse_mode(backend: str) -> None:
    x = np.array([[2.0, 0.5], [0.5, 1.0]])
    for function in (ops.cholesky, lambda x: ops.eigh(x).eigenvectors):
        forward, reverse = ops.jacfwd(ops.jacfwd(function))(x), ops.jacrev(ops.jacrev(function))(x)
        np.testing.assert_allclose(host(forward), host(reverse), atol=1e-12)


def test_svd_without_vectors_is_the_singular_values(backend: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 4, 3))
    values = ops.svd(x, compute_uv=False)
    assert np.allclose(ops.to_numpy(values), np.linalg.svd(x, compute_uv=False), rtol=1e-6)
    weights = np.arange(1.0, 4.0)
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    gradient = ops.grad(lambda x: ops.sum(ops.multiply(ops.svd(x, True, False), weights)))(x)
    assert np.allclose(ops.to_numpy(gradient), (u * weights) @ vh, atol=1e-6)


def test_the_rank_counts_by_an_absolute_or_a_relative_bound(backend: str) -> None:
    x = np.diag([100.0, 0.5]).astype(np.float32)
    assert int(ops.matrix_rank(x, 1.0)) == 1
    assert int(ops.matrix_rank(x, tol=0.1)) == 2
    assert int(ops.matrix_rank(x, rtol=0.1)) == 1
    assert ops.to_numpy(ops.matrix_rank(np.stack([x, x]), tol=[0.1, 1.0])).tolist() == [2, 1]
    assert np.allclose(ops.to_numpy(ops.pinv(x, rcond=0.1)), np.diag([0.01, 0.0]))
    for call in (lambda: ops.matrix_rank(x, 1.0, rtol=0.1), lambda: ops.pinv(x, 0.1, rtol=0.1)):
        with pytest.raises(errors.ArgumentError, match="leave one of them out"):
            call()


@together(
    "x", [np.diag([2.0, 2.0, 0.0, 0.0]), np.zeros((3, 2)), np.ones((2, 3)), np.outer([1.0, 2.0], [1.0, -1.0, 0.5])]
)
def test_the_gradient_of_pinv_keeps_the_rank(backend: str, x: np.ndarray) -> None:
    weight = np.random.default_rng(1).normal(size=x.T.shape)
    y, (m, n) = np.linalg.pinv(x), x.shape
    expected = (np.eye(m) - x @ y) @ weight.T @ y @ y.T + y.T @ y @ weight.T @ (np.eye(n) - y @ x) - y.T @ weight @ y.T
    got = ops.grad(lambda x: ops.sum(ops.multiply(ops.pinv(x, 1e-5), ops.array(weight, "float32"))))(
        ops.array(x, "float32")
    )
    np.testing.assert_allclose(ops.to_numpy(got), expected, atol=1e-5)
