"""Gradients that the user defines, `checkpoint`, and tensors of the enclosing function."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.core import errors
from tests.ops.trees import lists, near


def softplus_with_own_gradient(x: Any) -> Any:
    e = ops.exp(x)
    return ops.log(ops.add(e, 1.0)), lambda x, upstream: ops.multiply(upstream, ops.divide(e, ops.add(e, 1.0)))


def test_custom_vjp_accepts_lists_of_tensors_and_integer_results(backend: str) -> None:
    def swapped(x: Any, y: Any) -> Any:
        return ops.custom_vjp(
            lambda x, y: [ops.multiply(x, y), ops.argmax(x)],
            lambda primals, cotangents: [ops.multiply(cotangents[0], p) for p in primals],
            [x, y],
        )[0]

    x, y = ops.array([1.0, 2.0]), ops.array([3.0, 5.0])
    assert lists(ops.grad(lambda x, y: ops.sum(swapped(x, y)), argnums=(0, 1))(x, y)) == ([1.0, 2.0], [3.0, 5.0])
    assert lists(swapped(x, y)) == [3.0, 10.0]


def test_a_custom_gradient_has_derivatives_of_any_order(backend: str) -> None:
    own: Callable[..., Any] = ops.custom_gradient(softplus_with_own_gradient)
    wanted: Callable[..., Any] = ops.softplus
    assert near(own(ops.array(1.3)), wanted(ops.array(1.3)))
    for _ in range(3):
        own, wanted = ops.grad(own), ops.grad(wanted)
        assert near(own(1.3), wanted(1.3))


def test_a_custom_gradient_works_in_other_transforms(backend: str) -> None:
    own, x = ops.custom_gradient(softplus_with_own_gradient), ops.array([0.5, -1.0])
    wanted = 1 / (1 + np.exp([-0.5, 1.0]))
    assert near(ops.vmap(ops.grad(own))(x), wanted)
    assert near(ops.grad(lambda x: ops.sum(ops.vmap(own)(x)))(x), wanted)
    assert near(ops.jvp(own, (x,), (ops.ones(2),))[1], wanted)
    assert near(ops.jacfwd(own)(x), np.diag(wanted))
    weight = ops.array([1.0, 2.0])
    product = ops.custom_gradient(lambda x, w: (x * w, lambda x, w, upstream: (upstream * w, upstream * x)))
    rows = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert lists(ops.grad(lambda w: ops.sum(ops.vmap(product, in_axes=(0, None))(rows, w)))(weight)) == [4.0, 6.0]


def test_a_custom_gradient_replaces_the_derivative_and_must_have_its_shape(backend: str) -> None:
    tenfold = ops.custom_gradient(
        lambda d, k: (
            {"o": ops.multiply(d["a"], k), "i": ops.argmax(d["a"])},
            lambda d, k, upstream: ({"a": ops.multiply(upstream["o"], 10.0)}, None),
        )
    )
    assert lists(ops.grad(lambda d: ops.sum(tenfold(d, 2.0)["o"]))({"a": [1.0, 2.0]})) == {"a": [10.0, 10.0]}
    unlike = ops.custom_gradient(lambda x: (x, lambda x, upstream: ops.sum(upstream)))
    with pytest.raises(errors.ShapeError, match=r"a gradient has shape \(\), expected \(2,\)"):
        ops.grad(lambda x: ops.sum(unlike(x)))([1.0, 2.0])
    with pytest.raises(errors.ArgumentTypeError, match="pair"):
        ops.custom_gradient(ops.square)(ops.ones(2))


def test_checkpoint_runs_the_function_again_and_keeps_its_derivatives(backend: str) -> None:
    calls = []

    def f(d: Any, k: float) -> Any:
        calls.append(1)
        return ops.tanh(ops.multiply(ops.multiply(d["x"], d["y"]), k))

    arguments = {"x": 0.3, "y": 0.5}
    wanted = ops.grad(f)(arguments, 2.0)
    calls.clear()
    assert near(ops.grad(ops.checkpoint(f))(arguments, 2.0), wanted)
    assert len(calls) > 1
    assert near(ops.grad(ops.grad(ops.checkpoint(ops.tanh)))(0.3), ops.grad(ops.grad(ops.tanh))(0.3))
    cubes = ops.hessian(lambda x: ops.sum(ops.checkpoint(lambda y: ops.power(y, 3.0))(x)))([1.0, 2.0])
    assert lists(cubes) == [[6.0, 0.0], [0.0, 12.0]]


def test_a_function_that_a_transform_runs_again_draws_the_same_numbers(backend: str) -> None:
    def noisy(x: Any) -> Any:
        return ops.multiply(x, ops.random.uniform((4,)))

    def portable(x: Any) -> Any:
        return ops.multiply(x, ops.random.uniform((4,), generator=generator))

    for f in (noisy, portable):
        generator, x = ops.random.Generator(1), ops.ones(4)
        for again in (f, ops.checkpoint(f), ops.custom_gradient(lambda x, f=f: call_with_gradient(f, x))):
            y, pull = ops.vjp(again, x)
            assert lists(pull(ops.ones(4))) == lists(pull(ops.ones(4))) == (lists(y),)
            assert lists(ops.vjp(again, x)[0]) != lists(y)
        value, gradient = ops.value_and_grad(lambda x, f=f: ops.sum(ops.checkpoint(f)(x)))(x)
        assert near(ops.sum(gradient), value)


def test_all_elements_of_a_jacobian_use_the_same_draw(backend: str) -> None:
    def noisy(x: Any, y: Any) -> Any:
        return ops.multiply(ops.multiply(x, ops.random.uniform((3,))), y)

    for f in (noisy, ops.checkpoint(noisy)):
        for jacobian in (ops.jacobian, ops.jacfwd):
            by_x, by_y = jacobian(f, argnums=(0, 1))(ops.ones(3), 2.0)
            assert near(by_x, ops.multiply(ops.diag(by_y), 2.0))
    slices = ops.vmap(ops.value_and_grad(lambda x: ops.sum(ops.checkpoint(noisy)(x, 1.0))))(ops.ones((2, 3)))
    assert near(slices[0], ops.sum(slices[1], axis=1))
    assert len(set(lists(slices[0]))) == 2


def call_with_gradient(f: Callable[..., Any], x: Any) -> Any:
    factor = f(ops.ones(4))
    return ops.multiply(x, factor), lambda x, upstream: ops.multiply(upstream, factor)


def own_multiple(x: Any, w: Any) -> Any:
    return ops.custom_gradient(lambda x: (ops.multiply(x, w), lambda x, upstream: ops.multiply(upstream, w)))(x)


CLOSED: dict[str, Callable[[Any, Any], Any]] = {
    "checkpoint": lambda x, w: ops.checkpoint(lambda z: ops.multiply(z, w))(x),
    "custom_gradient": own_multiple,
}


@pytest.mark.parametrize("form", CLOSED)
def test_a_tensor_from_the_closure_is_constant_or_refused(form: str, backend: str) -> None:
    closed, x = CLOSED[form], ops.array(3.0)
    assert lists(ops.grad(lambda x: closed(x, ops.array(2.0)))(x)) == 2.0
    assert lists(ops.grad(lambda w: closed(x, ops.stop_gradient(w)))(2.0)) == 0.0
    for derivative, right in (
        (lambda: ops.grad(lambda w: closed(x, w))(2.0), 3.0),
        (lambda: ops.grad(closed, (0, 1))(x, 2.0), (2.0, 3.0)),
        (lambda: ops.grad(lambda w: closed(ops.multiply(w, w), w))(2.0), 12.0),
        (lambda: ops.vjp(closed, x, 2.0)[1](1.0), (2.0, 3.0)),
        (lambda: ops.jvp(lambda w: closed(x, w), (2.0,), (1.0,)), (6.0, 3.0)),
        (lambda: ops.jacobian(lambda w: closed(x, w))(2.0), 3.0),
        (lambda: ops.hessian(lambda w: closed(x, ops.square(w)))(2.0), 6.0),
        (lambda: ops.grad(lambda w: ops.grad(closed)(x, w))(2.0), 1.0),
        (lambda: ops.grad(lambda x: ops.grad(closed, 1)(x, 2.0))(x), 1.0),
        (lambda: ops.vmap(ops.grad(closed, 1))([1.0, 2.0], [3.0, 4.0]), [1.0, 2.0]),
        (lambda: ops.grad(lambda w: ops.sum(ops.vmap(lambda x: closed(x, w))([1.0, 2.0])))(2.0), 3.0),
    ):
        with contextlib.suppress(errors.TracedTensorError):
            assert near(derivative(), right)
    weight = Parameter(2.0)
    with pytest.raises(errors.TracedTensorError, match="pass it as an argument"):
        ops.backward(lambda: closed(x, weight.value), weight)


def test_custom_vjp_has_the_given_gradients(backend: str) -> None:
    def product(a: Any, b: Any) -> Any:
        return ops.custom_vjp(lambda a, b: [a * b], lambda primals, cts: [cts[0] * 10.0, cts[0] * primals[0]], [a, b])[
            0
        ]

    assert float(product(ops.array(2.0), ops.array(3.0))) == 6.0
    first, second = ops.grad(product, argnums=(0, 1))(2.0, 3.0)
    assert (float(first), float(second)) == (10.0, 2.0)
    assert float(ops.grad(lambda a: ops.grad(product, argnums=1)(a, 3.0))(2.0)) == 1.0


@pytest.mark.parametrize("gradient", [lambda g: g, lambda upstream: upstream, lambda upstream, x: upstream])
def test_a_gradient_function_without_a_parameter_upstream_is_refused(gradient: Any, backend: str) -> None:
    function = ops.custom_gradient(lambda x: (ops.square(x), gradient))
    with pytest.raises(errors.ArgumentTypeError, match=r"gradient\(\*args, upstream=cotangent\)"):
        ops.grad(function)(1.0)
