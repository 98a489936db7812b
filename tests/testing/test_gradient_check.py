"""`gradcheck` accepts right gradients and finds each kind of mistake."""

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
    wrong._second = lambda: [6 * X * wrong.w[0] + 1e-3]  # type: ignore[method-assign]
    assert right(wrong) == [True, True, False, False]
    wrong = problem()
    wrong._forward = lambda: [np.asarray(1.0)]  # type: ignore[method-assign]
    assert right(wrong) == [True, False, True, True]
    wrong = problem()
    wrong._mixed = lambda: [np.zeros_like(X)]  # type: ignore[method-assign]
    assert right(wrong) == [True, True, True, False]


def test_a_gradient_of_nan_is_a_mismatch(backend: str) -> None:
    with pytest.raises(GradientMismatchError):
        gradcheck(lambda x: ops.where(x > 0.5, x, ops.log(x - x)), (X,))


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("_pulled", "the gradient with respect to argument 1"),
        ("_pushed", "the derivative of result 1"),
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
    right = Problem._pulled
    monkeypatch.setattr(Problem, "_pulled", lambda self, *given: [ops.cast(x, "float64") for x in right(self, *given)])
    with pytest.raises(GradientMismatchError, match=f"is float64, expected {dtype}"):
        gradients(lambda x: ops.sum(x * x), (X,), dtype=dtype)


def test_gradients_use_the_same_weights_in_each_dtype(backend: str) -> None:
    wide, narrow = (gradients(lambda x: ops.sum(x * x), (X,), dtype=dtype)[0] for dtype in ("float64", "float32"))
    assert np.allclose(wide / X, (wide / X)[0, 0])
    assert np.abs(wide - narrow).max() <= 1e-6
    assert np.array_equal(wide, gradients(lambda x: ops.sum(x * x), (X,))[0])
