"""Blocks whose effect ends with them, whatever interrupts them: the base of the context managers that override.

A signal handler may raise when `__enter__` has taken effect and `with` does not hold the block yet, or before the
first instruction of `__exit__`; neither method can catch that. Therefore the object that `with` gets for `__exit__` is
held by `with` alone. Where it is dropped before it was called to its end, a weak reference to it ends the block.

The overrides of a thread or asyncio task are a linked stack in a `ContextVar`. A block removes its own entry, wherever
in the stack it stands, so that suspended generators may be closed in any order.
"""

from _weakref import ref  # weakref.ref, without the import of weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

Entry = tuple[Any, Any, "Scope"]
"""A value, the entry below it or None, and the block that put it there."""

Stack = ContextVar[Entry | None]


class Scope:
    """Is the base of context managers that hold a value on a stack, from the last step of `__enter__` on.

    That is `self._stack.set((value, self._stack.get(), self))`. One object may be entered several times, and by several
    threads.
    """

    _stack: Stack

    if TYPE_CHECKING:

        def __exit__(self, *raised: object) -> None: ...


def _release(scope: Scope, *raised: object) -> None:
    """Takes the topmost entry of a block from the stack, if it has one there."""
    above: list[Entry] = []
    entry = scope._stack.get()
    while entry is not None and entry[2] is not scope:
        above.append(entry)
        entry = entry[1]
    if entry is None:
        return
    below = entry[1]
    for value, _, other in reversed(above):
        below = value, below, other
    scope._stack.set(below)


class _Exit:
    """Is `__exit__` of a block: for `with`, which asks for it before it calls `__enter__`, one that cannot be lost."""

    def __get__(self, scope: Scope | None, kind: type[Scope]) -> Callable[..., None]:
        if scope is None:  # contextlib.ExitStack asks the class
            return _release
        watch: list[Any] = []
        leave = partial(_leave, scope, watch)
        watch.append(ref(leave, partial(_dropped, scope, scope._stack.get())))
        return leave


def _leave(scope: Scope, watch: list[Any], *raised: object) -> None:
    _release(scope)
    watch.clear()


def _dropped(scope: Scope, before: Entry | None, reference: object) -> None:
    """Ends a block whose `__exit__` was dropped, unless it was not entered or has ended."""
    if _count(scope, scope._stack.get()) > _count(scope, before):
        _release(scope)


def _count(scope: Scope, entry: Entry | None) -> int:
    """Returns how many entries of a block are on a stack."""
    count = 0
    while entry is not None:
        count += entry[2] is scope
        entry = entry[1]
    return count


if not TYPE_CHECKING:
    Scope.__exit__ = _Exit()
