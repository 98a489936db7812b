"""Special functions written for any array library, compared with SciPy in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony.backend.shared.elementwise import elementary

special = pytest.importorskip("scipy.special")
WIDE = np.concatenate([np.linspace(-30, 30, 601), np.logspace(-300, 1, 61), [np.inf, -np.inf, np.nan, 0.0]])


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_agree_with_scipy(name: str) -> None:
    found = getattr(elementary, name)(np, WIDE)
    np.testing.assert_allclose(found, getattr(special, name)(WIDE), rtol=1e-13, atol=1e-300)


def test_erf_in_float32_agrees_with_scipy() -> None:
    x = np.linspace(-6, 6, 1001, dtype=np.float32)
    np.testing.assert_allclose(elementary.erf_single(np, x), special.erf(x.astype(np.float64)), rtol=4e-7)


def test_erfinv_agrees_with_scipy_and_is_nan_outside_its_domain() -> None:
    x = np.concatenate([np.linspace(-1, 1, 401), 1 - np.logspace(-15, -1, 40), np.logspace(-300, -1, 40)])
    np.testing.assert_allclose(elementary.erfinv(np, x), special.erfinv(x), rtol=1e-13)
    assert np.isnan(elementary.erfinv(np, np.array([1.5, np.nan]))).all()


def test_i0_and_its_derivative_agree_with_scipy() -> None:
    x = np.linspace(-600, 600, 1001)
    np.testing.assert_allclose(elementary.i0(np, x), special.i0(x), rtol=2e-13)
    x = np.linspace(-50, 50, 1001)
    np.testing.assert_allclose(elementary.i0_slope(np, x, special.i0(x)), special.i1(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("function", [elementary.erf, elementary.i0])
def test_in_double_computes_in_float64_and_keeps_the_dtype(function: Callable[[Any, Any], Any]) -> None:
    found = elementary.compute_in_double(function, np, np.ones(2, np.float16))
    assert found.dtype == np.float16
