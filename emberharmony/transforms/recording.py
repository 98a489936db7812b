"""`ops.record`: a log of the calls of ops."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
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

_DISTANCES: dict[tuple[int, int], tuple[Any, ...]] = {}
"""By the code that calls an op and the place in it: how many frames further out the user's frame is, the code of that
frame, the place and the line in it, and the calling code itself, so that its number belongs to no other code."""

_MOST = 10_000
"""So many places are kept."""

FORMAT = 1
"""The version of the JSON of a log."""

_FIELDS = (
    *("op", "path", "depth", "shapes", "dtypes", "results", "result_dtypes", "seconds", "bytes", "frame"),
    *("gradient_of", "backend", "error", "started", "peak"),
)
_PLAIN = frozenset((int, float, bool, str, complex, type(None)))
_CALL, _LINE, _ERROR, PEAK, _END, _FIRST = range(6)
"""The places in what a recorder keeps of a call: the call, the user's line, the error, the peak of memory, the place
after the arguments; and from there shape and dtype of each tensor among the arguments, then of each in the result."""

_BY_NAME = {dtype.name: dtype for dtype in ALL}


class Event:
    """One call of an op.

    Attributes:
        outer: the event of the composite around the call, or None.
    """

    __slots__ = ("_begun", "_raw", "outer")

    def __init__(self, raw: list[Any], begun: float, outer: "Event | None") -> None:
        self._raw, self._begun, self.outer = raw, begun, outer

    @property
    def _call(self) -> Any:
        return self._raw[_CALL]

    @property
    def error(self) -> str:
        """The class of the exception that the op raised; "" if it raised none."""
        return str(self._raw[_ERROR])

    @property
    def peak(self) -> int | None:
        """In a profile, the most bytes in use during the call beyond those in use before it; None if not known."""
        found: int | None = self._raw[PEAK]
        return found

    @property
    def _arguments(self) -> list[tuple[Any, Any]]:
        tensors = self._raw[_FIRST : self._raw[_END]]
        return list(zip(tensors[::2], tensors[1::2], strict=True))

    @property
    def _results(self) -> list[tuple[Any, Any]]:
        tensors = self._raw[self._raw[_END] :]
        return list(zip(tensors[::2], tensors[1::2], strict=True))

    @property
    def op(self) -> str:
        """The name of the op."""
        return str(self._call.spec.name)

    @property
    def path(self) -> str:
        """The module that was running, such as "Net.blocks.0.linear"; "" outside of modules."""
        return str(self._call.path)

    @property
    def depth(self) -> int:
        """The number of composites around the call."""
        return int(self._call.depth)

    @property
    def backend(self) -> str:
        """The name of the backend."""
        return str(self._call.backend.name)

    @property
    def seconds(self) -> float:
        """The time that the call took, with all calls inside of it."""
        return float(self._call.seconds)

    @property
    def started(self) -> float:
        """When the call began, in seconds since the begin of the log."""
        return max(float(self._call.started) - self._begun, 0.0)

    @property
    def gradient_of(self) -> str:
        """In the backward pass of a tape, the op whose gradient was being computed; otherwise ""."""
        return str(self._call.gradient_of)

    @property
    def _names(self) -> Any:
        return self._call.backend.dtypes.neutral

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
        file, line = self._raw[_LINE]
        return f"{file}:{line}" if file else ""

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
        self._begun = 0.0
        self._raw: list[list[Any]] = []
        self._made: list[Event] = []
        self._returned: dict[str, Any] = {}
        self.notes: list[str] = []

    @property
    def _events(self) -> list[Event]:
        made, raw = self._made, self._raw
        if len(made) < len(raw):
            known = {id(event._call): event for event in made}
            for row in raw[len(made) :]:
                call = row[_CALL]
                event = known[id(call)] = Event(row, self._begun, known.get(id(call.outer)))
                made.append(event)
        return made

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
        return len(self._raw)

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
                file, _, line = row["frame"].rpartition(":")
                outer = None if row["outer"] is None else log._raw[row["outer"]][_CALL]
                arguments = _flat(row["shapes"], row["dtypes"])
                head = [_loaded(row, outer), (file, int(line or 0)), row["error"], row["peak"], _FIRST + len(arguments)]
                log._raw.append([*head, *arguments, *_flat(row["results"], row["result_dtypes"])])
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
        log._begun = perf_counter()

    def before(self, call: Call) -> None:
        """Adds the event of a call."""
        kind, outer = call.backend.tensor_type, call.outer
        around = None if outer is None else outer.kept.get(self)
        raw = [call, line_of(call.spec.name) if around is None else around[_LINE], "", None, _FIRST]
        for x in call.args:
            if x.__class__ is kind:
                raw += (x.shape, x.dtype)
            elif x.__class__ not in _PLAIN:
                _describe(x, kind, raw)
        if call.kwargs:
            _describe(call.kwargs, kind, raw)
        raw[_END] = len(raw)
        call.kept[self] = raw
        self.log._raw.append(raw)

    def after(self, call: Call, result: Any) -> None:
        """Adds what is known of the result."""
        raw = call.kept.pop(self, None)  # the two would hold each other
        if raw is not None:
            kind = call.backend.tensor_type
            if result.__class__ is kind:
                raw += (result.shape, result.dtype)
            elif result is not None:
                _describe(result, kind, raw)

    def failed(self, call: Call, error: Exception) -> None:
        """Adds the class of the error."""
        raw = call.kept.get(self)
        if raw is not None:
            raw[_ERROR] = type(error).__name__
        self.after(call, None)

    def returned(self, path: str, result: Any) -> None:
        """Keeps what a module returned, as constants."""
        name = path.partition(".")[2]
        if any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in self._patterns):
            self.log._returned[path] = tree_map(_constant, result)

    def takes_programs(self, backend: Any) -> bool:
        """Returns True: a log shows which calls took the time."""
        return True

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


def line_of(op: str) -> tuple[str, int]:
    """Returns the file and line of the innermost frame that does not belong to the package, for a `before`.

    A walk over all frames is slow. So the distance of that frame is kept for each place in the package that calls an op
    (`_DISTANCES`); it holds if that frame is at the same place in the same code as then.

    Args:
        op: the name of the op.
    """
    distance = 4  # inside of the caller are the op, the twin's function, `before` and this function
    caller: Any = sys._getframe(distance)
    if caller.f_code.co_name == op:  # the op that looked for the twin
        distance, caller = 5, sys._getframe(5)
    code = caller.f_code
    place = id(code), caller.f_lasti
    known = _DISTANCES.get(place)
    if known is not None:
        further, outer, last, line, _ = known
        try:
            frame: Any = sys._getframe(distance + further) if further else caller
        except ValueError:  # the stack is not so deep
            frame = None
        if frame is not None and frame.f_lasti == last and frame.f_code is outer:
            return line  # type: ignore[no-any-return]
    further, frame = 0, caller
    while frame is not None and _is_inside(frame.f_code.co_filename):
        further, frame = further + 1, frame.f_back
    if frame is None:
        return "", 0
    if len(_DISTANCES) >= _MOST:
        _DISTANCES.clear()
    line = frame.f_code.co_filename, frame.f_lineno
    _DISTANCES[place] = further, frame.f_code, frame.f_lasti, line, code
    return line


def user_line(frame: Any) -> tuple[str, int]:
    """Returns the file and line of the innermost frame, from one outwards, that does not belong to the package."""
    while frame is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _is_inside(file: str) -> bool:
    """Returns whether a file belongs to the package."""
    inside = _INSIDE.get(file)
    if inside is None:
        rest = file[len(_PACKAGE) + 1 :].replace("\\", "/").partition("/")[0]
        inside = _INSIDE[file] = file.startswith(_PACKAGE) and rest not in _OF_USERS
    return inside


def _describe(value: Any, kind: Any, raw: list[Any]) -> None:
    """Adds the shape and the native dtype of each tensor in a value to a list."""
    of = value.__class__
    if of is kind:
        raw += (value.shape, value.dtype)
    elif of is list or of is tuple or isinstance(value, tuple):
        for x in value:
            _describe(x, kind, raw)
    elif isinstance(value, dict):
        for x in value.values():
            _describe(x, kind, raw)
    elif of not in _PLAIN and isinstance(value, kind):
        raw += (value.shape, value.dtype)


def _constant(x: Any) -> Any:
    """Returns a tensor as a constant, which keeps no graph alive; anything else unchanged."""
    x = values_of(x)
    backend = selection.current().unwatched
    return backend.bound.stop_gradient(x) if isinstance(x, backend.tensor_type) else x


def _loaded(row: dict[str, Any], outer: Any) -> Any:
    """Returns what an event reads of a call, from a row of JSON."""
    backend = SimpleNamespace(name=row["backend"], dtypes=SimpleNamespace(neutral=_BY_NAME))
    read = {name: row[name] for name in ("path", "depth", "seconds", "started", "gradient_of")}
    return SimpleNamespace(spec=SimpleNamespace(name=row["op"]), backend=backend, outer=outer, **read)


def _flat(shapes: Any, dtypes: Any) -> list[Any]:
    """Returns shapes and dtypes in turn."""
    pairs = [(tuple(map(int, shape)), str(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return [part for pair in pairs for part in pair]


def _op(event: Event) -> str:
    return event.op


def _module(event: Event) -> str:
    return event.path or "-"


def _line(event: Event) -> str:
    return event.frame


GROUPS: dict[str, Callable[[Event], str]] = {"op": _op, "module": _module, "line": _line}
"""What tables group by."""
