"""Programs of a library over the array API standard run on every backend with the namespace of `ops.array_namespace`.

The helpers are of the kind that scikit-learn writes over the standard (`sklearn.utils._array_api`): they choose dtypes,
compute statistics with weights, and serve the estimators below. Another backend than that of the arrays is active.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import linalg, special

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.ops import array_namespace

RANDOM = np.random.default_rng(11)
DATA = RANDOM.standard_normal((40, 4)).astype(np.float32)
SLOPES = np.asarray([1.5, -2.0, 0.25, 3.0])
TARGET = (DATA @ SLOPES + 0.1 * RANDOM.standard_normal(40)).astype(np.float32)
LABELS = (TARGET > 0).astype(np.int64)
WEIGHTS = RANDOM.uniform(0.5, 2.0, 40).astype(np.float32)


@pytest.fixture
def arrays(backend: str) -> Iterator[tuple[Any, ...]]:
    """Returns data, target, labels and weights as tensors of each backend, while another one is active."""
    made = tuple(ops.convert_to_tensor(host.copy()) for host in (DATA, TARGET, LABELS, WEIGHTS))
    inactive = next((name for name in BUILTIN if name != backend and is_installed(name)), backend)
    with ops.use_backend(inactive):
        yield made


def host(x: Any) -> Any:
    return np.asarray(array_namespace(x).to_numpy(x))


def supported_float_dtypes(xp: Any) -> tuple[Any, ...]:
    """Returns the real floating dtypes of a namespace, the widest first."""
    return tuple(getattr(xp, name) for name in ("float64", "float32", "float16") if hasattr(xp, name))


def matching_floating_dtype(*arrays: Any, xp: Any) -> Any:
    """Returns the floating dtype in which to compute with arrays of any dtype."""
    floating = [x.dtype for x in arrays if xp.isdtype(x.dtype, "real floating")]
    if floating:
        return xp.result_type(*floating)
    return xp.__array_namespace_info__().default_dtypes()["real floating"]


def average(x: Any, *, axis: int | None = None, weights: Any = None) -> Any:
    """Returns the weighted mean."""
    xp = array_namespace(x, weights)
    if weights is None:
        return xp.mean(x, axis=axis)
    dtype = matching_floating_dtype(x, weights, xp=xp)
    x, weights = xp.astype(x, dtype, copy=False), xp.astype(weights, dtype, copy=False)
    if x.ndim != weights.ndim:
        weights = xp.reshape(weights, (-1, *(1,) * (x.ndim - 1)))
    weights = xp.broadcast_to(weights, x.shape)
    total = xp.sum(weights, axis=axis)
    if xp.any(total == 0):
        raise ZeroDivisionError("the weights sum to zero")
    return xp.sum(x * weights, axis=axis) / total


def nan_extremum(x: Any, axis: int | None, largest: bool) -> Any:
    """Returns the largest or smallest element that is not NaN; NaN if all are."""
    xp = array_namespace(x)
    fill = -xp.inf if largest else xp.inf
    missing = xp.isnan(x)
    reduce = xp.max if largest else xp.min
    found = reduce(xp.where(missing, xp.asarray(fill, dtype=x.dtype), x), axis=axis)
    return xp.where(xp.all(missing, axis=axis), xp.asarray(xp.nan, dtype=x.dtype), found)


def is_member(x: Any, values: Any) -> Any:
    """Returns for each element of a vector whether it is among the values."""
    xp = array_namespace(x, values)
    ordered = xp.sort(xp.unique_values(values))
    place = xp.searchsorted(ordered, x)
    place = xp.where(place == ordered.shape[0], xp.zeros_like(place), place)
    return xp.take(ordered, place, axis=0) == x


def with_diagonal(x: Any, value: float) -> Any:
    """Returns a square matrix with another diagonal."""
    xp = array_namespace(x)
    return xp.where(xp.eye(x.shape[0], dtype=xp.bool), xp.asarray(value, dtype=x.dtype), x)


def row_norms(x: Any, squared: bool = False) -> Any:
    xp = array_namespace(x)
    norms = xp.linalg.vector_norm(x, axis=1)
    return norms * norms if squared else norms


def logsumexp(x: Any, axis: int) -> Any:
    xp = array_namespace(x)
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.squeeze(top, axis=axis)


def weighted_percentile(x: Any, weights: Any, percent: float) -> Any:
    """Returns the smallest element at which the cumulative weight reaches a percentage of the total."""
    xp = array_namespace(x, weights)
    order = xp.argsort(x, stable=True)
    cumulative = xp.cumulative_sum(xp.take(weights, order, axis=0))
    place = xp.searchsorted(cumulative, percent / 100 * cumulative[-1:])
    return xp.take(x, xp.take(order, place, axis=0), axis=0)[0]


def standardized(x: Any) -> Any:
    xp = array_namespace(x)
    spread = xp.std(x, axis=0)
    return (x - xp.mean(x, axis=0)) / xp.where(spread == 0, xp.ones_like(spread), spread)


def ridge(x: Any, y: Any, alpha: float) -> Any:
    """Returns the coefficients of a ridge regression without an intercept."""
    xp = array_namespace(x, y, alpha)
    gram = xp.matrix_transpose(x) @ x + alpha * xp.eye(x.shape[1], dtype=x.dtype)
    factor = xp.linalg.cholesky(gram)
    half = xp.linalg.solve(factor, xp.matrix_transpose(x) @ y[:, None])
    return xp.squeeze(xp.linalg.solve(xp.matrix_transpose(factor), half), axis=1)


def principal_components(x: Any, count: int) -> tuple[Any, Any]:
    """Returns the components with their signs fixed, and the variances that they explain."""
    xp = array_namespace(x)
    _, s, vh = xp.linalg.svd(x - xp.mean(x, axis=0), full_matrices=False)
    largest = xp.argmax(xp.abs(vh), axis=1, keepdims=True)
    signs = xp.sign(xp.take_along_axis(vh, largest, axis=1))
    return (vh * signs)[:count, :], (s * s / (x.shape[0] - 1))[:count]


def nearest(x: Any, centres: Any) -> Any:
    """Returns the index of the nearest centre for each row."""
    xp = array_namespace(x, centres)
    products = x @ xp.matrix_transpose(centres)
    distances = row_norms(x, squared=True)[:, None] - 2 * products + row_norms(centres, squared=True)[None, :]
    return xp.argmin(distances, axis=1)


def logistic_regression(x: Any, labels: Any, steps: int = 60) -> Any:
    """Returns the weights of a logistic regression after steps of Newton's method, with the derivatives of `ops`."""
    xp = array_namespace(x, labels)
    y = xp.astype(labels, x.dtype)

    def loss(w: Any) -> Any:
        logits = xp.matmul(x, w)
        return xp.sum(xp.nn.softplus(logits) - xp.multiply(y, logits)) + 0.5 * xp.sum(w * w)

    w = xp.zeros(x.shape[1], dtype=x.dtype)
    for _ in range(steps):
        w = w - xp.linalg.solve(xp.hessian(loss)(w), xp.grad(loss)(w)[:, None])[:, 0]
    return w


