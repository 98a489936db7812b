"""SGD against torch."""

from typing import Any

import pytest

from emberharmony import errors, optim
from tests.optim.oracle import LIMIT, our_run, pure_run, require, require_near, torch_run

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
    expected = torch_run("SGD", options, dtype, 20)
    require_near(our_run(optim.SGD, options, dtype, 20), expected, LIMIT[dtype])
    require_near(pure_run(optim.SGD, options, dtype, 20), expected, LIMIT[dtype])


@pytest.mark.parametrize("options", [{"nesterov": True}, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}])
def test_nesterov_needs_momentum_without_dampening(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match="nesterov=True needs momentum > 0 and dampening=0, got momentum="):
        optim.SGD(**options)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_200_steps_equal_those_of_torch(options: dict[str, Any], backend: str) -> None:
    expected = torch_run("SGD", options, "float32", 200)
    require_near(our_run(optim.SGD, options, "float32", 200), expected, LIMIT["float32"])
