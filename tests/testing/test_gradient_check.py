"""`gradcheck` accepts right gradients and finds each kind of mistake."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.testing.gradient_check import GradientMismatchError, Problem, gradcheck, gradients

X = np.array([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]])
Z = np.array([0.3 + 1.0j, -0.5 + 0.2j])


def test_right_gradients_pass(backend: str) -> None:
    gradcheck(lambda x, y: ops.sum(ops.tanh(ops.matmul(x, y))), (X, X.T))
    gradcheck(lambda tree: {"y": ops.exp(tree["x"]), "n": 3}, ({"x": X, "unused": "a string"},))
    gradcheck(lambda x: ops.exp(x * x), (Z,))
    gradcheck(lambda x: ops.concatenate([x, ops.zeros_like(x) / 0.0]), (X,))


def test_a_wrong_derivative_is_found(backend: str) -> None:
    with pytest.raises(GradientMismatchError, match=rf"the gradient on backend '{backend}': derivatives give"):
        gradcheck(lambda x: ops.round(x, 9), (X,))


def test_the_error_names_the_worst_element(backend: str) -> None:
    def rounded_at_one_place(x: Any) -> Any:
        return ops.where(ops.equal(ops.arange(3), 1), ops.round(x, 9), x)

    with pytest.raises(GradientMismatchError, match=r"worst at element \(\d, 1\) of argument 0: -?0, expected"):
        gradcheck(rounded_at_one_place, (X,), seed=1)


def test_a_wrong_second_or_forward_derivative_is_found(backend: str) -> None:
    def problem() -> Problem:
        return Problem(lambda x: ops.sum(x * x * x), (X,))

    def right(checked: Problem) -> list[bool]:
        return [check.error <= 1e-6 for check in checked.checks(2)]

    assert right(problem()) == [True, True, True, True]
    wrong = problem()
    wrong._second_derivative = lambda: [6 * X * wrong.w[0] + 1e-3]  # type: ignore[method-assign]
    assert right(wrong) == [True, True, False, False]
    wrong = problem()
    wrong._forward_tangents = lambda: [np.asarray(1.0)]  # type: ignore[method-assign]
    assert right(wrong) == [True, False, True, True]
    wrong = problem()
    wrong._pull_back_of_push = lambda: [np.zeros_like(X)]  # type: ignore[method-assign]
    assert right(wrong) == [True, True, True, False]


def test_a_gradient_of_nan_is_a_mismatch(backend: str) -> None:
    with pytest.raises(GradientMismatchError):
        gradcheck(lambda x: ops.where(x > 0.5, x, ops.log(x - x)), (X,))


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("_pull_back", "the gradient with respect to argument 1"),
        ("_push_forward", "the derivative of result 1"),
    ],
)
def test_a_derivative_of_another_dtype_is_found(
    method: str, what: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(Problem, method)

    def narrow(self: Problem, *primals: Any) -> list[Any]:
        first, second = right(self, *primals)
        return [first, ops.cast(second, "float32")]

    monkeypatch.setattr(Problem, method, narrow)
    with pytest.raises(GradientMismatchError, match=rf"{what} on backend '{backend}' is float32, expected float64"):
        gradcheck(lambda x, y: (x * y, x + y), (X, X), order=1)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_of_another_dtype_are_found(dtype: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = gradients(lambda x: ops.sum(x * x), (X,), dtype=dtype)
    assert found.shape == X.shape
    right = Problem._pull_back
    monkeypatch.setattr(
        Problem, "_pull_back", lambda self, *given: [ops.cast(x, "float64") for x in right(self, *given)]
    )
    with pytest.raises(GradientMismatchError, match=f"is float64, expected {dtype}"):
        gradients(lambda x: ops.sum(x * x), (X,), dtype=dtype)


def at_end(value: float) -> Callable[[Any], Any]:
    """Returns the change that replaces the last element of a gradient."""
    return lambda g: ops.reshape(ops.concatenate([ops.ravel(g)[:-1], ops.full((1,), value, dtype="float64")]), (2, 3))


FAULTS: dict[str, Callable[[Any], Any]] = {
    "twice": lambda g: ops.multiply(g, 2.0),
    "the other sign": ops.negative,
    "nothing": ops.zeros_like,
    "a little": lambda g: ops.multiply(g, 1.0 + 1e-4),
    "transposed": lambda g: ops.reshape(ops.transpose(g), (2, 3)),
    "moved": lambda g: ops.roll(g, 1, 1),
    "a late NaN": at_end(float("nan")),
    "a late infinity": at_end(float("inf")),
    "a late 0": at_end(0.0),
    "summed": lambda g: ops.broadcast_to(ops.sum(g, 0, keepdims=True), (2, 3)),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("method", "name"), [("_pull_back", "the gradient"), ("_second_derivative", "the second order")]
)
def test_a_fault_of_a_derivative_is_named(
    method: str, name: str, fault: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, change = getattr(Problem, method), FAULTS[fault]

    def wrong(self: Problem, *given: Any) -> list[Any]:
        found = [change(ops.convert_to_tensor(g)) for g in right(self, *given)]
        return found if method == "_pull_back" else [ops.to_numpy(g) for g in found]

    monkeypatch.setattr(Problem, method, wrong)
    with pytest.raises(GradientMismatchError, match=f"{name} on backend '{backend}'"):
        gradcheck(lambda x: ops.sum(ops.exp(ops.multiply(x, ops.flip(x, 0)))), (X,))


@pytest.mark.parametrize("method", ["_pull_back", "_push_forward"])
def test_the_tolerance_is_a_share_of_the_derivative(method: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, x = getattr(Problem, method), np.array([0.7])
    for tolerance in (1e-6, 1e-4):
        for share, passes in ((0.0, True), (0.5, True), (2, False), (8, False), (64, False)):
            # The error of the gradient is relative to the sum of both derivatives, that of the forward mode to one.
            factor = 1.0 + (2 if method == "_pull_back" else 1) * share * tolerance
            monkeypatch.setattr(
                Problem, method, lambda self, *given, by=factor: [ops.multiply(g, by) for g in right(self, *given)]
            )
            name = "the gradient on" if method == "_pull_back" else "forward against reverse mode on"
            with contextlib.nullcontext() if passes else pytest.raises(GradientMismatchError, match=name):
                gradcheck(lambda x: ops.exp(x), (x,), order=1, tolerance=tolerance)


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a polynomial": (lambda x: x * x * x - 2.0 * x, (X,)),
    "several results": (lambda x: {"a": ops.sin(x), "b": [ops.cos(x), 3, ops.argmax(x)]}, (X,)),
    "several arguments": (lambda a, b: ops.matmul(a, ops.transpose(b)) / ops.sum(ops.square(b)), (X, X + 1.0)),
    "an unused argument": (lambda a, b: ops.exp(a), (X, X)),
    "a constant result": (lambda a: (ops.exp(a), ops.ones_like(a)), (X,)),
    "large numbers": (lambda x: ops.sum(ops.square(x)) * 1e12, (X * 1e6,)),
    "small numbers": (lambda x: ops.sum(ops.square(x)), (X * 1e-6,)),
    "zeros": (lambda x: ops.sum(ops.sin(x) * x), (np.zeros((2, 3)),)),
    "a broadcast": (lambda a, b: a * b, (X, X[0])),
    "indices": (lambda x: ops.take(x, np.array([0, 0, -1]), 1), (X,)),
    "a masked branch": (lambda x: ops.where(ops.greater(x, 0.0), ops.log(ops.maximum(x, 0.05)), 0.0), (X,)),
    "complex numbers": (lambda z: ops.abs(z) + ops.real(z * z), (Z,)),
    "complex and real": (lambda z, x: z * ops.sum(x), (Z, X)),
    "a solution": (lambda a: ops.solve(ops.add(a + ops.transpose(a), 9 * np.eye(2)), np.ones(2)), (X[:, :2],)),
    "a loop": (lambda x: ops.fori_loop(0, 3, lambda i, y: ops.tanh(y * x), x), (X,)),
    "a number that is not finite": (lambda x: ops.multiply(x, 2.0), (np.array([1.0, np.nan, np.inf]),)),
    "integers beside": (lambda x, i: ops.take(x, i, 1), (X, np.array([0, 2]))),
    "0-d": (lambda x: ops.exp(x), (np.asarray(0.3),)),
    "nothing": (lambda x: ops.sum(x), (np.zeros((0, 3)),)),
    "a normalization": (lambda x: ops.layer_normalization(x), (X,)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_pass(name: str, backend: str) -> None:
    gradcheck(RIGHT[name][0], RIGHT[name][1])


def test_gradients_use_the_same_weights_in_each_dtype(backend: str) -> None:
    wide, narrow = (gradients(lambda x: ops.sum(x * x), (X,), dtype=dtype)[0] for dtype in ("float64", "float32"))
    assert np.allclose(wide / X, (wide / X)[0, 0])
    assert np.abs(wide - narrow).max() <= 1e-6
    assert np.array_equal(wide, gradients(lambda x: ops.sum(x * x), (X,))[0])
