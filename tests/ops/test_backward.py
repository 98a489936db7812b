"""`backward` and `zero_grad`: gradients that parameters accumulate."""

from typing import Any

import pytest

from emberharmony import Parameter, ops
from emberharmony.backend.discovery import load
from emberharmony.core import errors
from tests.ops.trees import lists


def test_backward_accumulates_gradients_until_zero_grad(backend: str) -> None:
    weight, bias, mean = Parameter([1.0, 2.0], name="weight"), Parameter(0.5), Parameter(0.0, trainable=False)
    x = ops.array([3.0, 4.0])

    def loss() -> Any:
        y = ops.add(ops.dot(weight.value, x), bias.value)
        mean.value = ops.add(mean.value, y)
        return ops.square(y)

    params = [weight, {"bias": bias, "again": weight}, mean, 3]
    assert lists(ops.backward(loss, params)) == 132.25
    assert lists((weight.grad, bias.grad, mean.grad, mean.value)) == ([69.0, 92.0], 23.0, None, 11.5)
    ops.backward(loss, params)
    assert lists((weight.grad, bias.grad, mean.value)) == ([138.0, 184.0], 46.0, 23.0)
    assert lists(weight.value) == [1.0, 2.0]
    ops.zero_grad(params)
    assert weight.grad is None
    assert bias.grad is None
    ops.eval(params)


def test_backward_restores_the_values_after_an_error(backend: str) -> None:
    weight = Parameter([1.0, 2.0])
    before = weight.value
    with pytest.raises(errors.ShapeError, match=r"backward\(\)"):
        ops.backward(lambda: ops.multiply(weight.value, 2.0), weight)
    assert weight.value is before
    assert weight.grad is None
    assert repr(weight).startswith("Parameter(shape=(2,), dtype=")


def test_gradients_of_parameters_are_plain_tensors(backend: str) -> None:
    weight = Parameter(2.0)
    loss = ops.backward(lambda: ops.square(weight.value), weight)
    for _ in range(2):
        weight.value = ops.subtract(weight.value, ops.multiply(weight.grad, 0.1))
    assert all(type(x) is type(load(backend).ones(())) for x in (loss, weight.grad, weight.value))
    assert not getattr(weight.value, "requires_grad", False)
