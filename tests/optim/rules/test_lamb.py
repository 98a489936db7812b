"""LAMB against the formula of its paper."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from tests.optim import formulas
from tests.optim.oracle import LIMIT, SHAPES, our_run, require_near

CASES: list[dict[str, Any]] = [
    {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 0.1},
    {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-6, "weight_decay": 0.0},
]


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", CASES)
def test_steps_follow_the_formula(options: dict[str, Any], dtype: str, backend: str) -> None:
    formulas.require_followed(optim.LAMB, formulas.lamb, options, dtype, backend)


@pytest.mark.slow
def test_200_steps_follow_the_formula(backend: str) -> None:
    wanted = formulas.run(formulas.lamb, CASES[0], "float64", 200, SHAPES)
    require_near(our_run(optim.LAMB, CASES[0], "float64", 200), wanted, LIMIT["float64"])


def test_a_parameter_of_zeros_steps_by_the_rate(backend: str) -> None:
    weight = Parameter([0.0, 0.0])
    optim.LAMB([weight], lr=0.5).step({weight: [1.0, -1.0]})
    assert np.allclose(ops.to_numpy(weight.value), [-0.5, 0.5], rtol=1e-5)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"LAMB\(\): eps is"):
        optim.LAMB(eps=-1.0)
