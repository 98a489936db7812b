"""`ops.record`: a log of the calls of ops."""

import json
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from time import perf_counter
from typing import Any, overload

from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, EmberError, suggest
from emberharmony.core.registry import ALIASES
from emberharmony.core.state.files import replace_text
from emberharmony.core.trees.tree import tree_map
from emberharmony.transforms.logs.events import FIELDS, Event, event_of_row
from emberharmony.transforms.logs.lines import line_of
from emberharmony.transforms.logs.statistics import statistics_of
from emberharmony.transforms.observe import Observation, WatchedCall, Watcher, values_of
from emberharmony.transforms.traced_tensor import TracedTensor

FORMAT = 1
"""The version of the JSON of a log."""

_SHOWN = 20
"""The number of rows that a notebook shows."""
_UNREAD = "the values inside of a function that the library transforms cannot be read: they have no statistics"

_PLAIN = frozenset((int, float, bool, str, complex, type(None)))
_new = object.__new__


class Log(Sequence[Event]):
    """The events of a program in the order in which the calls began, and what its modules returned.

    `log[0]` is an event, and `log["blocks.0.linear"]` is what the module of that name returned last, as constants.

    Attributes:
        notes: what else is to be known, such as that a compiled function ran uncompiled.
    """

    def __init__(self) -> None:
        self._begun = 0.0
        self._events: list[Event] = []
        self._returned: dict[str, Any] = {}
        self.notes: list[str] = []

    @overload
    def __getitem__(self, key: int) -> Event: ...
    @overload
    def __getitem__(self, key: slice) -> list[Event]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if not isinstance(key, str):
            return self._events[key]
        if key in self._returned:
            return self._returned[key]
        matching_paths = [path for path in self._returned if path.partition(".")[2] == key]
        if len(matching_paths) == 1:
            return self._returned[matching_paths[0]]
        if matching_paths:
            raise ArgumentError(f"several modules have the name {key!r}: {', '.join(matching_paths)}; use one of these")
        raise ArgumentError(f"the log has no result of a module {key!r}{suggest(key, list(self._returned))}")

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __repr__(self) -> str:
        seconds = sum(event.seconds for event in self._events if event.outer is None)
        return f"<Log of {len(self)} calls, {seconds * 1e3:.3g} ms>"

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the table by op, of the ops that took longest."""
        from emberharmony.core.display.html import html_table  # here, because only notebooks need it

        header, rows = self.cells(most=_SHOWN)
        omitted_count = len({event.op for event in self}) - len(rows)
        omission_notes = [f"and {omitted_count} more ops; table() has all"] if omitted_count else []
        return html_table(repr(self)[1:-1], header, rows, notes="\n".join([*omission_notes, *self.notes]))

    @property
    def modules(self) -> list[str]:
        """The paths of the modules whose results the log has."""
        return list(self._returned)

    def calls(self, op: str) -> list[Event]:
        """Returns the calls of an op, given its name or an alias.

        Args:
            op: the name of an op, or an alias.
        """
        op = ALIASES.get(op, op)
        return [event for event in self._events if event.op == op]

    def own_seconds(self) -> dict[Event, float]:
        """Returns for each event its time without that of the calls inside of it."""
        seconds_by_event = {event: event.seconds for event in self._events}
        for event in self._events:
            if event.outer is not None and event.outer in seconds_by_event:
                seconds_by_event[event.outer] -= event.seconds
        return seconds_by_event

    def cells(self, by: str = "op", most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Returns the header and the cells of a table of calls, times and bytes as texts, the longest calls first.

        Args:
            by: "op", "module" or "line".
            most: the number of rows; None gives all.

        Raises:
            ArgumentError: if `by` is none of these.
        """
        key_of = GROUPS.get(by)
        if key_of is None:
            raise ArgumentError(f"a table groups by {', '.join(map(repr, GROUPS))}, not {by!r}")
        own_seconds, rows = self.own_seconds(), dict[str, list[float]]()
        for event in self._events:
            group_name = key_of(event)
            row = rows.setdefault(group_name, [0, 0.0, 0.0, 0])
            row[0] += 1
            outer_event = event.outer
            while outer_event is not None and key_of(outer_event) != group_name:
                outer_event = outer_event.outer
            row[1] += event.seconds if outer_event is None else 0.0  # else it is in the time of an outer call already
            row[2] += own_seconds[event]
            row[3] += event.bytes
        sorted_rows = sorted(rows.items(), key=lambda row: -row[1][2])
        cell_texts = [
            [group_name, str(calls), f"{total_seconds * 1e3:.3f}", f"{own_seconds * 1e3:.3f}", str(size)]
            for group_name, (calls, total_seconds, own_seconds, size) in sorted_rows[:most]
        ]
        return [by, "calls", "total ms", "own ms", "bytes"], cell_texts

    def table(self, by: str = "op", most: int | None = None) -> str:
        """Returns a table by op, module or line.

        Args:
            by: "op", "module" or "line".
            most: the number of rows; None gives all.

        Raises:
            ArgumentError: if `by` is none of these.

        Example:
            >>> with ops.record() as log:
            ...     y = ops.square(ops.ones((2, 3)))
            >>> print(log.table().splitlines()[0])
            op      calls  total ms  own ms  bytes
        """
        header, rows = self.cells(by, most)
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = []
        for row in (header, *rows):
            padded_cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join([row[0].ljust(widths[0]), *padded_cells]))
        return "\n".join(lines)

    def to_json(self) -> str:
        """Returns the events as JSON, which `Log.from_json` reads. What modules returned is left out."""
        index_by_event = {event: i for i, event in enumerate(self._events)}
        event_rows = []
        for event in self._events:
            event_row = {name: getattr(event, name) for name in FIELDS}
            event_rows.append(event_row | {"outer": None if event.outer is None else index_by_event[event.outer]})
        return json.dumps({"format": FORMAT, "notes": self.notes, "events": event_rows}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Log":
        """Returns the log that a text of `to_json` describes.

        Args:
            text: what `to_json` returned.

        Raises:
            ArgumentError: if the text is no such JSON, or that of a later version.
        """
        try:
            content = json.loads(text)
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']}, and this version reads {FORMAT}")
            log = cls()
            log.notes = [str(note) for note in content["notes"]]
            for event_row in content["events"]:
                log._events.append(
                    event_of_row(event_row, None if event_row["outer"] is None else log._events[event_row["outer"]])
                )
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ArgumentError(f"the text is no log of ops.record: {type(error).__name__}: {error}") from error
        return log

    def save(self, file: str | Path) -> None:
        """Writes the events into a file as JSON.

        Args:
            file: the path of the file, which is replaced.
        """
        replace_text(str(file), self.to_json() + "\n")

    @classmethod
    def load(cls, file: str | Path) -> "Log":
        """Returns the log in a file that `save` wrote.

        Args:
            file: the path of a file that `save` wrote.

        Raises:
            ArgumentError: if the file is no log.
            OSError: if the file cannot be read.
        """
        return cls.from_json(Path(file).read_text(encoding="utf-8"))


class LogWriter(Watcher):
    """The watcher that fills a log.

    Args:
        log: the log.
        backward: see `record`.
        capture: see `record`.
        values: see `record`.
    """

    def __init__(
        self, log: Log, backward: bool = False, capture: str | Sequence[str] | None = None, values: bool = False
    ) -> None:
        self.log, self.backward, self._values = log, backward, values
        self._patterns = (capture,) if isinstance(capture, str) else None if capture is None else tuple(capture)
        self._facts_by_key: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        log._begun = perf_counter()

    # An event holds nothing of its own that Python's garbage collection follows, because each such object costs as much
    # as an op of the recorder: so tuples are shared, and the `WatchedCall` is not kept.

    def before(self, call: WatchedCall) -> None:
        """Adds an event to the log when an op begins."""
        outer_call = call.outer
        event: Event = _new(Event)
        event.outer = outer_event = None if outer_call is None else outer_call.kept.get(self)
        event.op = call.spec.name
        event.path = call.path
        event.depth = call.depth
        event.gradient_of = call.gradient_of
        event.where = call.backend
        event.line = line_of(event.op) if outer_event is None else outer_event.line
        tensor_type = call.backend.tensor_type
        shapes_and_dtypes: list[Any] = []
        for x in call.args:
            if x.__class__ is tensor_type:
                shapes_and_dtypes += (x.shape, x.dtype)
            elif x.__class__ not in _PLAIN:
                _add_shapes_and_dtypes(x, tensor_type, shapes_and_dtypes)
        if call.kwargs:
            _add_shapes_and_dtypes(call.kwargs, tensor_type, shapes_and_dtypes)
        argument_facts = tuple(shapes_and_dtypes)
        event.given = self._facts_by_key.setdefault(argument_facts, argument_facts)
        event.made, event.error, event.peak, event.values, event.started, event.seconds = (), "", None, None, 0.0, 0.0
        call.kept[self] = event
        self.log._events.append(event)

    def after(self, call: WatchedCall, result: Any) -> None:
        """Adds the time, and the shapes and dtypes of the result, to the event of a call."""
        event = call.kept.get(self)
        if event is not None:
            event.started = call.started - self.log._begun
            event.seconds = call.seconds
            tensor_type = call.backend.tensor_type
            if result.__class__ is tensor_type:
                result_facts = result.shape, result.dtype
            else:
                shapes_and_dtypes: list[Any] = []
                _add_shapes_and_dtypes(result, tensor_type, shapes_and_dtypes)
                result_facts = tuple(shapes_and_dtypes)
            event.made = self._facts_by_key.setdefault(result_facts, result_facts)
            if self._values and not event.error:
                try:
                    event.values = statistics_of(result, call.backend)
                except (EmberError, ValueError, RuntimeError):
                    self.on_note(_UNREAD)

    def on_error(self, call: WatchedCall, error: Exception) -> None:
        """Adds the class of the error that an op raised to the event of its call."""
        event = call.kept.get(self)
        if event is not None:
            event.error = type(error).__name__
        self.after(call, None)

    def on_return(self, path: str, result: Any) -> None:
        """Stores what a module returned, as constant tensors, if its path was asked for."""
        patterns, inner_path = self._patterns, path.partition(".")[2]
        if patterns is None or any(
            fnmatchcase(path, pattern) or fnmatchcase(inner_path, pattern) for pattern in patterns
        ):
            # Most modules return one tensor, for which no tree has to be walked.
            is_tensor = result.__class__ is TracedTensor or hasattr(result, "dtype")
            self.log._returned[path] = _as_constant(result) if is_tensor else tree_map(_as_constant, result)

    def takes_programs(self, backend: Any) -> bool:
        """Returns True: a log shows which calls took the time."""
        return True

    def on_note(self, text: str) -> None:
        """Adds a note to the log, unless it is there already."""
        if text not in self.log.notes:
            self.log.notes.append(text)


class LogBlock(Observation):
    """The block of `ops.record`.

    Args:
        backward: see `record`.
        capture: see `record`.
        values: see `record`.
    """

    __slots__ = ("_options",)

    def __init__(
        self, backward: bool = False, capture: str | Sequence[str] | None = None, values: bool = False
    ) -> None:
        super().__init__(Watcher())
        self._options = bool(backward), capture, bool(values)

    def __enter__(self) -> Log:
        """Starts the recording and returns an empty log."""
        log = Log()
        self.watcher = LogWriter(log, *self._options)
        super().__enter__()
        return log


def _add_shapes_and_dtypes(value: Any, tensor_type: Any, shapes_and_dtypes: list[Any]) -> None:
    """Adds the shape and the native dtype of each tensor in a value to a list."""
    if isinstance(value, (list, tuple)):
        for x in value:
            _add_shapes_and_dtypes(x, tensor_type, shapes_and_dtypes)
    elif isinstance(value, dict):
        for x in value.values():
            _add_shapes_and_dtypes(x, tensor_type, shapes_and_dtypes)
    elif value.__class__ not in _PLAIN and isinstance(value, tensor_type):
        shapes_and_dtypes += (value.shape, value.dtype)


def _as_constant(x: Any) -> Any:
    """Returns a tensor as a constant, which keeps no graph alive; anything else unchanged."""
    x = values_of(x)
    backend = selection.current().without_watchers
    return backend.bound.stop_gradient(x) if isinstance(x, backend.tensor_type) else x


def _op_name(event: Event) -> str:
    return event.op


def _module_path(event: Event) -> str:
    return event.path or "-"


def _line_text(event: Event) -> str:
    return event.frame


GROUPS: dict[str, Callable[[Event], str]] = {"op": _op_name, "module": _module_path, "line": _line_text}
"""What tables group by."""
