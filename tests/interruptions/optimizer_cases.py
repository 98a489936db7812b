"""Steps of optimizers, to interrupt."""

from pathlib import Path
from typing import Any

import pytest

from emberharmony import Buffer, Parameter, ops, optim
from tests.interruptions.cases import Case, cases_of


def everything(optimizer: optim.Optimizer) -> list[Any]:
    """Returns all that a step changes, as numbers and lists."""
    cells = optimizer.param_groups[0]["params"]
    state = [optimizer.state.get(cell, {}) for cell in cells]
    shown = [{k: x.value.tolist() if isinstance(x, Buffer) else x for k, x in entry.items()} for entry in state]
    return [optimizer.count, shown, [(cell.value.tolist(), cell.grad is None) for cell in cells]]


@cases_of(["first", "second"])
def step_of_an_optimizer(path: Path, patch: pytest.MonkeyPatch, which: str) -> Case:
    made: list[optim.Optimizer] = []

    def prepare() -> None:
        ops.set_backend("numpy")
        cells = [Parameter([1.0, 2.0]), Parameter(3.0)]
        made[:] = [optim.Adam(cells, lr=0.1)]
        for _ in range(1 if which == "first" else 2):
            if cells[0].grad is not None:
                made[0].step()
            for cell in cells:
                cell.grad = ops.ones_like(cell.value)

    def run() -> None:
        made[0].step()

    prepare()
    old = everything(made[0])
    run()
    new = everything(made[0])

    def check() -> None:
        assert everything(made[0]) in (old, new)

    return Case(prepare, run, check)
