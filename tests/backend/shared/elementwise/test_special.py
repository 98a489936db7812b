"""The shared special functions, called with a plain namespace, against SciPy in float64."""

import types
from typing import Any

import numpy as np
import pytest

from emberharmony.backend.shared.elementwise import special_binding, special_integrals

scipy_special = pytest.importorskip("scipy.special")
FUNCTIONS = ("abs", "cos", "exp", "expm1", "floor", "isnan", "log", "log1p", "power", "sin", "sqrt")
XP = types.SimpleNamespace(
    **{name: getattr(np, name) for name in FUNCTIONS},
    digits=special_integrals.DOUBLE,
    picks=False,
    column=lambda numbers, x: np.reshape(numbers, (-1, *(1,) * x.ndim)),
    entries=lambda table, index: np.asarray(table)[index.astype(int)],
    pick=lambda mask, function, *arguments: function(*arguments),
    sum=np.sum,
    where=np.where,
)
POSITIVE = np.linspace(0.05, 40, 101)


@pytest.mark.parametrize(
    "name", ["gammaln", "digamma", "erfcx", "ndtr", "log_ndtr", "i0e", "i1", "i1e", "gamma", "expi", "j0", "j1"]
)
def test_functions_of_one_number_agree_with_scipy(name: str) -> None:
    x = np.concatenate([POSITIVE, -POSITIVE[POSITIVE < 20] - 0.013])
    with np.errstate(all="ignore"):
        found = special_binding.shared_function_of(name)(XP, x)
    np.testing.assert_allclose(found, getattr(scipy_special, name)(x), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_all_pieces_are_right_without_a_selection_of_elements(name: str) -> None:
    # `pick` here computes every element, as MLX does, so a piece gets arguments of the others.
    a, x = (grid.reshape(-1) for grid in np.meshgrid(POSITIVE, POSITIVE))
    with np.errstate(all="ignore"):
        found: Any = getattr(special_integrals, name)(XP, a, x)
    np.testing.assert_allclose(found, getattr(scipy_special, name)(a, x), rtol=1e-12, atol=1e-290)


def test_an_empty_tensor_has_an_empty_integral() -> None:
    empty = np.zeros((0, 3))
    assert special_integrals.betainc(XP, empty, empty, empty).shape == (0, 3)
