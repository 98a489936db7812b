"""`ops.record`: a log of the calls of ops."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, overload

from emberharmony.core import selection
from emberharmony.core.dtypes import ALL
from emberharmony.core.errors import ArgumentError, suggest
from emberharmony.core.registry import ALIASES
from emberharmony.core.state.files import replace_text
from emberharmony.core.trees.tree import tree_map
from emberharmony.transforms.observe import Call, Observation, Watcher, values_of

_PACKAGE = str(Path(__file__).parents[1])
_OF_USERS = ("examples", "demo")
"""Folders of the package whose lines count as the user's."""

_INSIDE: dict[str, bool] = {}
"""Whether a file belongs to the package."""

FORMAT = 1
"""The version of the JSON of a log."""

_FIELDS = (
    *("op", "path", "depth", "shapes", "dtypes", "results", "result_dtypes", "seconds", "bytes", "frame"),
    *("gradient_of", "backend", "error", "started", "peak"),
)
_PLAIN = frozenset((int, float, bool, str, complex, type(None)))
_BY_NAME = {dtype.name: dtype for dtype in ALL}


class Event:
    """One call of an op.

    Attributes:
        op: the name of the op.
        path: the module that was running, such as "Net.blocks.0.linear"; "" outside of modules.
        depth: the number of composites around the call.
        seconds: the time that the call took, with all calls inside of it.
        gradient_of: in the backward pass of a tape, the op whose gradient was being computed; otherwise "".
        backend: the name of the backend.
        error: the class of the exception that the op raised; "" if it raised none.
        started: when the call began, in seconds since the begin of the log.
        peak: in a profile, the most bytes that were in use during the call beyond those in use before it; None if that
            is not known.
        outer: the event of the composite around the call, or None.
    """

    __slots__ = (
        *("_arguments", "_line", "_names", "_results", "backend", "depth", "error", "gradient_of", "op", "outer"),
        *("path", "peak", "seconds", "started"),
    )
    op: str
    path: str
    depth: int
    seconds: float
    gradient_of: str
    backend: str
    error: str
    started: float
    peak: int | None
    outer: "Event | None"
    _arguments: list[tuple[Any, Any]]
    _results: list[tuple[Any, Any]]
    _line: tuple[str, int]
    _names: Any

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensors among the arguments."""
        return tuple(tuple(shape) for shape, _ in self._arguments)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Their dtypes, as names."""
        return tuple(self._names[dtype].name for _, dtype in self._arguments)

    @property
    def results(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensors in the result."""
        return tuple(tuple(shape) for shape, _ in self._results)

    @property
    def result_dtypes(self) -> tuple[str, ...]:
        """Their dtypes."""
        return tuple(self._names[dtype].name for _, dtype in self._results)

    @property
    def bytes(self) -> int:
        """The size of the tensors in the result."""
        return sum(math.prod(shape) * self._names[dtype].itemsize for shape, dtype in self._results)

    @property
    def frame(self) -> str:
        """The user's line, as "file:line"."""
        return f"{self._line[0]}:{self._line[1]}" if self._line[0] else ""

    def __repr__(self) -> str:
        given = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in zip(self.shapes, self.dtypes, strict=True))
        made = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in zip(self.results, self.result_dtypes, strict=True))
        where = f" in {self.path}" if self.path else ""
        return f"<{self.op}({given}) -> {made or self.error or None}{where}>"


