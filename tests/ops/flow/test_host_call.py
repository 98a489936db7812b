"""`host_call`: functions on NumPy arrays inside transforms and compiled functions."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors
from emberharmony.testing.gradient_check import gradcheck
from tests.ops.trees import lists, near

X = np.array([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]])


def sine(x: Any) -> Any:
    """Returns the sine, computed by NumPy; ops compute its derivative."""
    return ops.host_call(np.sin, x, vjp=lambda x, upstream: ops.multiply(upstream, ops.cos(x)))


def hosted_sine(x: Any) -> Any:
    """Returns the sine; NumPy computes it and its derivatives."""
    return ops.host_call(np.sin, x, vjp=lambda x, upstream: ops.multiply(upstream, hosted_cosine(x)))


def hosted_cosine(x: Any) -> Any:
    vjp = lambda x, upstream: ops.negative(ops.multiply(upstream, hosted_sine(x)))
    return ops.host_call(np.cos, x, vjp=vjp)


@pytest.mark.parametrize("function", [sine, hosted_sine])
@pytest.mark.parametrize("checked", [False, True])
def test_a_host_call_has_the_derivatives_of_its_vjp(function: Any, checked: bool, backend: str) -> None:
    with ops.checked(checked):
        gradcheck(function, (X,))
        gradcheck(lambda x: ops.exp(ops.multiply(function(ops.exp(x)), x)), (X,))


@pytest.mark.parametrize("function", [sine, hosted_sine])
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_a_host_call_works_in_other_transforms(function: Any, backend: str) -> None:
    x = ops.array([0.5, -1.0, 0.2])
    cosine = np.cos([0.5, -1.0, 0.2])
    assert near(function(x), np.sin([0.5, -1.0, 0.2]))
    assert near(ops.vmap(function)(x), np.sin([0.5, -1.0, 0.2]))
    assert near(ops.vmap(ops.grad(function))(x), cosine)
    assert near(ops.grad(lambda x: ops.sum(ops.vmap(function)(x)))(x), cosine)
    assert near(ops.jvp(function, (x,), (ops.ones(3),))[1], cosine)
    for jacobian in (ops.jacobian, ops.jacfwd):
        assert near(jacobian(function)(x), np.diag(cosine))
    assert near(ops.hessian(lambda x: ops.sum(function(x)))(x), np.diag(-np.sin([0.5, -1.0, 0.2])))
    assert near(ops.grad(lambda x: ops.sum(ops.checkpoint(function)(x)))(x), cosine)
    total = ops.scan(lambda total, y: (ops.add(total, function(y)), total), 0.0, x)[0]
    assert near(total, np.sin([0.5, -1.0, 0.2]).sum())


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_compiled_function_may_contain_a_host_call(backend: str) -> None:
    x, wanted = ops.array([0.5, -1.0]), np.sin([0.5, -1.0])
    assert near(ops.compile(lambda x: ops.multiply(sine(ops.add(x, 0.0)), 2.0))(x), 2 * wanted)
    assert near(ops.compile(ops.grad(lambda x: ops.sum(sine(x))))(x), np.cos([0.5, -1.0]))
    assert near(ops.grad(ops.compile(lambda x: ops.sum(sine(x))))(x), np.cos([0.5, -1.0]))


def test_a_host_call_without_a_vjp_is_constant_or_refused(backend: str) -> None:
    def host(x: Any) -> Any:
        return ops.host_call(np.sin, x)

    x = ops.array([0.5, -1.0])
    constant = ops.grad(lambda x: ops.sum(ops.multiply(x, host(ops.stop_gradient(x)))))(x)
    assert near(constant, np.sin([0.5, -1.0]))
    unused = ops.grad(lambda x: (ops.sum(x), host(x)), has_aux=True)(x)
    assert near(unused[0], np.ones(2))
    assert near(unused[1], np.sin([0.5, -1.0]))
    for derivative in (
        lambda: ops.grad(lambda x: ops.sum(host(x)))(x),
        lambda: ops.vjp(host, x)[1](x),
        lambda: ops.jvp(host, (x,), (x,)),
        lambda: ops.vmap(ops.grad(host))(x),
        lambda: ops.jacobian(host)(x),
    ):
        with pytest.raises(errors.UnsupportedOpError, match=r"'sin'.*no derivative was given.*vjp"):
            derivative()
    once = ops.grad(lambda x: ops.sum(ops.host_call(np.sin, x, vjp=lambda x, upstream: host(x))))
    with pytest.raises(errors.UnsupportedOpError, match="no derivative was given"):
        ops.grad(lambda x: ops.sum(once(x)))(x)


def test_a_host_call_accepts_and_returns_trees(backend: str) -> None:
    seen: list[Any] = []

    def host(d: Any, k: int, flags: Any) -> Any:
        seen.append((type(d["x"]), d["x"].flags.writeable, k, flags.dtype.kind))
        return {"sum": d["x"].sum() + d["y"] * k, "count": 3, "list": [1.0, 2.0]}

    def function(d: Any) -> Any:
        vjp = lambda d, k, flags, upstream: (
            {"x": ops.broadcast_to(upstream["sum"], (2,)), "y": ops.multiply(upstream["sum"], k)},
            None,
            None,
        )
        return ops.host_call(host, d, 5, ops.array([True, False]), vjp=vjp)

    d = {"x": ops.array([1.0, 2.0]), "y": ops.array(3.0)}
    assert lists(function(d)) == {"sum": 18.0, "count": 3, "list": [1.0, 2.0]}
    assert seen == [(np.ndarray, False, 5, "b")]
    assert lists(ops.grad(lambda d: function(d)["sum"])(d)) == {"x": [1.0, 1.0], "y": 5.0}
    same = ops.host_call(lambda x: x, d["x"])
    assert same is not d["x"]
    assert ops.dtype(ops.host_call(lambda x: x.astype("float16"), d["x"])) == "float16"


def test_wrong_host_calls_are_refused(backend: str) -> None:
    x = ops.array([1.0, 2.0])
    foreign = ops.host_call(lambda a: np.float32(a.sum()), x)
    assert ops.is_tensor(foreign)
    for call, kind, message in (
        (lambda: ops.host_call(3, x), errors.ArgumentTypeError, "takes a function"),
        (lambda: ops.host_call(np.sin, x, vjp=3), errors.ArgumentTypeError, "upstream"),
        (lambda: ops.host_call(np.sin, x, vjp=lambda x: x), errors.ArgumentTypeError, "name a parameter upstream"),
        (lambda: ops.host_call(lambda x: "text", x), errors.DTypeError, "the function's result"),
        (lambda: ops.host_call(lambda x: x.__setitem__(0, 1.0), x), ValueError, "read-only"),
        (lambda: ops.host_call(lambda x: 1 / 0, x), ZeroDivisionError, "division"),
        (
            lambda: ops.grad(lambda x: ops.sum(ops.host_call(np.sin, x, vjp=lambda x, upstream: ops.sum(x))))(x),
            errors.ShapeError,
            r"gradient has shape \(\), expected \(2,\)",
        ),
    ):
        with pytest.raises(kind, match=message):
            call()
