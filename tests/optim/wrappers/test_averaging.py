"""Averages of parameters against torch and NumPy."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.backend.discovery import BUILTIN, is_installed
from tests.ops.trees import lists

INSTALLED = [name for name in BUILTIN if is_installed(name)]
pairs = pytest.mark.parametrize("here, there", list(itertools.permutations(INSTALLED, 2)))
VALUES = np.random.default_rng(1).normal(size=(12, 5)).astype("f4")


def averaged(average: Any, cell: Parameter, values: Any) -> Any:
    for value in values:
        cell.value = value
        average.update()
    return ops.to_numpy(average.averages[0].value)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99, 1.0])
def test_the_moving_average_is_that_of_torch(decay: float, backend: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    layer = torch.nn.Linear(5, 1, bias=False)
    model = AveragedModel(layer, multi_avg_fn=get_ema_multi_avg_fn(decay))
    for value in VALUES:
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(value))
        model.update_parameters(layer)
    cell = Parameter(VALUES[0])
    found = averaged(optim.EMA(cell, decay), cell, VALUES)
    np.testing.assert_allclose(found, next(model.parameters()).detach().numpy()[0], rtol=2e-6, atol=1e-6)


def test_the_plain_average_is_the_mean(backend: str) -> None:
    cell = Parameter(np.zeros(5, "f4"))
    average = optim.SWA({"w": cell, "frozen": Parameter(1, trainable=False)})
    np.testing.assert_allclose(averaged(average, cell, VALUES), VALUES.mean(0), rtol=2e-6, atol=1e-6)
    assert average.count == 12


def test_swap_exchanges_and_puts_back(backend: str) -> None:
    cells = [Parameter([1.0]), Parameter([2.0, 3.0])]
    average = optim.SWA(iter(cells))
    average.update()
    cells[0].value, cells[1].value = [5.0], [6.0, 7.0]
    average.swap()
    assert lists([cell.value for cell in cells]) == [[1.0], [2.0, 3.0]]
    average.swap()
    assert lists([cell.value for cell in cells]) == [[5.0], [6.0, 7.0]]


@pairs
def test_averages_go_on_after_a_switch_and_from_a_state(here: str, there: str) -> None:
    with ops.use_backend(here):
        cell = Parameter(VALUES[0])
        expected = averaged(optim.EMA(cell, 0.7), cell, VALUES)
        average = optim.EMA(cell, 0.7)
        averaged(average, cell, VALUES[:5])
        saved = average.state_dict()
        packed = pickle.dumps(average)
    with ops.use_backend(there):
        again = optim.EMA(copy.deepcopy(cell), 0.7)
        again.load_state_dict(saved)
        for each in (average, again, pickle.loads(packed)):
            np.testing.assert_allclose(averaged(each, each.parameters[0], VALUES[5:]), expected, rtol=2e-6, atol=1e-6)


def test_what_does_not_fit_is_refused(backend: str) -> None:
    with pytest.raises(errors.ArgumentError, match=r"EMA\(\): decay is 1\.5"):
        optim.EMA(Parameter([1.0]), 1.5)
    with pytest.raises(errors.ArgumentError, match=r"SWA\(\): there is no trainable Parameter"):
        optim.SWA([Parameter([1.0], trainable=False)])
    average = optim.SWA(Parameter([1.0]))
    with pytest.raises(errors.ArgumentError, match=r"the shapes \[\(2,\)\], expected \[\(1,\)\]"):
        average.load_state_dict({"averages": [ops.ones((2,))], "count": 1})
    with pytest.raises(errors.ArgumentError, match="expected \\['averages', 'count'\\]"):
        average.load_state_dict({})
    assert average.count == 0
