"""Each parameter of the optimizers and schedulers of torch is an option that is tested, or omitted for a reason."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from emberharmony import optim
from emberharmony.optim import schedules
from tests.optim import test_plateau, test_schedules
from tests.optim.rules import test_adafactor, test_adam, test_adaptive, test_lbfgs, test_muon
from tests.optim.rules import test_sgd as sgd_rows

torch = pytest.importorskip("torch")

ROWS: dict[str, list[dict[str, Any]]] = {
    "SGD": sgd_rows.OPTIONS,
    "Adafactor": test_adafactor.CASES,
    "LBFGS": test_lbfgs.CASES,
    "Muon": test_muon.TORCH,
    "ReduceLROnPlateau": test_plateau.OPTIONS,
}
for _name, _options in (*test_adam.CASES, *test_adaptive.CASES):
    ROWS.setdefault(_name, []).append(_options)
for _, _name, _options in test_schedules.TORCH.values():
    ROWS.setdefault(_name, []).append(_options)

IMPLEMENTATION = "chooses an implementation in torch, with the same result; here there is one"
OMITTED: dict[str, str] = {
    "foreach": IMPLEMENTATION,
    "fused": IMPLEMENTATION,
    "capturable": "is for graphs of CUDA; the pure form is compiled instead",
    "differentiable": "the pure form is differentiable",
    "optimizer": "a schedule is given to the optimizer, and knows none",
    "last_epoch": "a schedule is a function of the count, which the optimizer saves",
    "scale_fn": "any function of the count is a schedule",
    "scale_mode": "goes with scale_fn",
    "cycle_momentum": "a schedule gives the learning rate alone",
    "base_momentum": "goes with cycle_momentum",
    "max_momentum": "goes with cycle_momentum",
    "epochs": "total_steps is the product of both",
    "steps_per_epoch": "total_steps is the product of both",
}
"""The parameters that do not exist here, and why."""

ABSENT: dict[str, str] = {
    "SparseAdam": "gradients are dense",
    "ChainedScheduler": "changes the rate by factors of several schedulers; `scaled` takes their product",
    "MultiplicativeLR": "each rate follows from the one before; `scaled` takes the product as a function of the count",
}
"""The classes that do not exist here, and why."""

OURS: dict[str, Callable[..., Any]] = {
    "LambdaLR": schedules.scaled,
    "StepLR": schedules.step,
    "MultiStepLR": schedules.multistep,
    "ConstantLR": schedules.piecewise,
    "LinearLR": schedules.linear,
    "ExponentialLR": schedules.exponential,
    "SequentialLR": schedules.join,
    "CosineAnnealingLR": schedules.cosine,
    "CosineAnnealingWarmRestarts": schedules.cosine_restarts,
    "PolynomialLR": schedules.polynomial,
    "OneCycleLR": schedules.one_cycle,
    "CyclicLR": schedules.cyclic,
    "ReduceLROnPlateau": optim.ReduceOnPlateau,
}
RENAMED = {
    ("LambdaLR", "lr_lambda"): "factor",
    ("SequentialLR", "schedulers"): "schedules",
    ("SequentialLR", "milestones"): "boundaries",
    ("ConstantLR", "factor"): "values",
    ("ConstantLR", "total_iters"): "boundaries",
}
REQUIRED = {("OneCycleLR", "total_steps"), ("ConstantLR", "factor"), ("ConstantLR", "total_iters")}
"""The parameters that have a default in torch alone."""


def classes(module: Any, base: type) -> dict[str, type]:
    found = {name: each for name, each in vars(module).items() if isinstance(each, type) and issubclass(each, base)}
    return {name: each for name, each in found.items() if each is not base and name[0] != "_"}


THEIRS = {
    **classes(torch.optim, torch.optim.Optimizer),
    **classes(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler),
}


def options_of(kind: Callable[..., Any]) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(kind).parameters.values() if p.name != "params"}


def test_each_class_of_torch_is_here_or_omitted() -> None:
    here = {name for name in THEIRS if name in OURS or hasattr(optim, name)}
    assert here | ABSENT.keys() == THEIRS.keys()
    assert not here & ABSENT.keys()


@pytest.mark.parametrize("name", [name for name in THEIRS if name not in ABSENT])
def test_each_parameter_is_here_with_its_default_and_in_a_row(name: str) -> None:
    theirs, ours = options_of(THEIRS[name]), options_of(OURS.get(name) or getattr(optim, name))
    for option, default in theirs.items():
        if option in OMITTED:
            assert option not in ours
            continue
        mine = RENAMED.get((name, option), option)
        assert mine in ours, f"{name} lacks {option}"
        if (name, option) not in REQUIRED:
            assert ours[mine] == default, f"{name} has another default of {option}"
        varied = [row for row in ROWS[name] if option in row and row[option] != default]
        assert varied, f"no row of {name} varies {option}"


def test_no_omission_is_out_of_date() -> None:
    known = {(name, option) for name, kind in THEIRS.items() for option in options_of(kind)}
    assert {option for _, option in known} >= OMITTED.keys()
    assert known >= RENAMED.keys() | REQUIRED
