"""Tests of pytest: gradients, `vmap` and `compile` of other projects' functions on the namespace EMBERHARMONY_SUITE.

A function that leaves the standard has to raise an error. Wrong values fail with the word WRONG, and are never listed
among the known failures.
"""

import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import functions
import numpy as np
import pytest
from sklearn import config_context

from emberharmony.xp import enable_scipy
from emberharmony.xp import numpy as host

XP = importlib.import_module(os.environ["EMBERHARMONY_SUITE"])
STEP, GRADIENT, VALUE = 1e-5, 1e-5, 1e-6
"""The step of difference quotients; the relative errors that gradients and values may have."""
each_function = pytest.mark.parametrize(
    ("function", "point"), [case[1:] for case in functions.CASES], ids=[case[0] for case in functions.CASES]
)
Function = Callable[[Any, Any], Any]
LONG = ("mlx", "stats.ttest_1samp.pvalue")
"""A namespace and a function of which MLX writes C++ code that its compiler needs minutes for."""


@pytest.fixture(autouse=True, scope="module")
def dispatch_by_namespace() -> Iterator[None]:
    """Lets scikit-learn and SciPy compute by the arrays' namespace."""
    enable_scipy()
    with config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    enable_scipy(False)


def new_array(values: np.ndarray) -> Any:
    """Returns an array of its own, since array-api-extra writes into the one it gets."""
    return XP.asarray(values, copy=True)


def require_equal(actual: Any, expected: Any, error: float, what: str) -> None:
    """Raises an AssertionError unless two arrays are equal but for an error."""
    are_equal = np.allclose(np.asarray(actual), np.asarray(expected), rtol=error, atol=error * 1e-3, equal_nan=True)
    assert are_equal, f"WRONG {what}: {np.asarray(actual)} instead of {np.asarray(expected)}"


@each_function
def test_the_gradient_is_that_of_differences(function: Function, point: np.ndarray) -> None:
    """Compares a weighted sum's gradient in one direction with a difference quotient."""
    weights = np.cos(np.arange(1, 200))

    def loss(xp: Any, x: Any) -> Any:
        result = xp.reshape(function(xp, x), (-1,))
        return xp.sum(result * xp.asarray(weights[: result.shape[0]]))

    direction = np.random.default_rng(1).standard_normal(point.shape)
    # NumPy's namespace, since spectra of MLX have too few digits for a difference quotient.
    end_losses = [float(loss(host, host.asarray(point + sign * STEP * direction))) for sign in (1, -1)]
    gradient = np.asarray(XP.grad(lambda x: loss(XP, x))(new_array(point)))
    slope, difference_quotient = float((gradient * direction).sum()), (end_losses[0] - end_losses[1]) / (2 * STEP)
    assert abs(slope - difference_quotient) < GRADIENT * max(1e-3, abs(difference_quotient)), (
        f"WRONG gradient: {slope} instead of {difference_quotient}"
    )


@each_function
def test_vmap_gives_the_values_of_each_item(function: Function, point: np.ndarray) -> None:
    """Compares `vmap` with a loop."""
    items = np.stack([point, point * 1.1 + 0.05])
    item_results = np.stack([np.asarray(function(XP, new_array(item))) for item in items])
    require_equal(XP.vmap(lambda x: function(XP, x))(new_array(items)), item_results, VALUE, "values of vmap")


@each_function
def test_compile_gives_the_values_of_each_call(
    function: Function, point: np.ndarray, request: pytest.FixtureRequest
) -> None:
    """Compares the compiled function, called with three inputs, with the plain one."""
    if XP.__name__.endswith(LONG[0]) and f"[{LONG[1]}]" in request.node.name:
        pytest.skip("the compiler of MLX needs minutes")
    compiled_function = XP.compile(lambda x: function(XP, x))
    for item in (point, point * 1.1 + 0.05, point):
        plain_result = function(XP, new_array(item))
        require_equal(compiled_function(new_array(item)), plain_result, VALUE, "values of compile")
