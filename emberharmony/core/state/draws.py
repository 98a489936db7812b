"""Recording and replaying random draws when a transform re-runs a function."""

from _weakref import ref  # weakref.ref, without the import of weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from emberharmony.core.errors import EmberError
from emberharmony.core.state.scopes import Entry, Scope

Clone = Callable[[Any], Any]
S = TypeVar("S")


class HostDrawError(EmberError):
    """Raised when an effect on the host would happen once, although a transform computes several results."""


class NotNowError(HostDrawError):
    """Raised if a function cannot be recorded in this call, but perhaps in a later one."""


_WATCHERS: ContextVar[Entry | None] = ContextVar("emberharmony_draws", default=None)


class _Watcher(Scope):
    """A block that can replace each random stream that this thread or task draws from."""

    _stack = _WATCHERS

    def __enter__(self) -> None:
        self.outer = _innermost_watcher()
        _WATCHERS.set((self, _WATCHERS.get(), self, self._watch))

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns the stream to draw from instead of `stream`: by default, the choice of the enclosing block."""
        return stream if self.outer is None else self.outer.stream(stream, clone, on_host)


def _innermost_watcher() -> _Watcher | None:
    """Returns the innermost watcher of this thread or task."""
    entry = _WATCHERS.get()
    return None if entry is None else cast(_Watcher, entry[0])


def stream_to_draw_from(stream: S, clone: Callable[[S], S], on_host: bool = True) -> S:
    """Returns the stream to draw from: this one, or a clone of its former state while a function is replayed.

    Args:
        clone: returns a copy of a stream, which gives the same numbers as the original.
        on_host: whether the numbers are drawn on the host, so that they are constants to a transform that vectorizes or
            compiles.
    """
    watcher = _innermost_watcher()
    return stream if watcher is None else cast(S, watcher.stream(stream, clone, on_host))


class Aside(_Watcher):
    """A block that draws from clones, so that the random streams themselves do not advance."""

    def __init__(self) -> None:
        super().__init__()
        self._clones: dict[int, tuple[Any, Any]] = {}

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns a clone of the stream, the same one at every draw."""
        if id(stream) not in self._clones:
            outer_stream = super().stream(stream, clone, on_host)
            self._clones[id(stream)] = stream, clone(outer_stream)  # keeps the stream, so that no other gets its id
        return self._clones[id(stream)][1]


OPEN: "list[Any]" = []
"""Weak references to the `WithoutDraws` blocks that are open in any thread; `torch.compile` can trace its length."""


