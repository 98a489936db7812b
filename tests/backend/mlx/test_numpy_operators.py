"""Operators of NumPy with an array of MLX: in a gradient they are ops, elsewhere NumPy's own."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.errors import TracedTensorError

mx = pytest.importorskip("mlx.core")
HOST = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow", "matmul", "mod")
}


@pytest.fixture(autouse=True)
def on_mlx() -> Any:
    with ops.use_backend("mlx"):
        yield


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_with_an_array_on_the_left_keeps_the_gradient(name: str) -> None:
    def loss(x: Any, host: Any) -> Any:
        return ops.sum(ops.square(OPERATORS[name](host, x * x)))

    x = ops.array([1.25, 1.5, 2.25])
    for transform in (ops.grad, ops.hessian):
        found, wanted = (transform(lambda x, host=host: loss(x, host))(x) for host in (HOST, ops.array(HOST)))
        assert isinstance(found, mx.array)
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)
    pushed = ops.jvp(lambda x: OPERATORS[name](HOST, x), (x,), (x,))[1]
    assert np.abs(np.asarray(pushed)).max() > 0


def test_what_is_no_operator_raises_an_error_in_a_gradient() -> None:
    x = ops.ones((3,))
    with pytest.raises(TracedTensorError, match=r"numpy\.sin was applied .* use ops\.sin"):
        ops.grad(lambda x: ops.sum(np.sin(x)))(x)
    with pytest.raises(TracedTensorError, match=r"numpy\.add\.reduce was applied"):
        ops.grad(lambda x: np.add.reduce(x * x))(x)

    def add_in_place(x: Any) -> Any:
        total = HOST.copy()
        total += x
        return ops.sum(total)

    with pytest.raises(TracedTensorError, match=r"write x = x \+ y"):
        ops.grad(add_in_place)(x)


def test_constants_and_what_runs_outside_of_transforms_are_arrays_of_numpy() -> None:
    x = ops.array([1.0, 2.0, 3.0])
    kinds: list[type] = []

    def loss(y: Any) -> Any:
        kinds.extend((type(HOST * x), type(np.sin(x)), type(np.add.reduce(x))))
        return ops.sum(y * ops.array(np.sin(x)))

    np.testing.assert_allclose(np.asarray(ops.grad(loss)(x)), np.sin([1.0, 2.0, 3.0]), rtol=1e-6)
    assert kinds == [np.ndarray, np.ndarray, np.float32]
    for name, apply in OPERATORS.items():
        found = apply(HOST, x)
        assert isinstance(found, np.ndarray), name
        np.testing.assert_array_equal(found, apply(HOST, np.asarray(x)))
    total = HOST.copy()
    total += x
    np.testing.assert_array_equal(total, HOST + np.float32([1.0, 2.0, 3.0]))
    assert np.multiply.outer(HOST[0], x).shape == (3, 3)
