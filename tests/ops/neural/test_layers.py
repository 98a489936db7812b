"""The affine map and the lookup in a table: shapes, errors, gradients."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

X, W = np.float32([[1.0, 2.0, 3.0]]), np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    "arguments",
    [(X, W.T), (X, W[0]), (X, W[None]), (1.0, W), (X, W, [1.0]), (X, W, [[1.0, 2.0]]), (X, W, 1.0)],
)
def test_shapes_that_do_not_fit_are_refused(backend: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(errors.ShapeError, match=rf"linear\(\) on backend '{backend}': .*expected"):
        ops.linear(*arguments)


def test_the_weight_of_a_library_with_the_other_layout_is_transposed(backend: str) -> None:
    wanted = (X @ W + 1).tolist()
    assert ops.linear(X, W, [1.0, 1.0]).tolist() == wanted
    assert ops.linear(X, ops.matrix_transpose(W.T), [1.0, 1.0]).tolist() == wanted
    assert ops.linear(X, W.T, [1.0, 1.0], transposed=True).tolist() == wanted
    with pytest.raises(errors.ShapeError, match=r"in_features=3, ops\.linear transposed=False"):
        ops.linear(X, W, transposed=True)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_gradients_are_those_of_the_product_and_the_sum(
    backend: str, shape: tuple[int, ...], transposed: bool
) -> None:
    x, bias = np.linspace(-1.0, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape), np.ones(2, np.float32)
    weight = W.T.copy() if transposed else W

    def composed(x: Any, w: Any, b: Any) -> Any:
        return ops.sum(ops.tanh(ops.add(ops.matmul(x, ops.matrix_transpose(w) if transposed else w), b)))

    def native(x: Any, w: Any, b: Any) -> Any:
        return ops.sum(ops.tanh(ops.linear(x, w, b, transposed)))

    wanted, found = (ops.grad(fn, argnums=(0, 1, 2))(x, weight, bias) for fn in (composed, native))
    for one, other in zip(wanted, found, strict=True):
        assert tuple(one.shape) == tuple(other.shape)
        np.testing.assert_allclose(ops.to_numpy(one), ops.to_numpy(other), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_row_is_the_sum_over_its_places(backend: str) -> None:
    for indices in ([0, 2, 0, -1], ops.convert_to_tensor(np.array([0, 2, 0, 2]))):
        slope = ops.grad(lambda table, at=indices: ops.sum(ops.embedding(at, table)))(W)
        assert slope.tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]


def test_a_row_that_does_not_exist_is_refused(backend: str) -> None:
    for row in (3, [0, -4], np.array([[7]])):
        with pytest.raises(errors.IndexOutOfBoundsError, match=rf"embedding\(\) on backend '{backend}'"):
            ops.embedding(row, W)
    with ops.checked(), pytest.raises(errors.IndexOutOfBoundsError):
        ops.eval(ops.embedding(ops.convert_to_tensor([3]), W))  # Dask raises when a block is computed
    with pytest.raises(errors.ShapeError, match="expected a table"):
        ops.embedding(0, W[0])
    with pytest.raises(errors.EmberError) as caught:
        ops.embedding(ops.convert_to_tensor([0.5]), W)
    assert isinstance(caught.value, TypeError)


def test_layers_map_over_a_batch(backend: str) -> None:
    rows = ops.vmap(ops.linear, in_axes=(0, None, None))(np.concatenate([X, -X]), W, [1.0, 1.0])
    assert rows.tolist() == [(X[0] @ W + 1).tolist(), (1 - X[0] @ W).tolist()]
    found = ops.vmap(ops.embedding, in_axes=(0, None))(np.array([[0, 1], [2, 2]]), W)
    assert found.tolist() == W[[[0, 1], [2, 2]]].tolist()


@pytest.mark.parametrize("length", [1408, 1031, 4104])
def test_a_row_times_a_long_matrix_keeps_its_digits(backend: str, length: int) -> None:
    draw = np.random.default_rng(length)
    x, w = draw.standard_normal((1, 1, length)).astype("float32"), draw.standard_normal((70, length)).astype("float32")
    bias = draw.standard_normal(70).astype("float32")
    exact = x.astype("float64") @ w.T.astype("float64") + bias
    found = ops.linear(x, w, bias, transposed=True)
    scale = np.abs(x.astype("float64")) @ np.abs(w.T) + np.abs(bias)
    assert tuple(found.shape) == (1, 1, 70)
    assert (np.abs(ops.to_numpy(found) - exact) < 4e-7 * scale).all()
    of_x, of_w = ops.grad(lambda x, w: ops.sum(ops.square(ops.linear(x, w, bias, transposed=True))), (0, 1))(x, w)
    np.testing.assert_allclose(ops.to_numpy(of_x), 2 * exact @ w, atol=1e-5 * np.abs(2 * exact @ w).max())
    right = 2 * exact[0].T * x[0]
    np.testing.assert_allclose(ops.to_numpy(of_w), right, atol=1e-5 * np.abs(right).max())