class WithoutDraws(_Watcher):
    """A block in which each random draw on the host raises `HostDrawError`."""

    entered = False
    """Whether there was ever such a block, so that until then `torch.compile` can trace `refuse_effect`."""
    holder: Callable[[], Any] = staticmethod(lambda: None)
    """Returns what holds the assignments to cells in this thread, or None; the module of cells sets it."""

    def __enter__(self) -> None:
        WithoutDraws.entered = True
        OPEN.append(ref(self, OPEN.remove))
        self.held_by = self.holder()
        super().__enter__()

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns the stream to draw from.

        Raises:
            HostDrawError: if the numbers are drawn on the host.
        """
        if on_host:
            raise HostDrawError("a random number would be drawn once, although the transform computes several results")
        return super().stream(stream, clone, on_host)


class Rewinding(_Watcher):
    """A block that can reset the NumPy streams that were drawn from inside it to their state at its start."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[int, tuple[Any, Any]] = {}

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns the stream that the enclosing block chooses, and saves its state before the first draw."""
        chosen_stream = super().stream(stream, clone, on_host)
        if id(chosen_stream) not in self._before:
            self._before[id(chosen_stream)] = (
                chosen_stream,
                chosen_stream.bit_generator.state,
            )  # keeps the stream, so that no other gets its id
        return chosen_stream

    def rewind(self) -> None:
        """Resets each stream to its state before the first draw in the block."""
        for stream, state in self._before.values():
            stream.bit_generator.state = state


class Recording(WithoutDraws):
    """A block in which a recorder notes each draw that it can repeat; any other draw raises `HostDrawError`.

    Args:
        note: makes a draw, notes it, and returns the traced result.
        effects: what notes gradients that cells get, and steps of optimizers (`core/cells/effects.py`).
    """

    def __init__(self, note: Callable[[Callable[[], Any]], Any], effects: Any) -> None:
        super().__init__()
        self._note, self._noting, self._streams = note, False, Rewinding()
        self.effects = effects

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        """Returns the stream to draw from.

        Raises:
            HostDrawError: if the numbers are drawn on the host, and the draw is not noted.
        """
        if not self._noting:
            return super().stream(stream, clone, on_host)
        self._streams.outer = self.outer
        return self._streams.stream(stream, clone, on_host)

    def trace_draw(self, draw: Callable[[], Any]) -> Any:
        """Notes a draw for the recorded program, and returns its traced result."""
        self._noting = True
        try:
            return self._note(draw)
        finally:
            self._noting = False

    def rewind(self) -> None:
        """Sets the streams back to where they were before the first draw in the block."""
        self._streams.rewind()


def current_recording() -> Recording | None:
    """Returns the innermost block of this thread or task, if it is a `Recording`."""
    if not WithoutDraws.entered:
        return None
    watcher = _innermost_watcher()
    return watcher if isinstance(watcher, Recording) else None


def draw_or_trace(draw: Callable[[], S], source: Any = None) -> S:
    """Returns `draw()`, a tensor of random numbers; while a recorder notes the calls of a function, a traced tensor.

    Args:
        draw: draws the numbers. A program that was recorded calls it again.
        source: the generator, if it is not a default stream. A draw from one that the recorded function has made itself
            is not noted, because each call of the function would make a new one.
    """
    recorder = current_recording()
    if recorder is None or (source is not None and source.made_in is recorder):
        return draw()
    return cast(S, recorder.trace_draw(draw))


def refuse_effect(what: str, holder: Any = None) -> None:
    """Raises an error if an effect on the host would happen inside a `WithoutDraws` block.

    Args:
        what: the effect, for the message, such as "gradients would be accumulated".
        holder: what holds the effect, if it ends with that; a `WithoutDraws` block around the holder then allows it.

    Raises:
        HostDrawError: inside a `WithoutDraws` block, where the effect would happen once and not for each result.
    """
    watcher = _innermost_watcher() if WithoutDraws.entered else None
    while watcher is not None:
        if isinstance(watcher, WithoutDraws) and (holder is None or watcher.held_by is holder):
            raise HostDrawError(f"{what} once, although the transform computes several results")
        watcher = watcher.outer


def is_without_draws() -> bool:
    """Returns whether this thread or task is inside of a `WithoutDraws` block."""
    watcher = _innermost_watcher() if WithoutDraws.entered else None
    while watcher is not None and not isinstance(watcher, WithoutDraws):
        watcher = watcher.outer
    return watcher is not None


class Draws:
    """The random streams that a function drew from, in the state before the draws.

    A function that runs first inside `with draws.first_run():` and later inside `with draws.later_run():` draws the
    same numbers again.
    """

    def __init__(self) -> None:
        self._before: dict[int, tuple[Any, Any]] = {}
        self._ran = False

    def next_run(self) -> _Watcher:
        """Returns a context manager for the next of several runs: the first run is recorded, the others replay it."""
        if self._ran:
            return self.later_run()
        self._ran = True
        return self.first_run()

    def first_run(self) -> _Watcher:
        """Returns a context manager for the first run of the function: it remembers where each random stream begins."""
        self._before = {}
        return _Recorded(self._before)

    def later_run(self) -> _Watcher:
        """Returns a context manager for a later run: it draws from clones, so the streams themselves do not advance."""
        return _Replayed(self._before)


class _Recorded(_Watcher):
    """A block that keeps a clone of each stream from before the first draw."""

    def __init__(self, before: dict[int, tuple[Any, Any]]) -> None:
        super().__init__()
        self._before = before

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        chosen_stream = super().stream(stream, clone, on_host)
        if id(stream) not in self._before:
            self._before[id(stream)] = stream, clone(chosen_stream)  # keeps the stream, so that no other gets its id
        return chosen_stream


class _Replayed(_Watcher):
    """A block that replaces each recorded stream by a clone of the recorded state."""

    def __init__(self, before: dict[int, tuple[Any, Any]]) -> None:
        super().__init__()
        self._before = before
        self._running: dict[int, Any] = {}

    def stream(self, stream: Any, clone: Clone, on_host: bool) -> Any:
        stream_id = id(stream)
        if stream_id not in self._before:
            return super().stream(stream, clone, on_host)
        if stream_id not in self._running:
            self._running[stream_id] = clone(self._before[stream_id][1])
        return self._running[stream_id]
