"""Adafactor against torch."""

from typing import Any

import pytest

from emberharmony import Buffer, Parameter, errors, ops, optim
from tests.optim.oracle import LIMIT, SHAPES, our_run, pure_run, require, require_near, torch_run

CASES: list[dict[str, Any]] = [
    {},
    {"lr": 0.5, "beta2_decay": -0.5, "eps": (1e-3, 1e-2), "d": 2.0, "weight_decay": 0.1, "maximize": True},
]


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", CASES)
def test_steps_equal_those_of_torch(options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    shapes = [*SHAPES, (2, 3, 4)]
    expected = torch_run("Adafactor", options, dtype, 20, shapes)
    require_near(our_run(optim.Adafactor, options, dtype, 20, shapes), expected, LIMIT[dtype])
    require_near(pure_run(optim.Adafactor, options, dtype, 20, shapes), expected, LIMIT[dtype])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", CASES)
def test_200_steps_equal_those_of_torch(options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    expected = torch_run("Adafactor", options, dtype, 200)
    require_near(our_run(optim.Adafactor, options, dtype, 200), expected, LIMIT[dtype])


def test_the_state_of_a_matrix_is_a_row_and_a_column(backend: str) -> None:
    weight = Parameter(ops.ones((7, 5)))
    optimizer = optim.Adafactor([weight])
    optimizer.step({weight: ops.ones((7, 5))})
    shapes = {name: tuple(x.value.shape) for name, x in optimizer.state[weight].items() if isinstance(x, Buffer)}
    assert shapes == {"row_var": (7, 1), "col_var": (1, 5)}


@pytest.mark.parametrize("options", [{"beta2_decay": 0.1}, {"eps": (-1.0, 0.1)}, {"eps": (None, -0.1)}, {"d": 0.5}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match=f"{next(iter(options))} is"):
        optim.Adafactor(**options)


def test_the_limits_of_options_hold_in_groups_too() -> None:
    with pytest.raises(errors.ArgumentError, match=r"Adafactor\(\): d is 0\.5, expected a number >= 1"):
        optim.Adafactor([{"params": [Parameter([1.0])], "d": 0.5}])
