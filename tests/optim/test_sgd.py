"""SGD against torch."""

from typing import Any

import pytest

from emberharmony import errors, optim
from tests.optim.oracle import LIMIT, our_run, pure_run, require, require_steps_of_torch

OPTIONS: list[dict[str, Any]] = [
    {},
    {"lr": 0.1, "weight_decay": 0.1},
    {"lr": 0.01, "momentum": 0.9},
    {"lr": 0.01, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.01},
    {"lr": 0.01, "momentum": 0.9, "nesterov": True, "maximize": True},
]


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", OPTIONS)
def test_steps_equal_those_of_torch(options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    require_steps_of_torch("SGD", options, dtype, 20, our_run, pure_run)


@pytest.mark.parametrize("options", [{"nesterov": True}, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}])
def test_nesterov_needs_momentum_without_dampening(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match="nesterov=True needs momentum > 0 and dampening=0, got momentum="):
        optim.SGD(**options)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", OPTIONS)
def test_200_steps_equal_those_of_torch(options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    require_steps_of_torch("SGD", options, dtype, 200, our_run)
