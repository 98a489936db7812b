"""Lion against the formula of its paper."""

from typing import Any

import pytest

from emberharmony import errors, optim
from tests.optim import formulas
from tests.optim.oracle import LIMIT, SHAPES, our_run, require_near

CASES: list[dict[str, Any]] = [
    {"lr": 0.01, "betas": (0.9, 0.99), "weight_decay": 0.1},
    {"lr": 0.1, "betas": (0.5, 0.5), "weight_decay": 0.0},
]


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", CASES)
def test_steps_follow_the_formula(options: dict[str, Any], dtype: str, backend: str) -> None:
    formulas.require_followed(optim.Lion, formulas.lion, options, dtype, backend)


@pytest.mark.slow
def test_200_steps_follow_the_formula(backend: str) -> None:
    wanted = formulas.run(formulas.lion, CASES[0], "float64", 200, SHAPES)
    require_near(our_run(optim.Lion, CASES[0], "float64", 200), wanted, LIMIT["float64"])


def test_wrong_options_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"Lion\(\): betas is"):
        optim.Lion(betas=(1.0, 0.9))
