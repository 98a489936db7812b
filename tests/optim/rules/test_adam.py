"""Adam and its family against torch."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops, optim
from emberharmony.optim import stepping
from tests.optim.oracle import LIMIT, our_run, pure_run, require, require_steps_of_torch

CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.01, "betas": (0.0, 0.5), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True, "eps": 1e-3}),
    ("AdamW", {"lr": 0.01, "maximize": True, "betas": (0.5, 0.9)}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    (
        "NAdam",
        {"lr": 0.01, "betas": (0.5, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True},
    ),
    ("NAdam", {"lr": 0.01, "eps": 1e-3, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.01, "betas": (0.5, 0.5), "weight_decay": 0.1, "decoupled_weight_decay": True}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_equal_those_of_torch(name: str, options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    require_steps_of_torch(name, options, dtype, 20, our_run, pure_run)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_200_steps_equal_those_of_torch(name: str, options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    require_steps_of_torch(name, options, dtype, 200, our_run)


def kernels(backend: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets the name of each kernel of PyTorch that computes a step."""
    found: list[str] = []
    if backend == "torch":
        from emberharmony.backend.torch.flow import steps

        def noted(name: str, native: Any) -> Any:
            return lambda *given: found.append(name) or native(*given)

        called = {name: noted(name, native) for name, native in steps.KERNELS.items()}
        monkeypatch.setattr(steps, "KERNELS", called)
    return found


def stepped(options: dict[str, Any], gradients: list[Any]) -> list[Any]:
    """Returns a parameter and the tensors of its state after steps of Adam."""
    cell = Parameter(ops.ones_like(gradients[0]))
    optimizer = optim.Adam([cell], **options)
    for gradient in gradients:
        optimizer.step({cell: gradient})
    state = optimizer.state[cell]
    assert state["step"] == len(gradients)
    return [ops.to_numpy(x) for x in (cell.value, *(state[name].value for name in state if name != "step"))]


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("options", [options for name, options in CASES if name == "Adam"])
def test_a_kernel_gives_what_the_ops_give(
    options: dict[str, Any], dtype: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(backend, dtype)
    rng = np.random.default_rng(0)
    gradients = [ops.cast(ops.convert_to_tensor(rng.normal(size=(5, 7)) * 10.0**i), dtype) for i in range(-3, 3)]
    ran = kernels(backend, monkeypatch)
    found = stepped(options, gradients)
    assert ran == ["adam"] * (6 if backend == "torch" else 0)
    monkeypatch.setattr(stepping.Updates, "update_for", lambda self, state, hyper: None)
    for ours, wanted in zip(found, stepped(options, gradients), strict=True):
        if backend == "numpy":
            np.testing.assert_array_equal(ours, wanted)
        np.testing.assert_allclose(ours, wanted, rtol=LIMIT[dtype], atol=LIMIT[dtype] * np.abs(wanted).max())


def test_tensors_that_no_kernel_takes(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = kernels(backend, monkeypatch)
    x = ops.reshape(ops.arange(12, dtype="float32"), (3, 4))
    found = stepped({}, [ops.transpose(x)])
    stepped({}, [ops.cast(x, "float16")])
    assert ran == []
    for turned, straight in zip(found, stepped({}, [x]), strict=True):
        np.testing.assert_allclose(turned, straight.T, rtol=1e-6)
    assert len(ran) == (1 if backend == "torch" else 0)
