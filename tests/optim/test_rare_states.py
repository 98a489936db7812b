"""States and parameters that few programs have: none yet, of several kinds, empty, named twice, of another library."""

import inspect
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.core.cells.cell import Cell
from emberharmony.optim.parts import columns_of
from tests.ops.trees import lists

KINDS = [
    kind
    for _, kind in inspect.getmembers(optim, inspect.isclass)
    if issubclass(kind, optim.Optimizer) and kind not in (optim.Optimizer, optim.Muon) and not inspect.isabstract(kind)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_parameter_without_elements_takes_part_in_a_step(kind: Any, backend: str) -> None:
    cells = [Parameter(np.zeros((0, 3), "f4")), Parameter(np.ones((2, 3), "f4"))]
    optimizer = kind(cells, lr=0.1)
    for _ in range(2):
        optimizer.step(dict(zip(cells, [ops.zeros((0, 3)), ops.ones((2, 3))], strict=True)))
    assert [tuple(cell.value.shape) for cell in cells] == [(0, 3), (2, 3)]
    assert np.isfinite(ops.to_numpy(cells[1].value)).all()
    assert (ops.to_numpy(cells[1].value) < 1).all()


def test_lbfgs_takes_a_parameter_without_elements(backend: str) -> None:
    cells = [Parameter(np.zeros((0,), "f4"))]
    optimizer = optim.LBFGS(cells)
    optimizer.step(lambda: ops.backward(lambda: ops.sum(cells[0]), cells))
    assert tuple(cells[0].value.shape) == (0,)


def test_states_that_are_alike_become_columns() -> None:
    one, other = object(), object()
    assert columns_of([None, None]) is columns_of([None, {}]) is None
    assert columns_of([{}, {}]) == {}
    assert columns_of([{"m": one, "n": 2}, {"m": other, "n": 2}]) == {"m": [one, other], "n": 2}
    for pair in (
        ({}, {"n": 1}),
        ({"n": 1}, {"n": 2}),
        ({"n": 1}, {"n": 1, "k": 1}),
        ({"n": 1}, {"k": 1}),
        ({"n": 1}, {"n": one}),
        ({"n": one}, {"n": 1}),
    ):
        assert columns_of(pair) is None, pair


def test_names_count_only_if_each_parameter_has_one_of_its_own(backend: str) -> None:
    a, b = Parameter([1.0]), Parameter([2.0])

    def names(given: Any) -> Any:
        return optim.SGD(given, lr=0.1).state_dict()["param_groups"][0].get("param_names")

    assert names([("a", a), ("b", b)]) == ["a", "b"]
    assert names([("a", a), ("a", b)]) is None
    assert names([("a", a), ("", b)]) is None
    assert names([("a", a, 1), ("b", b, 2)]) is None  # trees, in which parameters are looked for


def test_a_cycle_falls_in_as_many_steps_as_it_rises() -> None:
    plain, given = optim.schedules.cyclic(0.0, 1.0, 4), optim.schedules.cyclic(0.0, 1.0, 4, 4)
    assert [float(plain(n)) for n in range(9)] == [float(given(n)) for n in range(9)]
    assert float(plain(4)) == 1.0
    assert float(optim.schedules.cyclic(0.0, 1.0, 4, 2)(6)) == 0.0


@pytest.mark.parametrize("k", [2.5, 0, "2"])
def test_lookahead_takes_a_number_of_steps(k: Any, backend: str) -> None:
    with pytest.raises(errors.EmberError, match="k is"):
        optim.Lookahead(optim.SGD([Parameter([1.0])], lr=0.1), k, 0.5)


def test_the_state_of_a_sharded_optimizer_may_be_of_the_host(backend: str) -> None:
    cell = Parameter([1.0, 2.0])
    optimizer = optim.Sharded(optim.Adam([cell], lr=0.1))
    optimizer.step({cell: ops.ones(2)})
    for host in (False, True):
        state = optimizer.state_dict(host=host)["state"][0]
        kinds = {type(x) for x in state.values() if not isinstance(x, (int, float, Cell))}
        assert kinds == ({np.ndarray} if host or backend == "numpy" else {type(cell.value)})


def test_the_history_of_lbfgs_may_hold_a_plain_number(backend: str) -> None:
    def run(optimizer: Any, cell: Parameter, steps: int) -> list[float]:
        for _ in range(steps):
            optimizer.step(lambda: ops.backward(lambda: ops.sum(ops.exp(cell)), [cell]))
        return lists(cell.value)

    first = Parameter([1.0, 2.0])
    optimizer = optim.LBFGS([first], lr=0.1, max_iter=2)
    run(optimizer, first, 2)
    saved = optimizer.state_dict(host=True)
    entry = saved["state"][0]
    saved["state"][0] = {name: float(x) if name == "H_diag" else x for name, x in entry.items()}
    second = Parameter(first.value)
    again = optim.LBFGS([second], lr=0.1, max_iter=2)
    again.load_state_dict(saved)
    np.testing.assert_allclose(run(again, second, 2), run(optimizer, first, 2), rtol=1e-6)


def test_options_may_be_numbers_of_numpy(backend: str) -> None:
    cell = Parameter(np.ones(2, "f4"))
    optimizer = optim.Adam([cell], lr=np.float64(0.1), betas=(np.float64(0.9), np.float32(0.5)))
    optimizer.step({cell: ops.ones(2)})
    assert ops.dtype(cell.value) == "float32"
    assert [type(x) for x in optimizer.param_groups[0]["betas"]] == [float, float]
