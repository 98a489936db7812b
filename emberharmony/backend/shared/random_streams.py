"""The default streams of random numbers, which a seed of the process starts and a fork of the process separates."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections.abc import Callable
from operator import length_hint
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from emberharmony.backend.shared.random import Generator, checked_seed, fresh_seed
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import BackendMismatchError
from emberharmony.core.state.draws import refuse_effect, stream_to_draw_from

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared import random_state
    from emberharmony.backend.shared.random_state import State, StateReader
else:
    np = Deferred("numpy")
    random_state = Deferred("emberharmony.backend.shared.random_state")

S = TypeVar("S")


class _Seed:
    """The seed of a process's default streams, with the streams started from it, and a counter of forks.

    Args:
        value: the seed; None if each stream takes a random seed from the operating system.
        lineage: for each fork between the process that set the seed and this one, the number of the child.
        forked: the number of children before.
    """

    def __init__(self, value: int | None, lineage: tuple[int, ...] = (), forked: int = 0) -> None:
        self.value, self.lineage = value, lineage
        self.streams: dict[object, Any] = {}
        self.idle: dict[str, State] = {}
        """By backend the state of a stream of which nothing was drawn, because it was started only to be saved."""
        self.forks = iter(range(forked, sys.maxsize))

    @property
    def fork_count(self) -> int:
        """The number of children that the process has had since the seed was set."""
        return sys.maxsize - length_hint(self.forks)

    def stream_seed(self) -> int:
        """Returns the seed from which to start a stream."""
        if self.value is None:
            return fresh_seed()
        # Only forked children derive seeds of their own, so that they do not repeat their parent's numbers.
        if not self.lineage:
            return self.value
        words = np.random.SeedSequence(self.value, spawn_key=self.lineage).generate_state(2, np.uint64)
        return int(words[0]) << 64 | int(words[1])


class _Process:
    """The holder of the process's seed: one assignment to `seed` restarts all default streams."""

    seed = _Seed(None)


def start_streams(seed: int) -> None:
    """Restarts the default streams of all backends from a seed.

    Raises:
        ArgumentError: if the seed is not a non-negative integer.
    """
    refuse_effect("the default streams would be restarted")
    _Process.seed = _Seed(checked_seed(seed))


_FORKING: dict[int, int] = {}
"""For each thread, the number of the fork that it is about to make."""


def _take_fork_number() -> None:
    _FORKING[get_ident()] = next(_Process.seed.forks)


def _reseed_child() -> None:
    """Gives a forked child default streams that differ from its parent's and from those of other children."""
    seed = _Process.seed
    _Process.seed = _Seed(seed.value, (*seed.lineage, _FORKING[get_ident()]))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_fork_number, after_in_child=_reseed_child)


class DefaultStream(Generic[S]):
    """A default stream, created on first use (importing `numpy.random` takes 15 ms) and again after each new seed.

    Args:
        start: returns a new stream for a seed.
        clone: see `core.state.draws.stream_to_draw_from`; None if that is applied to the stream's own draws already.
    """

    def __init__(self, start: Callable[[int], S], clone: Callable[[S], S] | None = None) -> None:
        self._start, self._clone = start, clone

    def get(self) -> S:
        """Returns the default random stream to draw from."""
        stream = self._get()
        return stream if self._clone is None else stream_to_draw_from(stream, self._clone)

    def _get(self) -> S:
        seed = _Process.seed
        stream: S | None = seed.streams.get(self)
        if stream is None:
            # If two threads start a stream at the same time, both get the one that was stored first.
            stream = seed.streams.setdefault(self, self._start(seed.stream_seed()))
        return stream


HOST = DefaultStream(Generator)
"""The default stream for numbers that all backends draw on the host."""

_STATE = "the state of the default streams"


def streams_state(backend: str, save: Callable[[], State]) -> State:
    """Returns the states of the default streams that a backend draws from: the backend's own stream and the host's.

    Args:
        backend: the name of the backend.
        save: returns the state of its own stream.
    """
    seed = _Process.seed
    seed_text = None if seed.value is None else f"{seed.value:x}"
    state = {
        "version": random_state.VERSION,
        "backend": backend,
        "seed": {"value": seed_text, "lineage": list(seed.lineage), "forked": seed.fork_count},
        "host": HOST.get().state_dict(),
    }
    stream_names = set(seed.streams)
    native_state = state["native"] = save()
    if stream_names != set(seed.streams):
        seed.idle[backend] = native_state
    state["drawn"] = seed.idle.get(backend) != native_state
    return state


def read_streams(backend: str, state: Any) -> tuple[StateReader, _Seed]:
    """Returns a reader of the state of default streams, and a seed with the host's stream and those in use.

    Raises:
        ArgumentTypeError: if the state is not a dict.
        ArgumentError: if it is damaged or has a later version.
        BackendMismatchError: if it is the state of another backend.
    """
    reader = random_state.StateReader(_STATE, state)
    reader.check_version()
    if not isinstance(reader.state.get("backend"), str):
        raise reader.damage_error("backend", "the name of a backend")
    if reader.state["backend"] != backend:
        raise BackendMismatchError(
            f"{_STATE} is that of backend {reader.state['backend']!r}, but the active backend is {backend!r}: switch "
            f"to it (ops.use_backend), or draw from a Generator, whose state every backend continues"
        )
    has_drawn = reader.state.get("drawn", True)  # older saved states lack this entry
    if type(has_drawn) is not bool:
        raise reader.damage_error("drawn", "whether numbers were drawn")
    native_reader, seed = reader.nested_reader("native"), _seed_of(reader)
    seed.idle = {**_Process.seed.idle}
    if has_drawn:
        seed.idle.pop(backend, None)
    else:
        seed.idle[backend] = native_reader.state
    return native_reader, seed


def restore_host_stream(state: Any) -> None:
    """Sets the host's default stream to a saved state, and restarts the other default streams from its seed.

    Args:
        state: the state of default streams, of which nothing was drawn from that of the backend (`drawn` is False).

    Raises:
        ArgumentTypeError: if the state is not a dict.
        ArgumentError: if it is damaged or has a later version.
    """
    reader = random_state.StateReader(_STATE, state)
    reader.check_version()
    refuse_effect("the default streams would be restarted")
    _Process.seed = _seed_of(reader, {})


def _seed_of(reader: StateReader, other_streams: dict[object, Any] | None = None) -> _Seed:
    """Returns the seed of a saved state, with the host's stream and other streams, by default those in use."""
    seed_reader = reader.nested_reader("seed")
    seed_value = None if seed_reader.state.get("value", "") is None else seed_reader.hexadecimal("value")
    seed = _Seed(seed_value, seed_reader.integers("lineage"), seed_reader.integer("forked", 0, sys.maxsize))
    host_generator = Generator(0)
    host_generator.load_state_dict(reader.nested_reader("host").state)
    seed.streams = {**(_Process.seed.streams if other_streams is None else other_streams), HOST: host_generator}
    return seed


def restore_streams(seed: _Seed, stream: DefaultStream[S], value: S) -> None:
    """Makes the streams of `seed` the default ones, with `value` as the backend's own stream."""
    refuse_effect("the default streams would be restarted")
    seed.streams[stream] = value
    _Process.seed = seed
