"""Hooks for the runs of two models: their calls in order, their values in a file, and the comparison with these."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from emberharmony.testing.differences.records import Host
from emberharmony.testing.differences.runs import Stopped
from emberharmony.testing.differences.spool import Stored, Writer
from emberharmony.testing.models.adapter import Adapter
from emberharmony.testing.models.arrays import Pair, arrays_in, pairs_of, replace_arrays

ENTER, EXIT = "enter", "exit"


class Event(NamedTuple):
    """The beginning or the end of a call of a module: its name, the number of the call, and "enter" or "exit"."""

    path: str
    call: int
    place: str


class Watching:
    """Numbers the calls of modules; subclasses see the values.

    Args:
        adapter: of the model.
        wide: whether results in a narrower floating dtype are widened to float64.

    Attributes:
        open: the calls that have begun and not ended.
    """

    def __init__(self, adapter: Adapter, wide: bool = False) -> None:
        self._adapter, self._wide = adapter, wide
        self._counts: Counter[str] = Counter()
        self.open: list[Event] = []

    def enter(self, path: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Takes the arguments of a call and returns those that the module gets."""
        event = Event(path, self._counts[path], ENTER)
        self._counts[path] += 1
        self.open.append(event)
        changed: tuple[Any, Any] = self._at(event, (tuple(args), dict(kwargs)))
        return changed

    def exit(self, path: str, result: Any) -> Any:
        """Takes the result of a call and returns the one that the caller gets."""
        return self._at(self.open.pop()._replace(place=EXIT), result)

    def leave(self, path: str) -> None:
        """Ends a call that raised an error; the innermost of these stays in `open`."""

    def _at(self, event: Event, value: Any) -> Any:
        arrays = list(arrays_in(value, self._adapter.is_array))
        new = self.met(event, arrays)
        if self._wide:
            for number, array in enumerate(arrays):
                if number not in new and (wide := self._adapter.to_float64(array)) is not array:
                    new[number] = wide
        return replace_arrays(value, self._adapter.is_array, new, [0]) if new else value

    def met(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Takes the arrays of an event, and returns those that are replaced, by their number."""
        raise NotImplementedError


class Order(Watching):
    """Notes the events in their order, with the shapes of the arrays.

    Attributes:
        events: the events.
    """

    def __init__(self, adapter: Adapter) -> None:
        super().__init__(adapter)
        self.events: dict[Event, list[tuple[int, ...]]] = {}

    def met(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Notes an event."""
        self.events[event] = [tuple(array.shape) for array in arrays]
        return {}

    def first_calls(self) -> dict[str, int]:
        """Returns the place of the first call of each module in the order of the calls."""
        entered = [event.path for event in self.events if event.place == ENTER]
        return {path: at for at, path in reversed(list(enumerate(entered)))}


class Spooling(Watching):
    """Writes the arrays of the calls of some modules into a file.

    Attributes:
        events: the arrays in the file.
    """

    def __init__(self, adapter: Adapter, wide: bool, paths: set[str], writer: Writer) -> None:
        super().__init__(adapter, wide)
        self._paths, self._writer = paths, writer
        self.events: dict[Event, list[Stored]] = {}

    def met(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Writes an event."""
        if event.path in self._paths:
            number = len(self.events)
            self.events[event] = [self._writer.keep(array, self._adapter.host(array), number)[0] for array in arrays]
        return {}


class Following(Watching):
    """Compares the calls of a run with those in a file, and goes on with the values of the file.

    So each comparison sees what the code since the one before does, and no fault and no rounding is inherited.

    Args:
        adapter: of the model.
        wide: as in `Watching`.
        events: what `Spooling` wrote.
        names: the names in the file of the modules, by their names in this run.
        see: is called with each event of the file, the arrays there and here, and the pairs of them.
        noise: how much the values of the file are changed, as a share of each element; 0 leaves them.
    """

    def __init__(
        self,
        adapter: Adapter,
        wide: bool,
        events: Mapping[Event, list[Stored]],
        names: Mapping[str, str],
        see: Callable[[Event, list[Stored], list[Host], list[Pair]], None],
        noise: float = 0.0,
    ) -> None:
        super().__init__(adapter, wide)
        self._events, self._names, self._see, self._noise = events, names, see, noise
        self._draws = np.random.default_rng(0)

    def met(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Compares an event."""
        name = self._names.get(event.path)
        there = None if name is None else event._replace(path=name)
        stored = None if there is None else self._events.get(there)
        if there is None or stored is None:
            return {}
        hosts = [self._adapter.host(array) for array in arrays]
        pairs = pairs_of(stored, hosts)
        self._see(there, stored, hosts, pairs)
        new: dict[int, Any] = {}
        for pair in pairs:
            host = stored[pair.first]
            if pair.fit.mask or hosts[pair.second].dtype == "bool" or host.values().dtype.kind != "f":
                continue
            values = pair.fit.to_second(host.values())
            if self._noise:
                signs = self._draws.integers(0, 2, values.shape, np.int8)
                values = values * (1.0 + self._noise * (2.0 * signs - 1.0))
            elif pair.share == 0.0:
                continue
            new[pair.second] = self._adapter.native(values, arrays[pair.second])
        return new


class Captured(Watching):
    """Ends a run at a call, and keeps its arguments.

    Attributes:
        arguments: the positional and the keyword arguments of the call.
    """

    def __init__(self, adapter: Adapter, wide: bool, event: Event) -> None:
        super().__init__(adapter, wide)
        self._event = event
        self.arguments: tuple[Any, Any] | None = None

    def _at(self, event: Event, value: Any) -> Any:
        if event == self._event:
            self.arguments = value
            raise Stopped
        return super()._at(event, value)

    def met(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Changes nothing."""
        return {}
