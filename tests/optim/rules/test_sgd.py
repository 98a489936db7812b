"""SGD against torch."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.optim import layout
from tests.optim.oracle import LIMIT, our_run, pure_run, require, require_near, require_steps_of_torch
from tests.optim.rules.test_adam import kernels

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


@pytest.fixture(name="called")
def called_kernels(backend: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets the name of each kernel of PyTorch that computes a step."""
    return kernels(backend, monkeypatch)


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_kernel_gives_what_the_ops_give(options: dict[str, Any], dtype: str, backend: str, called: list[str]) -> None:
    require(backend, dtype)
    shapes = [(5, 7), (), (33,), (0, 2), (3,), (2, 2, 9)]  # some do not fill the registers of a processor
    found, expected = (run(optim.SGD, options, dtype, 6, shapes) for run in (our_run, pure_run))
    require_near(found, expected, LIMIT[dtype])
    assert len(called) == (6 if backend == "torch" else 0)


@pytest.mark.parametrize("change", ["transposed", "half precision"])
def test_tensors_that_no_kernel_takes(
    change: str, backend: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "FEWEST", 10**6)  # a kernel would take a vector
    found = []
    for changed in (True, False):
        x = ops.reshape(ops.arange(12, dtype="float32"), (3, 4))
        if changed:
            x = ops.transpose(x) if change == "transposed" else ops.cast(x, "float16")
        elif change == "transposed":
            x = ops.convert_to_tensor(ops.to_numpy(x).T.copy())
        cells = [Parameter(ops.ones_like(x)) for _ in range(5)]
        optimizer = optim.SGD(cells, lr=0.5, momentum=0.5)
        for _ in range(3):
            optimizer.step(dict.fromkeys(cells, x))
        found.append([ops.to_numpy(cell.value) for cell in cells])
        assert bool(called) is (backend == "torch" and not changed)
    np.testing.assert_array_equal(*found)
