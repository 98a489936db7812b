"""A cell that moves loses neither an assignment nor its device, and a copy of a cell shares nothing with it."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, ops, to_backend
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell

INSTALLED = [name for name in BUILTIN if is_installed(name)]
pairs = pytest.mark.parametrize("here, there", list(itertools.permutations(INSTALLED, 2)))


@pytest.fixture(autouse=True)
def _restored():
    before = ops.get_backend()
    yield
    ops.set_backend(before)


def numbers(tensor):
    return ops.to_numpy(tensor).tolist()


@pairs
def test_a_move_does_not_overwrite_what_is_assigned_meanwhile(here, there, monkeypatch):
    ops.set_backend(here)
    cell, convert = Buffer([1.0]), Cell.convert_held

    def slowly(self, held, home):
        found = convert(self, held, home)
        with ops.use_backend(here):
            self._held = ops.array([2.0]), selection.current().home
        return found

    ops.set_backend(there)
    monkeypatch.setattr(Cell, "convert_held", slowly)
    assert numbers(cell.value) == [1.0]
    monkeypatch.undo()
    assert numbers(cell.value) == [2.0]


@pairs
def test_a_cell_goes_back_to_the_device_that_it_had(here, there, monkeypatch):
    ops.set_backend(here)
    cell = Parameter([1.0])
    home = cell.tensor_and_home()[1]
    # Not by setattr, which would leave the methods of the class in the objects, in front of the class.
    monkeypatch.setitem(vars(home), "get_device", lambda x: "far")
    ops.set_backend(there)
    cell.value
    asked = []
    unpack = home.backend.unpack

    def noting(bits, device=None):
        asked.append(device)
        return unpack(bits)

    monkeypatch.setitem(vars(home.backend), "unpack", noting)
    ops.set_backend(here)
    assert numbers(cell.value) == [1.0]
    assert asked == ["far"]


@pairs
def test_a_tree_that_is_moved_takes_the_gradients_along(here, there):
    ops.set_backend(here)
    cell = Parameter([1.0, 2.0])
    cell.grad = ops.array([3.0, 4.0])
    ops.set_backend(there)
    to_backend({"cell": cell}, there)
    for held in (cell._held, cell._grad):
        assert held[1].backend.name == there
    assert numbers(cell.grad) == [3.0, 4.0]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_shares_neither_memory_nor_attributes(copied, backend):
    cell = Parameter([1.0, 2.0])
    cell.grad, cell.name = ops.array([3.0, 4.0]), ["mutable"]
    made = copied(cell)
    assert (numbers(made.value), numbers(made.grad)) == ([1.0, 2.0], [3.0, 4.0])
    if backend != "mlx":  # whose tensors cannot be written into from outside
        for tensor in (made.value, made.grad):
            np.asarray(tensor)[:] = 9.0
    made.name.append("more")
    assert (numbers(cell.value), numbers(cell.grad), cell.name) == ([1.0, 2.0], [3.0, 4.0], ["mutable"])
    made.value = [5.0, 6.0]
    made.grad = None
    assert (numbers(cell.value), numbers(cell.grad)) == ([1.0, 2.0], [3.0, 4.0])


class Gain(Parameter):
    """A parameter of another class, which compiled ops do not know."""


@pytest.mark.parametrize("kind", [Parameter, Gain])
def test_an_op_with_keywords_takes_a_cell(kind, backend):
    cell = kind([[1.0, 2.0], [3.0, 4.0]])
    for call in (
        lambda x: ops.sum(x, axis=0, keepdims=True),
        lambda x: ops.var(x, axis=1, correction=1),
        lambda x: ops.softmax(x, axis=0),
        lambda x: ops.clip(x, x_min=2.0, x_max=3.0),
        lambda x: ops.clip(x, min=2.0, max=3.0),
        lambda x: ops.layer_normalization(x, rms_scaling=True),
        lambda x: ops.pinv(x, rtol=0.5),
        lambda x: ops.isin(x, [1.0], invert=True),
        lambda x: ops.scatter_update(x, [[0, 0]], [7.0], reduction="add"),
    ):
        assert numbers(call(cell)) == numbers(call(cell.value))


def test_two_backends_of_one_library_share_a_tensor():
    cell = Parameter(np.ones(3, "f4"))
    with ops.use_backend("numpy"):
        tensor = cell.value
    with ops.use_backend(NumpyBackend()):
        assert cell.value is tensor
