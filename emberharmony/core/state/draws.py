"""Recording and replaying random draws when a transform re-runs a function."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from emberharmony.core.errors import EmberError
from emberharmony.core.state.scopes import Entry, Scope

Clone = Callable[[Any], Any]
S = TypeVar("S")


class HostDrawError(EmberError):
    """Tells that something would be done once, on the host, for what is computed several times."""


_WATCHERS: ContextVar[Entry | None] = ContextVar("emberharmony_draws", default=None)


class _Watcher(Scope):
    """Sees, in this thread or task and within its block, every stream that is drawn from."""

    _stack = _WATCHERS

    def __enter__(self) -> None:
        self.outer = _watcher()
        _WATCHERS.set((self, _WATCHERS.get(), self))

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns the stream to draw from in place of this one."""
        return stream if self.outer is None else self.outer.stream(stream, clone, on_host)


def _watcher() -> _Watcher | None:
    """Returns the innermost watcher of this thread or task."""
    entry = _WATCHERS.get()
    return None if entry is None else cast(_Watcher, entry[0])


def watched(stream: S, clone: Callable[[S], S], on_host: bool = True) -> S:
    """Returns the stream to draw from: this one, or its clone while a function runs again on the numbers it drew.

    Args:
        clone: returns a stream that goes on as the one it is given would.
        on_host: what is drawn is a constant to a transform that vectorizes or compiles.
    """
    watcher = _watcher()
    return stream if watcher is None else cast(S, watcher.stream(stream, clone, on_host))


class WithoutDraws(_Watcher):
    """Makes whatever draws random numbers on the host raise `HostDrawError`."""

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns the stream, if it is none of the host's."""
        if on_host:
            raise HostDrawError("a random number would be drawn once for what a transform computes several times")
        return super().stream(stream, clone, on_host)


def refuse_effect(what: str) -> None:
    """Raises `HostDrawError` under `WithoutDraws`, where `what` would be done once and not for each result."""
    watcher = _watcher()
    while watcher is not None:
        if isinstance(watcher, WithoutDraws):
            raise HostDrawError(f"{what} once for what a transform computes several times")
        watcher = watcher.outer


class Draws:
    """The streams that a function drew from, as they were before: `with draws.replayed():` it draws the same again."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Any, Any]] = {}
        self._ran = False

    def repeated(self) -> _Watcher:
        """Returns a block for each of several runs: those after the first draw what it drew."""
        if self._ran:
            return self.replayed()
        self._ran = True
        return self.recorded()

    def recorded(self) -> _Watcher:
        """Returns the block in which the function runs first."""
        self._before = {}
        return _Recorded(self._before)

    def replayed(self) -> _Watcher:
        """Returns a block in which it runs again; the streams themselves stay where they are."""
        return _Replayed(self._before)


class _Recorded(_Watcher):
    def __init__(self, before: dict[int, tuple[Any, Any]]) -> None:
        self._before = before

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        found = super().stream(stream, clone, on_host)
        if id(stream) not in self._before:
            self._before[id(stream)] = stream, clone(found)  # the stream is kept, so its id stays its own
        return found


class _Replayed(_Watcher):
    def __init__(self, before: dict[int, tuple[Any, Any]]) -> None:
        self._before = before
        self._running: dict[int, Any] = {}

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        key = id(stream)
        if key not in self._before:
            return super().stream(stream, clone, on_host)
        if key not in self._running:
            self._running[key] = clone(self._before[key][1])
        return self._running[key]
