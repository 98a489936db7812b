"""The base of the context managers that override a setting: the override ends with the block, even if interrupted.

A signal handler may raise after `__enter__` has taken effect but before `with` has registered the block, or before the
first instruction of `__exit__`. Neither method can catch that. Therefore only `with` holds the object that it gets as
`__exit__`. If that object is dropped before it has been called and has returned, a weak reference to it ends the block.

The overrides of a thread or asyncio task are a linked stack in a `ContextVar`. A block removes its own entry, wherever
it is in the stack, so that suspended generators may be closed in any order.
"""

from _weakref import ref  # weakref.ref, without the import of weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

Entry = tuple[Any, ...]
"""A value, the entry below it or None, the block that pushed it, and what else the block keeps alive there."""

Stack = ContextVar[Entry | None]


class Scope:
    """The base class of context managers that push a value on a stack in the last step of `__enter__`.

    That step is `self._stack.set((value, self._stack.get(), self, ...))`. One object may be entered several times, and
    by several threads.
    """

    _stack: Stack

    if TYPE_CHECKING:

        def __exit__(self, *raised: object) -> None: ...


def _release(scope: Scope, *raised: object) -> None:
    """Removes the topmost entry of a block from the stack, if the block has an entry."""
    above: list[Entry] = []
    entry = scope._stack.get()
    while entry is not None and entry[2] is not scope:
        above.append(entry)
        entry = entry[1]
    if entry is None:
        return
    below = entry[1]
    for value, _, *rest in reversed(above):
        below = value, below, *rest
    scope._stack.set(below)


class _Exit:
    """The descriptor behind `Scope.__exit__`.

    `with` reads `__exit__` before it calls `__enter__`, and gets a function that ends the block when it is called, or
    when it is dropped without a call.
    """

    def __get__(self, scope: Scope | None, kind: type[Scope]) -> Callable[..., None]:
        if scope is None:  # contextlib.ExitStack reads it from the class
            return _release
        watch: list[Any] = []
        leave = partial(_leave, scope, watch)
        watch.append(ref(leave, partial(_dropped, scope, scope._stack.get())))
        return leave


def _leave(scope: Scope, watch: list[Any], *raised: object) -> None:
    _release(scope)
    # Only now, because until here an interruption must let the weak reference end the block.
    watch.clear()


def _dropped(scope: Scope, before: Entry | None, reference: object) -> None:
    """Ends a block whose `__exit__` was dropped, if the block was entered and has not ended."""
    if _count(scope, scope._stack.get()) > _count(scope, before):
        _release(scope)


def _count(scope: Scope, entry: Entry | None) -> int:
    """Returns the number of entries of a block on a stack."""
    count = 0
    while entry is not None:
        count += entry[2] is scope
        entry = entry[1]
    return count


if not TYPE_CHECKING:
    Scope.__exit__ = _Exit()
