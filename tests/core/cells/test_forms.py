"""Cells that hold a tensor in the layout of a kernel: whoever reads them gets the tensor, and there is one copy."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, ops
from emberharmony.core import selection
from emberharmony.core.cells.blocks import Assignments, ReadCells
from emberharmony.core.cells.forms import Form, hold_forms, layout_of
from emberharmony.core.cells.moves import HostBits
from tests.another import another

BITS = np.arange(6, dtype=np.uint32).reshape(2, 3)


def _held(backend: str) -> tuple[Any, Any, list[Any]]:
    """Returns two cells, the first of which holds a form, its home, and the layout."""
    home = selection.active().backend.home
    cells, layout = [Buffer(BITS), Buffer([1.0])], ["layout"]
    hold_forms(cells, lambda w, s: (Form(layout, home, lambda: HostBits(BITS.copy(), "uint32")), s))
    assert layout_of(cells, home) is layout
    return cells, home, layout


def test_a_read_gives_the_tensor_and_ends_the_form(backend: str) -> None:
    cells, home, _ = _held(backend)
    assert (tuple(cells[0].shape), ops.dtype(cells[0].value)) == ((2, 3), ops.uint32)
    assert cells[0].value.tolist() == BITS.tolist()
    assert cells[0].value is cells[0].value
    assert layout_of(cells, home) is None


def test_copies_pickles_and_other_backends_get_the_tensor(backend: str) -> None:
    cells, home, layout = _held(backend)
    for other in (copy.deepcopy(cells[0]), pickle.loads(pickle.dumps(cells[0]))):
        assert other.value.tolist() == BITS.tolist()
    assert repr(cells[0]) == "Buffer(shape=(2, 3), dtype=uint32)"
    assert layout_of(cells, home) is layout
    with ops.use_backend(another(backend)):
        assert layout_of(cells, selection.active().backend.home) is None
        assert cells[0].value.tolist() == BITS.tolist()
    assert cells[0].value.tolist() == BITS.tolist()


def test_blocks_that_observe_or_replace_a_cell_see_no_form(backend: str) -> None:
    cells, home, layout = _held(backend)
    with ReadCells():
        assert layout_of(cells, home) is None
    with Assignments({cells[1]: cells[1].value}):
        assert layout_of(cells, home) is None
    assert layout_of(cells, home) is layout
    with ReadCells():
        hold_forms(cells, lambda *tensors: pytest.fail("a form is made"))


def test_an_assignment_meanwhile_is_kept(backend: str) -> None:
    cells, home = [Buffer(BITS), Buffer([1.0])], selection.active().backend.home

    def make(w: Any, s: Any) -> Any:
        cells[0].value = ops.add(w, 1)
        return Form(["layout"], home, lambda: HostBits(BITS, "uint32")), s

    hold_forms(cells, make)
    assert layout_of(cells, home) is None
    assert cells[0].value.tolist() == (BITS + 1).tolist()
    hold_forms(cells, lambda *tensors: None)
    assert layout_of(cells, home) is None
