"""`ReduceOnPlateau` against torch."""

import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim

OPTIONS: list[dict[str, Any]] = [
    {"patience": 2},
    {"patience": 0, "factor": 0.5, "threshold": 0.1, "threshold_mode": "abs"},
    {"mode": "max", "patience": 1, "cooldown": 3, "min_lr": 0.01},
    {"mode": "max", "threshold_mode": "abs", "patience": 1, "eps": 1e-3},
    {"mode": "max", "threshold": 0.3, "patience": 0, "factor": 0.9},
    {"mode": "min", "threshold": 0.3, "patience": 0, "factor": 0.9},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_rates_equal_those_of_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    rate = optim.ReduceOnPlateau(0.5, **options)
    draw = np.random.default_rng(3)
    # Metrics of both signs, and some near the best one, where the threshold decides.
    for metric in [*np.round(draw.normal(size=40), 1), *np.round(2 + draw.normal(size=40) / 4, 2)]:
        scheduler.step(float(metric))
        rate.observe(metric)
        assert rate.lr == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-12)
        rate.load_state_dict(pickle.loads(pickle.dumps(rate.state_dict())))
    assert rate.lr < 0.5


def test_an_optimizer_uses_the_current_rate(backend: str) -> None:
    rate = optim.ReduceOnPlateau(1.0, patience=0)
    weight = Parameter([0.0])
    optimizer = optim.SGD([weight], lr=rate)
    for _ in range(2):
        optimizer.step({weight: [-1.0]})
        rate.observe(ops.convert_to_tensor(1.0))
    optimizer.step({weight: [-1.0]})
    assert weight.value.tolist() == pytest.approx([2.1])


@pytest.mark.parametrize("options", [{"mode": "least"}, {"threshold_mode": "some"}, {"factor": 1.0}])
def test_wrong_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match=f"{next(iter(options))} is"):
        optim.ReduceOnPlateau(0.1, **options)


def test_a_wrong_state_is_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="expected"):
        optim.ReduceOnPlateau(0.1).load_state_dict({"lr": 0.1})
