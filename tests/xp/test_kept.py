"""Tests of writes into arrays that a transform has seen: it keeps the values that they had."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from tests.sampling import PROFILE


def _element(xp: Any, x: Any) -> Any:
    c = xp.ones(3)
    y = c * x
    c[0] = 5.0
    c[1:] *= 2.0
    return xp.sum(y)


def _view(xp: Any, x: Any) -> Any:
    c = xp.ones(3)
    y = xp.exp(c * x)
    part = c[1:]
    part[...] = 7.0
    return xp.sum(y * c)


def _whole(xp: Any, x: Any) -> Any:
    c = xp.ones(3)
    part = c[1:]
    y = part * x[1:]
    c[...] = 5.0
    e = xp.concat([c, x * x])
    c += 1.0
    return xp.sum(y) + xp.sum(e * e)


def _indices(xp: Any, x: Any) -> Any:
    i = xp.asarray([0, 1])
    y = xp.take(x * x, i)
    i[0] = 2
    return xp.sum(y)


def _reflected(xp: Any, x: Any) -> Any:
    c = xp.ones(3)
    y = xp.subtract(c, x) * xp.multiply(x, c)
    c[:] = 9.0
    return xp.sum(y)


WANTED: dict[Callable[[Any, Any], Any], list[float]] = {
    _element: [1.0, 1.0, 1.0],
    _view: [np.exp(1.0), 7 * np.exp(2.0), 7 * np.exp(3.0)],
    _whole: [4.0, 33.0, 109.0],
    _indices: [2.0, 4.0, 0.0],
    _reflected: [-1.0, -3.0, -5.0],
}


def _leave_to_deep(backend: str) -> None:
    """Skips a test that compiles, which takes seconds on other backends than NumPy."""
    if backend != "numpy" and PROFILE == "quick":
        pytest.skip("compiled by the profile deep")


@pytest.mark.parametrize("function", WANTED, ids=lambda function: function.__name__)
def test_a_constant_that_is_written_to_later_has_its_old_value_in_the_gradient(
    function: Callable[[Any, Any], Any], xp: Any
) -> None:
    x = xp.asarray([1.0, 2.0, 3.0])
    by_grad = xp.grad(lambda x: function(xp, x))(x)
    (by_vjp,) = xp.vjp(lambda x: function(xp, x), x)[1](xp.asarray(1.0))
    for made in by_grad, by_vjp:
        assert np.allclose(np.asarray(made), WANTED[function], rtol=1e-5)


def test_a_compiled_function_repeats_the_write(xp: Any, backend: str) -> None:
    _leave_to_deep(backend)

    def run(x: Any) -> Any:
        c = xp.ones(3)
        y = c * x
        c[0] = 5.0
        return y, c

    compiled = xp.compile(run)
    for _ in range(2):
        y, c = compiled(xp.asarray([1.0, 2.0, 3.0]))
        assert (y.tolist(), c.tolist()) == ([1.0, 2.0, 3.0], [5.0, 1.0, 1.0])


def test_a_pullback_has_the_arguments_that_it_was_made_with(xp: Any) -> None:
    x, c = xp.asarray([1.0, 2.0]), xp.ones(2)
    _, pull = xp.vjp(lambda x, c: c * x, x, c)
    c[0] = 5.0
    assert [made.tolist() for made in pull(xp.ones(2))] == [[1.0, 1.0], [1.0, 2.0]]
    assert c.tolist() == [5.0, 1.0]


def test_a_pullback_of_ops_keeps_the_arrays_of_a_tree(xp: Any) -> None:
    x, y = xp.ones(2), xp.ones(2)
    _, pull = ops.vjp(lambda tree: xp.sum(tree["x"] * tree["x"] * tree["y"]), {"x": x, "y": y})
    x[0], y[1:] = 5.0, 7.0
    x += 1.0
    (cotangents,) = pull(xp.asarray(1.0))
    assert (cotangents["x"].tolist(), cotangents["y"].tolist()) == ([2.0, 2.0], [1.0, 1.0])
    assert (x.tolist(), y.tolist()) == ([6.0, 2.0], [1.0, 7.0])


def test_what_was_written_into_a_traced_array_may_change_later(xp: Any, backend: str) -> None:
    _leave_to_deep(backend)

    def run(x: Any) -> Any:
        c, y = xp.ones(2), x * 1.0
        y[0] = c
        c[0] = 5.0
        return y

    compiled = xp.compile(run)
    for _ in range(2):
        assert compiled(xp.zeros((2, 2))).tolist() == [[1.0, 1.0], [0.0, 0.0]]
