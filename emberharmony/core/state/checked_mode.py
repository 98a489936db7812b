"""Checked mode: enables checks that are too slow to run always, in one thread or task or in the whole process."""

import contextlib
import os
from collections.abc import Iterable
from contextvars import ContextVar

from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.scopes import Entry, Scope

ENVIRONMENT = "EMBERHARMONY_CHECK"
WORDS = ("nan", "bounds", "dtype", "device", "lazy", "gradients")
"""The checks of `ops.checked`."""

FEW_MOVES = 10
"""So many times a cell may change its backend before checked mode warns."""

_LIMIT = 4
"""The place of another number of moves in an entry, if a block sets one."""


def names_of_checks(options: Iterable[object], asker: str) -> frozenset[str]:
    """Returns words as a set of names of checks, after a check that they are known.

    Args:
        options: the names.
        asker: what gave them, for the message.

    Raises:
        ArgumentError: if one is unknown.
    """
    words = tuple(options)
    for word in words:
        if word not in WORDS:
            raise ArgumentError(f"{asker}: {word!r} is no check; the checks are {', '.join(WORDS)}")
    return frozenset(map(str, words))


def _checks_from_environment(text: str) -> frozenset[str]:
    """Returns the checks that the environment variable names; "1" means bounds, "0" and an empty text none."""
    if text.strip() in ("", "0", "1"):
        return frozenset(("bounds",) if text.strip() == "1" else ())
    return names_of_checks((word.strip() for word in text.split(",") if word.strip()), ENVIRONMENT)


OUTSIDE = _checks_from_environment(os.environ.get(ENVIRONMENT, ""))
"""The checks of the whole process."""

_OUTSIDE = "bounds" in OUTSIDE
_CHECKING: ContextVar[Entry | None] = ContextVar("emberharmony_checking", default=None)


def checking() -> bool:
    """Returns whether the bounds of indices are checked in this thread or task."""
    entry = _CHECKING.get()
    return _OUTSIDE if entry is None else bool(entry[0])


def most_moves() -> int | None:
    """Returns how often a cell may change its backend without a warning; None if that is not checked."""
    entry = _CHECKING.get()
    if entry is not None and len(entry) > _LIMIT:
        move_limit: int = entry[_LIMIT]
        return move_limit
    return FEW_MOVES if checking() else None


def is_switched_off(since_entry: Entry | None) -> bool:
    """Returns whether a block, inside of the one that `since_entry` describes, has turned all checks off.

    Args:
        since_entry: what `innermost_entry` returned when the other block began.
    """
    entry = _CHECKING.get()
    return entry is not None and entry is not since_entry and entry[0] is False and len(entry) == _LIMIT


def innermost_entry() -> Entry | None:
    """Returns the entry of the innermost block."""
    return _CHECKING.get()


class checked(Scope, contextlib.ContextDecorator):  # noqa: N801  (a context manager that reads as a function, like contextlib's)
    """Turns the check of bounds on, or all checks off, for this thread or asyncio task: see `ops.checked`.

    Args:
        on: whether bounds are checked.
        moves: how often a cell may change its backend, if that is checked.
    """

    _stack = _CHECKING

    def __init__(self, on: bool = True, moves: int | None = None) -> None:
        super().__init__()
        self._on, self._moves = bool(on), moves

    def __enter__(self) -> None:
        limit_entry = () if self._moves is None else (self._moves,)
        _CHECKING.set((self._on, _CHECKING.get(), self, self._watch, *limit_entry))
