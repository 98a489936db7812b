"""Hooks for the runs of two models, which note the calls, write their values to a file, or compare them with it."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from emberharmony.testing.differences.measures import distance
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
    """The base class of hooks that number the calls of modules and pass their arrays to `take_event`.

    Args:
        adapter: of the model.
        wide: whether results in a narrower floating dtype are widened to float64.

    Attributes:
        open_calls: the calls that have begun and not ended.
    """

    def __init__(self, adapter: Adapter, wide: bool = False) -> None:
        self._adapter, self._wide = adapter, wide
        self._counts: Counter[str] = Counter()
        self.open_calls: list[Event] = []

    def enter(self, path: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Takes the arguments of a call and returns those that the module gets."""
        event = Event(path, self._counts[path], ENTER)
        self._counts[path] += 1
        self.open_calls.append(event)
        new_arguments: tuple[Any, Any] = self._take_arrays(event, (tuple(args), dict(kwargs)))
        return new_arguments

    def exit(self, path: str, result: Any) -> Any:
        """Takes the result of a call and returns the one that the caller gets."""
        return self._take_arrays(self.open_calls.pop()._replace(place=EXIT), result)

    def leave(self, path: str) -> None:
        """Ends a call that raised an error; the innermost of these stays in `open_calls`."""

    def _take_arrays(self, event: Event, value: Any) -> Any:
        arrays = list(arrays_in(value, self._adapter.is_array))
        new_tensors = self.take_event(event, arrays)
        if self._wide:
            for number, array in enumerate(arrays):
                if number not in new_tensors and (wide_array := self._adapter.to_float64(array)) is not array:
                    new_tensors[number] = wide_array
        return replace_arrays(value, self._adapter.is_array, new_tensors, [0]) if new_tensors else value

    def take_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Takes the arrays of an event, and returns those that are replaced, by their number."""
        raise NotImplementedError


class Order(Watching):
    """A hook that notes the events in their order, with the shapes of the arrays.

    Attributes:
        events: the events.
    """

    def __init__(self, adapter: Adapter) -> None:
        super().__init__(adapter)
        self.events: dict[Event, list[tuple[int, ...]]] = {}

    def take_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Notes an event in order, with the shapes of its arrays; replaces no array."""
        self.events[event] = [tuple(array.shape) for array in arrays]
        return {}

    def first_calls(self) -> dict[str, int]:
        """Returns the place of the first call of each module in the order of the calls."""
        entered_paths = [event.path for event in self.events if event.place == ENTER]
        return {path: index for index, path in reversed(list(enumerate(entered_paths)))}


class Comparing(Watching):
    """The base class of hooks that compare events of modules that have a counterpart in the other model.

    Args:
        adapter: of the model.
        wide: as in `Watching`.
        names: the names in the first model of the modules that have a counterpart.

    Attributes:
        between: by event, the modules without a counterpart that ended since the event before, and changed what they
            were given.
        inside: by event, the innermost module without a counterpart that was running then and at the event before.
    """

    def __init__(self, adapter: Adapter, wide: bool, names: Mapping[str, str]) -> None:
        super().__init__(adapter, wide)
        self._names = names
        self.between: dict[Event, list[str]] = {}
        self.inside: dict[Event, str] = {}
        self._unmatched_paths: list[str] = []
        self._argument_by_event: dict[Event, Host] = {}
        self._running: list[Event] = []
        self._latest: Host | None = None  # the values with which the run continued after the last event
        self._whole: tuple[str, Host] | None = None  # the module with all code since then, and its result

    def take_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Takes the arrays of an event, and returns those that are replaced, by their number."""
        first_path = self._names.get(event.path)
        if first_path is None:
            return self._note_unmatched_event(event, arrays)
        first_event = event._replace(path=first_path)
        if self._unmatched_paths:
            self.between[first_event], self._unmatched_paths = self._unmatched_paths, []
        outer_calls = [call for call in self.open_calls if call != event]
        inner_call = outer_calls[-1] if outer_calls else None
        if inner_call is not None and inner_call.path not in self._names and inner_call in self._running:
            self.inside[first_event] = inner_call.path
        elif self._whole and arrays and not distance(self._whole[1], self._adapter.host(arrays[0])).share:
            self.inside[first_event] = self._whole[0]
        new_tensors = self.compare_event(first_event, arrays)
        self._running, self._whole = list(self.open_calls), None
        self._latest = self._adapter.host(new_tensors.get(0, arrays[0])) if arrays else None
        return new_tensors

    def _note_unmatched_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Notes an event of a module without a counterpart; replaces no array."""
        first_host = self._adapter.host(arrays[0]) if arrays else None
        if event.place == EXIT:
            call = event._replace(place=ENTER)
            argument_host = self._argument_by_event.pop(call, None)
            if first_host is None or argument_host is None or distance(argument_host, first_host).share:
                self._unmatched_paths.append(event.path)
                covers_code = call in self._running or (
                    argument_host and self._latest and not distance(argument_host, self._latest).share
                )
                self._whole = (event.path, first_host) if covers_code and first_host else None
        elif first_host is not None:
            self._argument_by_event[event] = first_host
        return {}

    def compare_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Takes an event of a module that has a counterpart, by its name in the first model, as `take_event` does."""
        raise NotImplementedError


class Spooling(Comparing):
    """A hook that writes the arrays of the calls of aligned modules into a file.

    Attributes:
        events: the arrays in the file.
    """

    def __init__(self, adapter: Adapter, wide: bool, names: Mapping[str, str], writer: Writer) -> None:
        super().__init__(adapter, wide, names)
        self._writer = writer
        self.events: dict[Event, list[Stored]] = {}

    def compare_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Writes the arrays of an event into the file; replaces no array."""
        number = len(self.events)
        self.events[event] = [self._writer.keep(array, self._adapter.host(array), number)[0] for array in arrays]
        return {}


