"""`Scope` and `ThreadStack`: blocks that end in any order."""

import threading
from typing import Any, ClassVar

import pytest

from emberharmony.core.state.scopes import Entry, Scope, ThreadStack, blocks_of


class Block(Scope):
    """A block on a stack of this thread."""

    opened: ClassVar[list[Any]] = []
    _stack: Any = ThreadStack(opened)

    def __enter__(self) -> None:
        self._stack.set((None, self._stack.get(), self, self._watch))


def open_blocks() -> list[Any]:
    entry: Entry | None = Block._stack.get()
    return blocks_of(entry)


def test_blocks_may_end_in_any_order() -> None:
    first, second, third = Block(), Block(), Block()
    ends = [type(block).__exit__.__get__(block, Block) for block in (first, second, third)]
    for block in (first, second, third):
        block.__enter__()
    assert open_blocks() == [third, second, first]
    assert Block.opened == [first, second, third]
    for end, left in zip((ends[1], ends[2], ends[0]), ([third, first], [first], []), strict=True):
        end(None, None, None)
        assert open_blocks() == left
        assert Block.opened == left[::-1]
    ends[0](None, None, None)  # ends nothing a second time
    assert (open_blocks(), Block.opened) == ([], [])


def test_a_stack_may_get_and_lose_several_blocks_in_one_step() -> None:
    opened: ClassVar[list[Any]] = []
    stack = ThreadStack(opened)
    one: Entry = ("a", None, "one", None)
    two: Entry = ("b", one, "two", None)
    stack.set(two)
    assert sorted(opened) == ["one", "two"]
    stack.set(None)
    assert (stack.get(), opened) == (None, [])
    stack.set(("c", None, "three", None))
    stack.set(two)  # instead of the block before
    assert (blocks_of(stack.get()), sorted(opened)) == (["two", "one"], ["one", "two"])


def test_each_thread_has_a_stack_of_its_own_and_all_blocks_are_known() -> None:
    seen: list[Any] = []

    def other() -> None:
        with Block():
            seen.extend([len(open_blocks()), len(Block.opened)])

    with Block():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert (len(open_blocks()), len(Block.opened)) == (1, 1)
    assert seen == [1, 2]
    assert Block.opened == []


def test_a_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError), Block():
        raise KeyError
    assert (open_blocks(), Block.opened) == ([], [])
