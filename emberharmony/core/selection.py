"""Which backend is active: one for the whole process, and overrides seen by one thread or asyncio task only.

An override is kept in a `ContextVar` as a linked stack, so that leaving a block restores what it covered, whichever
thread or task leaves it. Until the first override is used nothing reads the `ContextVar`: `torch.compile` cannot
trace that read, and it costs 60 ns a call.

Whatever changes the choice changes all of it in one step (`commits`): an interruption leaves the old choice or the new.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from itertools import chain
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.dispatch import LOOKED_UP, Bound
from emberharmony.core.registry import OPS, complete
from emberharmony.core.state.commits import Step, assigned, commit, when
from emberharmony.core.state.scopes import Entry, Scope


class _Process:
    """The state shared by all threads."""

    def __init__(self) -> None:
        self.bound: Bound | None = None
        self.source = ""
        self.overridden = False
        self.choose: Callable[[], tuple[Any, str]] | None = None


_PROCESS = _Process()
_OVERRIDE: ContextVar[Entry | None] = ContextVar("emberharmony_backend", default=None)


def active() -> Bound:
    """Returns the ops bound to the active backend; chooses the process's backend if none is set yet."""
    if _PROCESS.overridden:
        entry = _OVERRIDE.get()
        if entry is not None:
            bound: Bound = entry[0]
            return bound
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
    complete()  # a thread that imports `ops` ends by choosing
    assert _PROCESS.choose is not None, "emberharmony.backend installs the chooser on import"
    backend, source = _PROCESS.choose()
    bound: Bound = backend.bound
    published = [assigned(_PROCESS, "source", source), assigned(_PROCESS, "bound", bound)]
    direct = _direct(backend)
    # Another thread may have set a backend in the meantime: it stays.
    commit(when(_PROCESS, "bound", None, published), when(_PROCESS, "bound", bound, direct))
    chosen: Bound | None = _PROCESS.bound
    assert chosen is not None
    return chosen


def switch(backend: Any, source: str) -> None:
    """Makes `backend` the whole process's."""
    commit(switching(backend, source))


def switching(backend: Any, source: str) -> Iterable[Step]:
    """Returns the steps that make `backend` the whole process's, to be made in one commit."""
    state = [assigned(_PROCESS, "source", source), assigned(_PROCESS, "bound", backend.bound)]
    return state if _PROCESS.overridden else chain(LOOKED_UP, state, _direct(backend))


def _direct(backend: Any) -> Iterable[Step]:
    """Returns the steps that make a backend's ops direct, unless an override was used by the time they are made."""
    bound = backend.bound
    if backend.eager:
        for name in list(OPS):
            getattr(bound, name)
    return when(_PROCESS, "overridden", False, bound._made_direct)


class Override(Scope):
    """Overrides the backend for this thread or task while the block runs."""

    _stack = _OVERRIDE

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __enter__(self) -> Any:
        """Returns the backend."""
        backend = self._chosen()
        if not _PROCESS.overridden:
            # A copied context may outlive the block that made it, so ops stay looked up for good.
            commit(LOOKED_UP, [assigned(_PROCESS, "overridden", True)])
        _OVERRIDE.set((backend.bound, _OVERRIDE.get(), self))
        return backend

    def _chosen(self) -> Any:
        return self._backend


op_globals.publish(active=active)