def test_dtypes_are_chosen_by_name_and_kind(arrays: Any) -> None:
    x, y, labels, _ = arrays
    xp = array_namespace(x)
    assert supported_float_dtypes(xp) == (xp.float64, xp.float32, xp.float16)
    assert matching_floating_dtype(x, labels, xp=xp) == x.dtype
    assert matching_floating_dtype(labels, xp=xp) == xp.float32
    assert [kind for kind in ("bool", "integral", "real floating") if xp.isdtype(labels.dtype, kind)] == ["integral"]
    assert xp.result_type(x, y) == xp.float32


def test_statistics_with_weights(arrays: Any) -> None:
    x, y, labels, weights = arrays
    wide = DATA.astype(np.float64)
    np.testing.assert_allclose(host(average(x, axis=0)), wide.mean(0), rtol=1e-5, atol=1e-6)
    expected = np.average(wide, 0, WEIGHTS.astype(np.float64))
    np.testing.assert_allclose(host(average(x, axis=0, weights=weights)), expected, rtol=1e-5, atol=1e-6)
    expected = np.average(LABELS, weights=WEIGHTS.astype(np.float64))
    np.testing.assert_allclose(host(average(labels, weights=weights)), expected, rtol=1e-5)
    with pytest.raises(ZeroDivisionError):
        average(y, weights=weights * 0)
    order = np.argsort(TARGET, kind="stable")
    reached = np.searchsorted(np.cumsum(WEIGHTS[order]), 0.3 * np.cumsum(WEIGHTS[order])[-1])
    assert float(weighted_percentile(y, weights, 30)) == float(TARGET[order][reached])


