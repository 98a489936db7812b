"""SGD against torch."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.core import selection
from tests.optim.oracle import LIMIT, our_run, pure_run, require, require_near, require_steps_of_torch

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


@pytest.fixture
def kernels(backend: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Lets PyTorch compute all parameters in lists, and returns a list that gets the calls of its kernel."""
    called: list[Any] = []
    if backend == "torch":
        from emberharmony.backend.torch import optimizers

        native = optimizers.overwriting_sgd

        def counted(columns: Any, options: Any) -> Any:
            called.append(options)
            return native(columns, options)

        monkeypatch.setattr(optimizers, "overwriting_sgd", counted)
        monkeypatch.setattr(type(selection.current()), "listed", 100)
    return called


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_kernel_gives_what_the_ops_give(
    options: dict[str, Any], dtype: str, backend: str, kernels: list[Any]
) -> None:
    require(backend, dtype)
    shapes = [(5, 7), (), (33,), (0, 2), (3,), (2, 2, 9)]  # some do not fill the registers of a processor
    found, expected = (run(optim.SGD, options, dtype, 6, shapes) for run in (our_run, pure_run))
    require_near(found, expected, LIMIT[dtype])
    assert len(kernels) == (6 if backend == "torch" else 0)


@pytest.mark.parametrize("change", ["transposed", "half precision"])
def test_tensors_that_no_kernel_takes(change: str, backend: str, kernels: list[Any]) -> None:
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
        assert bool(kernels) is (backend == "torch" and not changed)
    np.testing.assert_array_equal(*found)
