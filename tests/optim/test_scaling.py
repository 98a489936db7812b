"""`LossScaler` against torch's `GradScaler`."""

import math
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from tests.ops.trees import lists


def test_the_factor_is_that_of_torch(backend: str) -> None:
    torch = pytest.importorskip("torch")
    scale, tracker = torch.tensor(1024.0), torch.tensor(0, dtype=torch.int32)
    scaler = optim.LossScaler(1024.0, growth_factor=2.0, backoff_factor=0.25, growth_interval=3)
    weight = Parameter([1.0, 2.0])
    for value in [1.0, 2.0, 3.0, 4.0, math.inf, 5.0, math.nan, 1.0, 1.0, 1.0, 1.0]:
        found = torch.tensor(0.0 if math.isfinite(value) else 1.0)
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 3)
        weight.grad = ops.convert_to_tensor([value, 1.0])
        before = scaler.scale
        assert scaler.unscale(weight) is math.isfinite(value)
        assert scaler.state_dict() == {"scale": float(scale), "_growth_tracker": int(tracker)}
        assert weight.grad is None if found else lists(weight.grad) == pytest.approx([value / before, 1 / before])


def test_small_gradients_of_float16_survive(backend: str) -> None:
    weight = Parameter(ops.ones((2,), "float16"))
    scaler = optim.LossScaler(1024.0)

    def loss() -> Any:
        return ops.sum(ops.multiply(ops.multiply(weight, 2.0**-12), 2.0**-10))

    ops.backward(lambda: scaler.scaled(ops.cast(loss(), "float32")), weight)
    assert scaler.unscale([weight])
    assert np.allclose(ops.to_numpy(weight.grad), 2.0**-22, rtol=1e-3)
    assert ops.dtype(weight.grad) == "float16"


def test_the_state_is_restored(backend: str) -> None:
    scaler = optim.LossScaler(8.0)
    scaler.unscale([])
    again = optim.LossScaler()
    again.load_state_dict(scaler.state_dict())
    assert (again.scale, again.steps) == (8.0, 1)
    with pytest.raises(errors.ArgumentError, match="the state lacks scale, _growth_tracker"):
        again.load_state_dict({})


@pytest.mark.parametrize(
    "options", [{"scale": 0.0}, {"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"growth_interval": 0}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match=rf"LossScaler\(\): {next(iter(options))} is"):
        optim.LossScaler(**options)
