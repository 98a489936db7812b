"""Schedules against torch's schedulers, and against their formulas."""

import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.optim import schedules

STEPS = 45
BASE = 0.3
TORCH: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "scaled": (schedules.scaled(BASE, lambda n: 1 / (1 + n)), "LambdaLR", {"lr_lambda": lambda n: 1 / (1 + n)}),
    "step": (schedules.step(BASE, 7), "StepLR", {"step_size": 7}),
    "step half": (schedules.step(BASE, 3, 0.5), "StepLR", {"step_size": 3, "gamma": 0.5}),
    "multistep": (schedules.multistep(BASE, [3, 3, 20]), "MultiStepLR", {"milestones": [3, 3, 20]}),
    "multistep half": (
        schedules.multistep(BASE, [3, 20], 0.5),
        "MultiStepLR",
        {"milestones": [3, 20], "gamma": 0.5},
    ),
    "constant, then another": (schedules.piecewise([5], [BASE / 3, BASE]), "ConstantLR", {}),
    "less, then constant": (
        schedules.piecewise([9], [BASE * 0.2, BASE]),
        "ConstantLR",
        {"factor": 0.2, "total_iters": 9},
    ),
    "joined": (
        schedules.join([schedules.linear(BASE, 0.1, 1.0, 4), schedules.exponential(BASE, 0.9)], [7]),
        "SequentialLR",
        {
            "schedulers": lambda optimizer, kinds: [
                kinds.LinearLR(optimizer, 0.1, 1.0, 4),
                kinds.ExponentialLR(optimizer, 0.9),
            ],
            "milestones": [7],
        },
    ),
    "exponential": (schedules.exponential(BASE, 0.9), "ExponentialLR", {"gamma": 0.9}),
    "linear": (schedules.linear(BASE), "LinearLR", {}),
    "linear down": (
        schedules.linear(BASE, 0.9, 0.1, 30),
        "LinearLR",
        {"start_factor": 0.9, "end_factor": 0.1, "total_iters": 30},
    ),
    "cosine": (schedules.cosine(BASE, 40), "CosineAnnealingLR", {"T_max": 40}),
    "cosine again": (schedules.cosine(BASE, 11, 0.01), "CosineAnnealingLR", {"T_max": 11, "eta_min": 0.01}),
    "restarts": (schedules.cosine_restarts(BASE, 7), "CosineAnnealingWarmRestarts", {"T_0": 7}),
    "longer restarts": (
        schedules.cosine_restarts(BASE, 3, 2, 0.01),
        "CosineAnnealingWarmRestarts",
        {"T_0": 3, "T_mult": 2, "eta_min": 0.01},
    ),
    "three times longer restarts": (
        schedules.cosine_restarts(BASE, 2, 3),
        "CosineAnnealingWarmRestarts",
        {"T_0": 2, "T_mult": 3},
    ),
    "polynomial": (schedules.polynomial(BASE), "PolynomialLR", {}),
    "polynomial 2": (schedules.polynomial(BASE, 40, 2.0), "PolynomialLR", {"total_iters": 40, "power": 2.0}),
    "one_cycle": (schedules.one_cycle(BASE, STEPS), "OneCycleLR", {"max_lr": BASE, "total_steps": STEPS}),
    "one_cycle linear": (
        schedules.one_cycle(BASE, STEPS, 0.2, "linear", 10.0, 100.0, three_phase=True),
        "OneCycleLR",
        {
            "max_lr": BASE,
            "total_steps": STEPS,
            "pct_start": 0.2,
            "anneal_strategy": "linear",
            "div_factor": 10.0,
            "final_div_factor": 100.0,
            "three_phase": True,
        },
    ),
    **{
        f"cyclic {mode}": (
            schedules.cyclic(0.1, BASE, 6, 4, mode, 0.95),
            "CyclicLR",
            {"base_lr": 0.1, "max_lr": BASE, "step_size_up": 6, "step_size_down": 4, "mode": mode, "gamma": 0.95},
        )
        for mode in ("triangular", "triangular2", "exp_range")
    },
}


def torch_rates(kind: str, options: dict[str, Any]) -> list[float]:
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE, momentum=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = torch.optim.lr_scheduler
        if "schedulers" in options:
            options = {**options, "schedulers": options["schedulers"](optimizer, kinds)}
        scheduler = getattr(kinds, kind)(optimizer, **options)
        rates = []
        for i in range(STEPS):
            rates.append(float(optimizer.param_groups[0]["lr"]))
            optimizer.step()
            if i < STEPS - 1:
                scheduler.step()
    return rates


@pytest.mark.parametrize("name", TORCH)
def test_rates_equal_those_of_torch(name: str) -> None:
    schedule, kind, options = TORCH[name]
    np.testing.assert_allclose([schedule(n) for n in range(STEPS)], torch_rates(kind, options), rtol=1e-12, atol=1e-14)


