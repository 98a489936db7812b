"""Adam and its family against torch."""

from typing import Any

import pytest

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
