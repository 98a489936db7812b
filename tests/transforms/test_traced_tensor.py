"""A traced tensor has the methods that the tensors of all three libraries have with the same meaning."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import TracedTensorError
from emberharmony.transforms.traced_tensor import TracedTensor

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
METHODS: dict[str, Callable[[Any], Any]] = {
    "reshape to lengths": lambda x: x.reshape(3, 2),
    "reshape to a shape": lambda x: x.reshape((3, -1)),
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: x.reshape(1, 2, 1, 3).squeeze(),
    "squeeze of an axis": lambda x: x.reshape(1, 2, 3).squeeze(0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "diagonal": lambda x: x.diagonal(),
    "diagonal above": lambda x: x.diagonal(1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "conj": lambda x: x.conj(),
    "real": lambda x: x.real,
    "round": lambda x: x.round(),
    "sum": lambda x: x.sum(),
    "sum of an axis": lambda x: x.sum(0),
    "sum of axes": lambda x: x.sum(axis=(0, 1), keepdims=True),
    "mean": lambda x: x.mean(),
    "mean of an axis": lambda x: x.mean(1, keepdims=True),
    "prod": lambda x: x.prod(),
    "prod of an axis": lambda x: x.prod(1),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "all": lambda x: x.all(),
    "any": lambda x: x.any(axis=0),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(axis=1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(axis=0),
    "ndim": lambda x: x.ndim,
    "shape": lambda x: tuple(x.shape),
    "nbytes": lambda x: x.nbytes,
    "itemsize": lambda x: x.itemsize,
}


def plain(value: Any) -> Any:
    return ops.to_numpy(ops.stop_gradient(value)).tolist() if ops.is_tensor(value) else value


@pytest.mark.parametrize("method", METHODS)
def test_a_method_gives_the_result_of_the_native_one(method: str, backend: str) -> None:
    native = plain(METHODS[method](ops.array(X)))
    seen = []

    def loss(x: Any) -> Any:
        assert not isinstance(x, TracedTensor) or backend != "torch"
        result = METHODS[method](x)
        seen.append((plain(result), isinstance(x, TracedTensor)))
        return ops.sum(ops.square(x))

    with ops.checked(backend == "mlx"):
        ops.grad(loss)(ops.array(X))
    [(found, boxed)] = seen
    assert found == native or np.allclose(found, native)
    assert boxed == (backend != "torch")


def test_the_gradient_of_a_method_is_that_of_the_op(backend: str) -> None:
    def by_methods(x: Any) -> Any:
        return (x.reshape(3, 2).sum(0) * x.mT.mean(axis=0)).prod() + x.cumsum(1).max() - x.flatten().min()

    def by_ops(x: Any) -> Any:
        product = ops.multiply(ops.sum(ops.reshape(x, (3, 2)), 0), ops.mean(ops.matrix_transpose(x), 0))
        return ops.subtract(ops.add(ops.prod(product), ops.max(ops.cumsum(x, 1))), ops.min(x))

    with ops.checked(backend == "mlx"):
        found, wanted = ops.grad(by_methods)(ops.array(X)), ops.grad(by_ops)(ops.array(X))
    np.testing.assert_allclose(ops.to_numpy(found), ops.to_numpy(wanted))


def test_a_traced_tensor_has_the_device_of_its_value() -> None:
    ops.set_backend("numpy")
    devices = []
    ops.grad(lambda x: (devices.append(x.device), ops.sum(x))[1])(np.ones(2))
    assert devices == [np.ones(2).device]


@pytest.mark.parametrize(
    "read", [lambda x: x.item(), lambda x: x.tolist(), lambda x: x.max(0), lambda x: x.min(axis=1)]
)
def test_a_method_that_would_lose_the_gradient_or_differs_between_libraries_is_refused(
    read: Callable[[Any], Any],
) -> None:
    ops.set_backend("numpy")
    with pytest.raises(TracedTensorError):
        ops.grad(lambda x: (read(x), ops.sum(x))[1])(X)