FORMULAS: dict[str, tuple[Any, Callable[[int], float]]] = {
    "constant": (schedules.constant(BASE), lambda n: BASE),
    "piecewise": (schedules.piecewise([5, 9], [1.0, 0.5, 0.2]), lambda n: 1.0 if n < 5 else 0.5 if n < 9 else 0.2),
    "warmup": (schedules.warmup(BASE, 10), lambda n: BASE * min(n / 10, 1.0)),
    "warmup_cosine": (
        schedules.warmup(schedules.cosine(BASE, 50), 10, 0.1),
        lambda n: BASE * (0.1 + 0.09 * n) if n < 10 else BASE * (1 + math.cos(math.pi * (n - 10) / 50)) / 2,
    ),
    "inverse_sqrt": (schedules.inverse_sqrt(BASE, 8), lambda n: BASE * min((n + 1) / 8, math.sqrt(8 / (n + 1)))),
    "wsd": (
        schedules.wsd(BASE, 5, 20, 10, 0.03),
        lambda n: BASE * n / 5 if n < 5 else BASE - (BASE - 0.03) * min(max(n - 25, 0), 10) / 10,
    ),
    "join": (
        schedules.join([schedules.exponential(1.0, 0.5), schedules.exponential(2.0, 0.9)], [4]),
        lambda n: 0.5**n if n < 4 else 2 * 0.9 ** (n - 4),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_rates_follow_the_formula(name: str) -> None:
    schedule, formula = FORMULAS[name]
    np.testing.assert_allclose([schedule(n) for n in range(STEPS)], [formula(n) for n in range(STEPS)], rtol=1e-12)


@pytest.mark.parametrize("name", [*TORCH, *FORMULAS])
def test_a_tensor_as_count_gives_the_same_rates(name: str, backend: str) -> None:
    schedule = (TORCH.get(name) or FORMULAS[name])[0]
    if name == "scaled":
        schedule = schedules.scaled(BASE, lambda n: ops.divide(1, ops.add(1, n)))
    expected = [schedule(n) for n in range(STEPS)]
    found = [float(schedule(ops.convert_to_tensor(float(n), "float32"))) for n in range(STEPS)]
    np.testing.assert_allclose(found, np.array(expected, "f8"), rtol=2e-5, atol=1e-6 * BASE)


@pytest.mark.parametrize("name", [name for name in (*TORCH, *FORMULAS) if name != "scaled"])
def test_schedules_survive_pickle(name: str) -> None:
    schedule = (TORCH.get(name) or FORMULAS[name])[0]
    assert pickle.loads(pickle.dumps(schedule))(13) == schedule(13)


def test_an_optimizer_asks_the_schedule_before_each_step(backend: str) -> None:
    optimizer = optim.SGD([weight := ops.Parameter([0.0])], lr=schedules.piecewise([1, 2], [1.0, 10.0, 100.0]))
    seen = []
    for _ in range(4):
        assert optimizer.learning_rates() == [[1.0, 10.0, 100.0, 100.0][len(seen)]]
        optimizer.step({weight: [-1.0]})
        seen.append(weight.value.tolist()[0])
    assert seen == [1.0, 11.0, 111.0, 211.0]


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: schedules.step(BASE, 0), r"step\(\): step_size is 0, expected a positive number"),
    (lambda: schedules.piecewise([3, 2], [1, 2, 3]), "expected them in increasing order"),
    (lambda: schedules.piecewise([3], [1.0]), "1 parts were given for 1 boundaries, expected one more"),
    (lambda: schedules.one_cycle(BASE, 10, 1.5), "pct_start is 1.5"),
    (lambda: schedules.one_cycle(BASE, 10, anneal_strategy="sine"), "anneal_strategy is 'sine'"),
    (lambda: schedules.one_cycle(BASE, 1), "total_steps - 1 is 0"),
    (lambda: schedules.cyclic(0.1, BASE, mode="square"), "mode is 'square'"),
    (lambda: schedules.cosine(BASE, -1), "T_max is -1"),
    (lambda: schedules.wsd(BASE, 1, -2, 1), "stable_steps"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        make()


def test_a_schedule_shows_the_call_that_made_it() -> None:
    rate = schedules.warmup(schedules.cosine(0.1, T_max=100), steps=10)
    assert repr(rate) == "warmup(cosine(0.1, T_max=100), steps=10)"
    assert repr(pickle.loads(pickle.dumps(rate))) == repr(rate)
    assert "lr=piecewise([2], [0.2, 0.1])," in repr(
        optim.SGD([Parameter(1.0)], lr=schedules.piecewise([2], [0.2, 0.1]))
    )
