"""The garbage collector is paused while modules are imported, and takes what they made for old."""

import gc
from collections.abc import Iterator

import pytest

from emberharmony.core.state.collector import PausedCollector


class Node:
    """An object that the collector tracks."""


def generation_of(node: Node) -> int | None:
    return next((age for age in range(3) if any(x is node for x in gc.get_objects(age))), None)


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    frozen = gc.get_freeze_count() > 0
    if frozen:  # as the run of these tests does
        gc.unfreeze()
    gc.enable()
    yield
    gc.enable()
    if frozen:
        gc.freeze()


def test_it_runs_again_after_the_block_and_only_then() -> None:
    with PausedCollector():
        assert not gc.isenabled()
        with PausedCollector(lasting=True):
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    with PausedCollector(lasting=True):
        pass
    assert not gc.isenabled()


def test_it_runs_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), PausedCollector(lasting=True):
        raise ValueError("broken")
    assert gc.isenabled()


def test_what_lasts_is_old_at_once() -> None:
    with PausedCollector():
        young = Node()
    with PausedCollector(lasting=True):
        old = Node()
        old.itself = old  # type: ignore[attr-defined]
        assert generation_of(old) == 0
    assert generation_of(old) == 2
    assert generation_of(young) is not None
    assert gc.get_freeze_count() == 0


def test_what_lasts_is_still_collected() -> None:
    with PausedCollector(lasting=True):
        node = Node()
        node.itself = node  # type: ignore[attr-defined]
    place = id(node)
    del node
    gc.collect()
    assert all(id(x) != place or not isinstance(x, Node) for x in gc.get_objects())


def test_what_the_program_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with PausedCollector(lasting=True):
            node = Node()
        assert gc.get_freeze_count() == count
        assert generation_of(node) == 0
    finally:
        gc.unfreeze()


def test_it_runs_again_after_blocks_that_overlap_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = PausedCollector(), PausedCollector()
    first.__enter__()

    def is_enabled() -> bool:
        """Ends the first block after the second one has asked, as another thread may."""
        enabled = was_enabled()
        first.__exit__()
        return enabled

    was_enabled = gc.isenabled
    monkeypatch.setattr(gc, "isenabled", is_enabled)
    second.__enter__()
    monkeypatch.undo()
    if PausedCollector._blocks == 2:  # it did not ask, because a block was running
        first.__exit__()
    second.__exit__()
    assert gc.isenabled()