class Log(Sequence[Event]):
    """The events of a program in the order in which the calls began, and what its modules returned.

    `log[0]` is an event, and `log["blocks.0.linear"]` is what the module of that name returned last, as constants.

    Attributes:
        notes: what else is to be known, such as that a compiled function ran uncompiled.
    """

    def __init__(self) -> None:
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
        fitting = [path for path in self._returned if path.partition(".")[2] == key]
        if len(fitting) == 1:
            return self._returned[fitting[0]]
        if fitting:
            raise ArgumentError(f"several modules have the name {key!r}: {', '.join(fitting)}; use one of these")
        raise ArgumentError(f"the log has no result of a module {key!r}{suggest(key, list(self._returned))}")

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __repr__(self) -> str:
        seconds = sum(event.seconds for event in self._events if event.outer is None)
        return f"<Log of {len(self)} calls, {seconds * 1e3:.3g} ms>"

    @property
    def modules(self) -> list[str]:
        """The paths of the modules whose results the log has."""
        return list(self._returned)

    def calls(self, op: str) -> list[Event]:
        """Returns the calls of an op, given its name or an alias."""
        op = ALIASES.get(op, op)
        return [event for event in self._events if event.op == op]

    def own_seconds(self) -> dict[Event, float]:
        """Returns for each event its time without that of the calls inside of it."""
        own = {event: event.seconds for event in self._events}
        for event in self._events:
            if event.outer is not None and event.outer in own:
                own[event.outer] -= event.seconds
        return own

    def table(self, by: str = "op") -> str:
        """Returns a table of calls, times and bytes, the longest first.

        Args:
            by: "op", "module" or "line".

        Raises:
            ArgumentError: if `by` is none of these.

        Example:
            >>> with ops.record() as log:
            ...     y = ops.square(ops.ones((2, 3)))
            >>> print(log.table().splitlines()[0])
            op      calls  total ms  own ms  bytes
        """
        key = GROUPS.get(by)
        if key is None:
            raise ArgumentError(f"table() groups by {', '.join(map(repr, GROUPS))}, not {by!r}")
        own, rows = self.own_seconds(), dict[str, list[float]]()
        for event in self._events:
            name = key(event)
            row = rows.setdefault(name, [0, 0.0, 0.0, 0])
            row[0] += 1
            outer = event.outer
            while outer is not None and key(outer) != name:
                outer = outer.outer
            row[1] += event.seconds if outer is None else 0.0  # else it is in the time of an outer call already
            row[2] += own[event]
            row[3] += event.bytes
        found = sorted(rows.items(), key=lambda row: -row[1][2])
        width = max(map(len, [*rows, by]), default=0) + 1
        lines = [f"{by:{width}}{'calls':>6}{'total ms':>10}{'own ms':>8}{'bytes':>7}"]
        lines += [
            f"{name:{width}}{calls:6}{total * 1e3:10.3f}{mine * 1e3:8.3f} {size:6}"
            for name, (calls, total, mine, size) in found
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Returns the events as JSON, which `Log.from_json` reads. What modules returned is left out."""
        places = {event: i for i, event in enumerate(self._events)}
        rows = []
        for event in self._events:
            row = {name: getattr(event, name) for name in _FIELDS}
            rows.append(row | {"outer": None if event.outer is None else places[event.outer]})
        return json.dumps({"format": FORMAT, "notes": self.notes, "events": rows}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Log":
        """Returns the log that a text of `to_json` describes.

        Raises:
            ArgumentError: if the text is no such JSON, or that of a later version.
        """
        try:
            read = json.loads(text)
            if read["format"] != FORMAT:
                raise ValueError(f"its format is {read['format']}, and this version reads {FORMAT}")
            log = cls()
            log.notes = [str(note) for note in read["notes"]]
            for row in read["events"]:
                event = Event()
                for name in ("op", "path", "depth", "seconds", "gradient_of", "backend", "error", "started", "peak"):
                    setattr(event, name, row[name])
                event._names = _BY_NAME
                event._arguments = _pairs(row["shapes"], row["dtypes"])
                event._results = _pairs(row["results"], row["result_dtypes"])
                file, _, line = row["frame"].rpartition(":")
                event._line = file, int(line or 0)
                event.outer = None if row["outer"] is None else log._events[row["outer"]]
                log._events.append(event)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ArgumentError(f"the text is no log of ops.record: {type(error).__name__}: {error}") from error
        return log

    def save(self, file: str | Path) -> None:
        """Writes the events into a file as JSON."""
        replace_text(str(file), self.to_json() + "\n")

    @classmethod
    def load(cls, file: str | Path) -> "Log":
        """Returns the log in a file that `save` wrote.

        Raises:
            ArgumentError: if the file is no log.
            OSError: if the file cannot be read.
        """
        return cls.from_json(Path(file).read_text(encoding="utf-8"))


class Recorder(Watcher):
    """The watcher that fills a log.

    Args:
        log: the log.
        backward: see `record`.
        capture: see `record`.
    """

    def __init__(self, log: Log, backward: bool = False, capture: str | Sequence[str] | None = None) -> None:
        self.log, self.backward = log, backward
        self._patterns = ("*",) if capture is None else (capture,) if isinstance(capture, str) else tuple(capture)
        self._begun: float | None = None

    def before(self, call: Call) -> None:
        """Adds the event of a call."""
        event = Event()
        backend, outer = call.backend, call.outer
        event.op, event.path, event.depth = call.spec.name, call.path, call.depth
        event.outer = None if outer is None else outer.kept.get(self)
        event.gradient_of, event.backend, event.error = call.gradient_of, backend.name, ""
        event._names, event._results = backend.dtypes.neutral, []
        event._arguments = _described(call.args, backend.tensor_type, [])
        if call.kwargs:
            _described(call.kwargs.values(), backend.tensor_type, event._arguments)
        event._line = user_line(sys._getframe(2)) if event.outer is None else event.outer._line
        event.seconds, event.started, event.peak = 0.0, 0.0, None
        call.kept[self] = event
        self.log._events.append(event)

    def after(self, call: Call, result: Any) -> None:
        """Adds what is known of the result."""
        event: Event | None = call.kept.get(self)
        if event is not None:
            if self._begun is None:
                self._begun = call.started
            event.seconds, event.started = call.seconds, call.started - self._begun
            event._results = _described((result,), call.backend.tensor_type, [])

    def failed(self, call: Call, error: Exception) -> None:
        """Adds the class of the error."""
        self.after(call, None)
        event: Event | None = call.kept.get(self)
        if event is not None:
            event.error = type(error).__name__

    def returned(self, path: str, result: Any) -> None:
        """Keeps what a module returned, as constants."""
        name = path.partition(".")[2]
        if any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in self._patterns):
            self.log._returned[path] = tree_map(_constant, result)

    def noted(self, text: str) -> None:
        """Keeps a note, once."""
        if text not in self.log.notes:
            self.log.notes.append(text)


class Recording(Observation):
    """The block of `ops.record`.

    Args:
        backward: see `record`.
        capture: see `record`.
    """

    __slots__ = ("_backward", "_capture")

    def __init__(self, backward: bool = False, capture: str | Sequence[str] | None = None) -> None:
        super().__init__(Watcher())
        self._backward, self._capture = bool(backward), capture

    def __enter__(self) -> Log:
        """Starts the recording and returns an empty log."""
        log = Log()
        self.watcher = Recorder(log, self._backward, self._capture)
        super().__enter__()
        return log


def user_line(frame: Any) -> tuple[str, int]:
    """Returns the file and line of the innermost frame, from one outwards, that does not belong to the package."""
    while frame is not None:
        name = frame.f_code.co_filename
        inside = _INSIDE.get(name)
        if inside is None:
            rest = name[len(_PACKAGE) + 1 :].replace("\\", "/").partition("/")[0]
            inside = _INSIDE[name] = name.startswith(_PACKAGE) and rest not in _OF_USERS
        if not inside:
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0


def _described(values: Any, kind: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Adds the shape and the native dtype of each tensor among values to a list, and returns the list."""
    for x in values:
        of = x.__class__
        if of is kind:
            found.append((x.shape, x.dtype))
        elif of in _PLAIN:
            continue
        elif of is list or of is tuple or isinstance(x, tuple):
            _described(x, kind, found)
        elif isinstance(x, dict):
            _described(x.values(), kind, found)
        elif isinstance(x, kind):
            found.append((x.shape, x.dtype))
    return found


def _constant(x: Any) -> Any:
    """Returns a tensor as a constant, which keeps no graph alive; anything else unchanged."""
    x = values_of(x)
    backend = selection.current().unwatched
    return backend.bound.stop_gradient(x) if isinstance(x, backend.tensor_type) else x


def _pairs(shapes: Any, dtypes: Any) -> list[tuple[Any, Any]]:
    return [(tuple(map(int, shape)), str(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]


def _op(event: Event) -> str:
    return event.op


def _module(event: Event) -> str:
    return event.path or "-"


def _line(event: Event) -> str:
    return event.frame


GROUPS: dict[str, Callable[[Event], str]] = {"op": _op, "module": _module, "line": _line}
"""What tables group by."""
