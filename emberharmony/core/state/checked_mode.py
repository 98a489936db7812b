"""Checked mode: enables checks that are too slow to run always, in one thread or task or in the whole process."""

import contextlib
import os
from contextvars import ContextVar

from emberharmony.core.state.scopes import Entry, Scope

ENVIRONMENT = "EMBERHARMONY_CHECK"
_OUTSIDE = os.environ.get(ENVIRONMENT, "0") not in ("", "0")
_CHECKING: ContextVar[Entry | None] = ContextVar("emberharmony_checking", default=None)


def checking() -> bool:
    """Returns whether checked mode is on in this thread or task."""
    entry = _CHECKING.get()
    return _OUTSIDE if entry is None else bool(entry[0])


class checked(Scope, contextlib.ContextDecorator):  # noqa: N801  (a context manager that reads as a function, like contextlib's)
    """Turns checked mode on or off for this thread or asyncio task, as a context manager or as a decorator.

    MLX does not check the bounds of indices, so an index out of range reads arbitrary memory. In checked mode a tensor
    of indices is read back and checked, which forces evaluation. `EMBERHARMONY_CHECK=1` turns checked mode on for the
    whole process.

    Example:
        >>> with ops.checked():
        ...     ops.take([10, 20, 30], ops.array([0, 2])).tolist()
        [10, 30]
    """

    _stack = _CHECKING

    def __init__(self, on: bool = True) -> None:
        super().__init__()
        self._on = on

    def __enter__(self) -> None:
        _CHECKING.set((self._on, _CHECKING.get(), self, self._watch))
