"""A fixture of the tests of cells."""

import functools
import importlib
from collections.abc import Iterator

import pytest

from emberharmony import ops
from emberharmony.core.cells.cell import _WATCHES
from tests.core.cells.pairs import INSTALLED


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes torch.compile only trace; restores the active backend, and checks that no watch of moves is left."""
    before = ops.get_backend()
    if "torch" in INSTALLED:
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    yield
    ops.set_backend(before)
    assert _WATCHES == []
