"""Cells hold plain tensors of PyTorch, whatever the user's own differentiation by `torch.autograd` has recorded."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, nn, ops, optim
from emberharmony.core.cells.cell import Cell

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _on_torch() -> Any:
    with ops.use_backend("torch"):
        yield


def recorded() -> list[Any]:
    """Returns tensors of PyTorch that are leaves of its graph or that its graph has computed."""
    leaf = torch.nn.Parameter(torch.ones(2))
    return [leaf, leaf * 1.0, torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2), requires_grad=False)]


def assigned(tensor: Any) -> Cell:
    cell = Buffer([0.0, 0.0])
    cell.value = tensor
    return cell


def loaded(tensor: Any) -> Cell:
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": tensor.reshape(1, 2)})
    return layer.weight


def merged(tensor: Any) -> Cell:
    structure, _, buffers = nn.split(nn.Linear(2, 1, bias=False))
    weight: Cell = nn.merge(structure, {"weight": tensor.reshape(1, 2)}, buffers).weight
    return weight


def stepped(tensor: Any) -> Cell:
    weight = Parameter([2.0, 2.0])
    optim.SGD([weight], lr=1.0).step({weight: tensor})
    return weight


def stepped_together(tensor: Any) -> Cell:
    weights = [Parameter([2.0, 2.0]) for _ in range(20)]
    optim.SGD(weights, lr=1.0).step(dict.fromkeys(weights, tensor))
    return weights[-1]


def kept(tensor: Any) -> Cell:
    weight, state = Parameter([1.0]), Buffer([0.0, 0.0])

    def loss() -> Any:
        state.value = tensor
        return ops.sum(weight)

    ops.backward(loss, weight)
    return state


@pytest.mark.parametrize(
    "door", [Parameter, Buffer, nn.Parameter, assigned, loaded, merged, stepped, stepped_together, kept]
)
def test_a_cell_holds_no_record_of_torch(door: Callable[[Any], Cell]) -> None:
    for tensor in recorded():
        cell = door(tensor)
        for held in (cell, copy.deepcopy(cell)):
            assert type(held.value) is torch.Tensor
            assert not held.value.requires_grad
            assert np.ravel(ops.to_numpy(held.value)).tolist() == [1.0, 1.0]


def test_a_gradient_holds_no_record_of_torch() -> None:
    weight = Parameter([0.0, 0.0])
    for tensor in recorded():
        weight.grad = tensor
        assert type(weight.grad) is torch.Tensor
        assert not weight.grad.requires_grad


def test_the_memory_is_shared_and_the_graph_stays_with_its_owner() -> None:
    theirs = torch.nn.Parameter(torch.ones(2))
    ours = Parameter(theirs)
    with torch.no_grad():
        theirs.add_(1.0)
    assert ours.value.tolist() == [2.0, 2.0]
    layer = nn.Linear(2, 1, bias=False)
    nn.functional_call(layer, {"weight": theirs.reshape(1, 2)}, [3.0, 4.0]).backward()
    assert theirs.grad.tolist() == [3.0, 4.0]


def test_a_cell_made_in_a_loss_stays_traced() -> None:
    found = ops.grad(lambda x: ops.sum(ops.square(Parameter(x))))([1.0, 2.0])
    assert found.tolist() == [2.0, 4.0]
