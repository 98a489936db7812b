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


class Layer:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def test_what_backward_returns_and_adds_is_constant_in_a_gradient_around_it(backend: str) -> None:
    weight = Parameter(3.0)

    def squared_gradient(x: Any) -> Any:
        loss = ops.backward(lambda: ops.multiply(weight.value, ops.square(x)), weight)
        return ops.add(ops.multiply(x, weight.grad), loss)

    assert lists(ops.value_and_grad(squared_gradient)(2.0)) == (20.0, 4.0)


def test_backward_finds_the_parameters_in_the_attributes_of_objects(backend: str) -> None:
    weight, shared, frozen = Parameter([1.0, 2.0]), Parameter(3.0), Parameter(1.0, trainable=False)
    model = Layer(weight=weight, parts=[Layer(scale=shared, name="a"), {"again": (shared, frozen)}], size=2)
    model.parts[0].parent = model

    def loss() -> Any:
        return ops.multiply(ops.sum(weight.value), shared.value)

    assert lists(ops.backward(loss, model)) == 9.0
    assert lists((weight.grad, shared.grad, frozen.grad)) == ([3.0, 3.0], 3.0, None)
    ops.zero_grad([model])
    assert (weight.grad, shared.grad) == (None, None)
    for empty in (Layer(), Layer(size=2, parts=[Layer(x=frozen)]), [3], None, ops.ones(2)):
        with pytest.raises(errors.ArgumentError, match=r"backward\(\) .* there is no trainable Parameter in params"):
            ops.backward(loss, empty)


def test_the_next_evaluation_on_mlx_also_computes_a_loss_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    mx = pytest.importorskip("mlx.core")
    evaluate, given = mx.eval, []
    monkeypatch.setattr(mx, "eval", lambda arrays: (given.append([*arrays]), evaluate(arrays)))
    with ops.use_backend("mlx"):
        weight, other = Parameter([1.0, 2.0]), ops.array([3.0])
        loss = ops.backward(lambda: ops.sum(ops.square(weight)), weight)
        ops.eval(other)
        assert any(x is loss for x in given[-1])
        ops.eval(other)
        ops.backward(lambda: ops.sum(ops.square(weight)), weight)
        ops.eval(other)
        assert [len(arrays) for arrays in given] == [2, 1, 1]
        # MLX cannot evaluate an array that leaked from a function that it compiles.
        leaked = []
        mx.compile(lambda x: (leaked.append(ops.backward(lambda: ops.sum(ops.multiply(weight, x)), weight)), x)[1])(
            other
        )
        ops.zero_grad(weight)
        ops.eval(ops.add(other, 1.0))
        assert len(given) == 5
