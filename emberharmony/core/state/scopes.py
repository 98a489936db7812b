"""The base of the context managers that override a setting: the override ends with the block, even if interrupted.

A signal handler may raise after `__enter__` has taken effect but before `with` has registered the block, or before the
first instruction of `__exit__`. Neither method can catch that. Therefore only `with` holds the object that it gets as
`__exit__`, and the entry that `__enter__` pushes holds a weak reference to that object. If the object is dropped while
the entry is still on the stack, the callback of the weak reference removes the entry.

The overrides of a thread or asyncio task are a linked stack in a `ContextVar`. A block removes its own entry, wherever
it is in the stack, so that suspended generators may be closed in any order.

A block costs 13,200 instructions (`with use_backend(like=x)`, CPython 3.11), where a class that guards against nothing
takes 8,500; the weak reference is 2,700 of the difference.
"""

from _thread import _local  # threading.local, without the import of threading
from _weakref import ref  # weakref.ref, without the import of weakref
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from emberharmony.core.state.commits import Step, assignment, commit

Entry = tuple[Any, ...]
"""A value, the entry below it or None, the block that pushed it, its `_watch`, and what else the block keeps alive."""

Stack = ContextVar[Entry | None]


class Scope:
    """The base class of context managers that push a value on a stack in the last step of `__enter__`.

    That step is `self._stack.set((value, self._stack.get(), self, self._watch, ...))`. One object may be entered
    several times, and by several threads.
    """

    __slots__ = ("__weakref__", "_watch")

    _stack: Stack
    _dropped: Callable[[Any], None]
    _watch: Any
    """The weak reference to the `__exit__` that `with` got last."""

    def __init_subclass__(cls) -> None:
        cls._dropped = staticmethod(partial(_remove_topmost, cls._stack, 3))

    def __init__(self) -> None:
        self._watch = None

    if TYPE_CHECKING:

        def __exit__(self, *raised: object) -> None: ...


def _leave(scope: Scope, kind: object = None, error: object = None, trace: object = None) -> None:
    """Removes the topmost entry of a block from the stack, if the block has an entry."""
    entry = scope._stack.get()
    if entry is not None and entry[2] is scope:
        scope._stack.set(entry[1])
    else:
        _remove_topmost(scope._stack, 2, scope)
    # The weak reference is dropped last, because until here it must end the block after an interruption.
    scope._watch = None


def _remove_topmost(stack: Stack, place: int, target: Any) -> None:
    """Removes the topmost entry that has a certain object at a certain place, if there is one."""
    entries_above: list[Entry] = []
    entry = stack.get()
    while entry is not None and entry[place] is not target:
        entries_above.append(entry)
        entry = entry[1]
    if entry is None:
        return
    entry_below = entry[1]
    for pushed_value, _, *options in reversed(entries_above):
        entry_below = pushed_value, entry_below, *options
    stack.set(entry_below)


class Exit:
    """The descriptor of `Scope.__exit__`: gives `with` a method that ends the block even if it is dropped.

    `with` reads `__exit__` before it calls `__enter__`, and gets a method that ends the block when it is called, or
    when it is dropped without a call.

    Args:
        end: the function that ends a block, given the block.
    """

    def __init__(self, end: Callable[..., None]) -> None:
        self._end = end

    def __get__(self, scope: Scope | None, kind: type[Scope]) -> Callable[..., None]:
        if scope is None:  # contextlib.ExitStack reads it from the class
            return self._end
        leave_scope = MethodType(self._end, scope)
        scope._watch = ref(leave_scope, scope._dropped)
        return leave_scope


if not TYPE_CHECKING:
    Scope.__exit__ = Exit(_leave)


class ThreadStack(_local):
    """A stack of the blocks of one thread, for code that cannot read a `ContextVar`, or must know all open blocks.

    Args:
        opened: the list that holds the open blocks of all threads.
    """

    def __init__(self, opened: list[Any]) -> None:
        self.opened = opened
        self.entry: Entry | None = None

    def get(self) -> Entry | None:
        """Returns the entry of the innermost block."""
        return self.entry

    def set(self, entry: Entry | None) -> None:
        """Sets the entry of the innermost block, in one commit with the steps of `effect_steps`."""
        current_entry = self.entry
        if (
            current_entry is None and entry is not None and entry[1] is None
        ):  # the usual cases first: a block begins, and ends
            commit([(self.opened.append, entry[2]), (setattr, self, "entry", entry)], self.effect_steps(entry))
            return
        if entry is None and current_entry is not None and current_entry[1] is None:
            commit([(setattr, self, "entry", None), (self.opened.remove, current_entry[2])], self.effect_steps(None))
            return
        old_blocks, new_blocks = blocks_of(current_entry), blocks_of(entry)
        commit(
            [(self.opened.append, block) for block in new_blocks if block not in old_blocks],
            [assignment(self, "entry", entry)],
            [(self.opened.remove, block) for block in old_blocks if block not in new_blocks],
            self.effect_steps(entry),
        )

    def effect_steps(self, entry: Entry | None) -> Iterable[Step]:
        """Returns the steps that run when the innermost block changes: none, unless a subclass defines them."""
        return ()


def blocks_of(entry: Entry | None) -> list[Any]:
    """Returns the blocks on a stack, the innermost first."""
    blocks = []
    while entry is not None:
        blocks.append(entry[2])
        entry = entry[1]
    return blocks