class Following(Comparing):
    """A hook that compares the calls of a run with those in a file, and replaces their values by those of the file.

    So each comparison sees what the code since the one before does, and no fault and no rounding is inherited.

    Args:
        adapter: of the model.
        wide: as in `Watching`.
        events: what `Spooling` wrote.
        names: the names in the file of the modules, by their names in this run.
        record_event: is called with each event of the file, the arrays there and here, and the pairs of them.
        noise: how much the values of the file are changed, as a share of each element; 0 leaves them.
    """

    def __init__(
        self,
        adapter: Adapter,
        wide: bool,
        events: Mapping[Event, list[Stored]],
        names: Mapping[str, str],
        record_event: Callable[[Event, list[Stored], list[Host], list[Pair]], None],
        noise: float = 0.0,
    ) -> None:
        super().__init__(adapter, wide, names)
        self._events, self._record_event, self._noise = events, record_event, noise
        self._draws = np.random.default_rng(0)

    def compare_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Compares the arrays of an event with those in the file, and returns the file's arrays as replacements."""
        stored_hosts = self._events.get(event)
        if stored_hosts is None:
            return {}
        hosts = [self._adapter.host(array) for array in arrays]
        pairs = pairs_of(stored_hosts, hosts)
        self._record_event(event, stored_hosts, hosts, pairs)
        new_tensor_by_number: dict[int, Any] = {}
        for pair in pairs:
            host = stored_hosts[pair.first]
            if pair.fit.mask or hosts[pair.second].dtype == "bool" or host.values().dtype.kind != "f":
                continue
            replacement = pair.fit.to_second(host.values())
            if self._noise:
                signs = self._draws.integers(0, 2, replacement.shape, np.int8)
                replacement = replacement * (1.0 + self._noise * (2.0 * signs - 1.0))
            elif pair.share == 0.0:
                continue
            new_tensor_by_number[pair.second] = self._adapter.native(replacement, arrays[pair.second])
        return new_tensor_by_number


class Captured(Watching):
    """A hook that stops a run at one call, and keeps the arguments of the call.

    Attributes:
        arguments: the positional and the keyword arguments of the call.
    """

    def __init__(self, adapter: Adapter, wide: bool, event: Event) -> None:
        super().__init__(adapter, wide)
        self._event = event
        self.arguments: tuple[Any, Any] | None = None

    def _take_arrays(self, event: Event, value: Any) -> Any:
        if event == self._event:
            self.arguments = value
            raise Stopped
        return super()._take_arrays(event, value)

    def take_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Returns no replacements, because the arguments are kept as they are."""
        return {}
