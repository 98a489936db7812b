"""Steps of optimizers, to interrupt."""

from pathlib import Path
from typing import Any

import pytest

from emberharmony import Buffer, Parameter, ops, optim
from tests.interruptions.cases import Case, cases_of


def plain(x: Any) -> Any:
    if isinstance(x, list):
        return [plain(each) for each in x]
    return x.value.tolist() if isinstance(x, Buffer) else x


def everything(optimizer: Any) -> list[Any]:
    """Returns all that a step changes, as numbers and lists."""
    cells = optimizer.param_groups[0]["params"]
    state = [optimizer.state.get(cell, {}) for cell in cells]
    shown = [{k: plain(x) for k, x in entry.items()} for entry in state]
    return [optimizer.count, shown, [(cell.value.tolist(), cell.grad is None) for cell in cells]]


_WRITTEN = ("second", "without a state")
"""The cases in which the step writes over the tensors of parameters."""


@cases_of(["first", "second of many", *_WRITTEN])
def step_of_an_optimizer(path: Path, patch: pytest.MonkeyPatch, which: str) -> Case:
    made: list[optim.Optimizer] = []

    def prepare() -> None:
        ops.set_backend("numpy")
        cells = [Parameter([1.0, 2.0]), Parameter(3.0)]
        if which == "second of many":  # enough for a vector
            cells += [Parameter([4.0]), Parameter([5.0, 6.0]), Parameter([7.0])]
        made[:] = [optim.Adam(cells, lr=0.1)]
        if which == "without a state":
            made[:] = [optim.SGD(cells, lr=0.1)]
        for _ in range({"first": 1, "without a state": 3}.get(which, 2)):
            if cells[0].grad is not None:
                made[0].step()
            for cell in cells:
                cell.grad = ops.ones_like(cell.value)

    def run() -> None:
        made[0].step()

    prepare()
    old = everything(made[0])
    before = [id(cell.value) for cell in made[0].param_groups[0]["params"]]
    run()
    new = everything(made[0])
    assert (before == [id(cell.value) for cell in made[0].param_groups[0]["params"]]) is (which in _WRITTEN)

    def check() -> None:
        assert everything(made[0]) in (old, new)

    return Case(prepare, run, check)


@cases_of(["first", "second"])
def step_of_lbfgs(path: Path, patch: pytest.MonkeyPatch, which: str) -> Case:
    made: list[optim.LBFGS] = []

    def prepare() -> None:
        ops.set_backend("numpy")
        made[:] = [optim.LBFGS([Parameter([1.0, 2.0])], max_iter=2, line_search_fn="strong_wolfe")]
        if which == "second":
            run()

    def run() -> None:
        (cell,) = made[0].param_groups[0]["params"]
        made[0].step(lambda: ops.backward(lambda: ops.sum(ops.exp(ops.square(cell))), cell))

    prepare()
    old = everything(made[0])
    run()
    new = everything(made[0])

    def check() -> None:
        assert everything(made[0]) in (old, new)

    return Case(prepare, run, check)


@cases_of(["accumulated"])
def gradients_of_several_parameters(path: Path, patch: pytest.MonkeyPatch, which: str) -> Case:
    cells = [Parameter([1.0, 2.0]), Parameter(3.0)]

    def prepare() -> None:
        ops.set_backend("numpy")
        for cell in cells:
            cell.grad = ops.ones_like(cell.value)

    def run() -> None:
        ops.backward(lambda: ops.multiply(ops.sum(cells[0]), cells[1]), cells)

    def found() -> list[Any]:
        return [cell.grad.tolist() for cell in cells]

    prepare()
    old = found()
    run()
    new = found()

    def check() -> None:
        assert found() in (old, new)

    return Case(prepare, run, check)