def test_missing_values_and_membership(arrays: Any) -> None:
    x, _, labels, _ = arrays
    xp = array_namespace(x)
    holes = xp.where(x > 1, xp.asarray(xp.nan, dtype=x.dtype), x)
    holes = xp.concat([holes, xp.full((40, 1), xp.nan, dtype=x.dtype)], axis=1)
    wanted = np.concatenate([np.where(DATA > 1, np.nan, DATA), np.full((40, 1), np.nan)], 1)
    for largest, reduce in ((True, np.fmax.reduce), (False, np.fmin.reduce)):
        np.testing.assert_array_equal(host(nan_extremum(holes, 0, largest)), reduce(wanted.astype(np.float32)))
    members = xp.asarray([1, 5, -3], dtype=labels.dtype)
    np.testing.assert_array_equal(host(is_member(labels, members)), LABELS == 1)


def test_matrices(arrays: Any) -> None:
    x, y, _, _ = arrays
    xp = array_namespace(x)
    gram = xp.matrix_transpose(x) @ x
    expected = DATA.T.astype(np.float64) @ DATA
    np.fill_diagonal(expected, 7.0)
    np.testing.assert_allclose(host(with_diagonal(gram, 7.0)), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(host(logsumexp(x * 100, 1)), special.logsumexp(DATA.astype(float) * 100, 1), rtol=1e-5)
    wide = DATA.astype(np.float64)
    np.testing.assert_allclose(host(standardized(x)), (wide - wide.mean(0)) / wide.std(0), rtol=1e-4, atol=1e-5)
    expected = linalg.solve(wide.T @ wide + 0.5 * np.eye(4), wide.T @ TARGET)
    np.testing.assert_allclose(host(ridge(x, y, 0.5)), expected, rtol=1e-4, atol=1e-5)


def test_decompositions_and_clusters(arrays: Any) -> None:
    x = arrays[0]
    components, variances = principal_components(x, 2)
    values, vectors = linalg.eigh(np.cov(DATA.T.astype(np.float64)))
    np.testing.assert_allclose(host(variances), values[::-1][:2], rtol=1e-4)
    np.testing.assert_allclose(np.abs(host(components) @ vectors[:, ::-1][:, :2]), np.eye(2), atol=1e-3)
    xp = array_namespace(x)
    found = host(nearest(x, x[:3, :]))
    expected = ((DATA[:, None, :].astype(np.float64) - DATA[None, :3, :]) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(found, expected)
    assert xp.isdtype(nearest(x, x[:3, :]).dtype, "integral")


def test_an_estimator_gains_derivatives(arrays: Any) -> None:
    x, _, labels, _ = arrays
    w = host(logistic_regression(x, labels, steps=8)).astype(np.float64)
    wide = DATA.astype(np.float64)
    residual = wide.T @ (special.expit(wide @ w) - LABELS) + w
    np.testing.assert_allclose(residual, 0.0, atol=1e-4)
