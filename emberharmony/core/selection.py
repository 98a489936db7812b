"""Which backend is active: one for the whole process, and overrides seen by one thread or asyncio task only.

An override is kept in a `ContextVar` as a linked stack, so that leaving a block restores what it covered, whichever
thread or task leaves it. Until the first override is used nothing reads the `ContextVar`: `torch.compile` cannot
trace that read, and it costs 60 ns a call.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from emberharmony.core import natives
from emberharmony.core.dispatch import LOCK, Bound, point
from emberharmony.core.registry import OPS, complete

_Entry = tuple[Bound, Any]
"""The ops of an override and the entry below it, or None."""


class _Process:
    """The state shared by all threads."""

    def __init__(self) -> None:
        self.bound: Bound | None = None
        self.source = ""
        self.overridden = False
        self.choose: Callable[[], tuple[Any, str]] | None = None


_PROCESS = _Process()
_OVERRIDE: ContextVar[_Entry | None] = ContextVar("emberharmony_backend", default=None)


def active() -> Bound:
    """Returns the ops bound to the active backend; chooses the process's backend if none is set yet."""
    if _PROCESS.overridden:
        entry = _OVERRIDE.get()
        if entry is not None:
            return entry[0]
    return _PROCESS.bound or _choose()


def current() -> Any:
    """Returns the active backend object."""
    return active().backend


def source() -> str:
    """Returns where the active choice came from, in words."""
    if _OVERRIDE.get() is not None:
        return "use_backend"
    active()
    return _PROCESS.source


def on_first_use(choose: Callable[[], tuple[Any, str]]) -> None:
    """Installs what chooses the backend (and says from where) when an op runs before any was set."""
    _PROCESS.choose = choose


def _choose() -> Bound:
    complete()  # before the lock: a thread that imports `ops` ends by choosing, and would wait for it
    with LOCK:
        if _PROCESS.bound is None:
            assert _PROCESS.choose is not None, "emberharmony.backend installs the chooser on import"
            switch(*_PROCESS.choose())
    assert _PROCESS.bound is not None
    return _PROCESS.bound


def switch(backend: Any, source: str) -> None:
    """Makes `backend` the whole process's."""
    bound = backend.bound
    with LOCK:
        if not _PROCESS.overridden:
            if backend.eager:
                for name in OPS:
                    getattr(bound, name)
            if _PROCESS.bound is not None:
                _PROCESS.bound.direct = False
            point(bound, direct=True)
        _PROCESS.bound, _PROCESS.source = bound, source


def enter(backend: Any) -> None:
    """Overrides the backend for this thread or task, until `leave`."""
    if not _PROCESS.overridden:
        with LOCK:
            # A copied context may outlive the block that made it, so ops stay looked up for good.
            _PROCESS.overridden = True
            point(_PROCESS.bound or backend.bound, direct=False)
    _OVERRIDE.set((backend.bound, _OVERRIDE.get()))


def leave() -> None:
    """Undoes the innermost override of this thread or task."""
    entry = _OVERRIDE.get()
    _OVERRIDE.set(entry[1] if entry is not None else None)


natives.__dict__["active"] = active
