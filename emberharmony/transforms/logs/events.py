"""The events of a log: one for each call of an op.

An event is one object, and tuples of shapes and dtypes are shared: Python's garbage collection counts the objects that
are made and not freed, and took 320 µs of a step on NumPy with six objects for each event, where it takes 45.
"""

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from emberharmony.core.dtypes import ALL
from emberharmony.transforms.logs.lines import line_text
from emberharmony.transforms.logs.statistics import ValueStatistics

FIELDS = (
    *("op", "path", "depth", "shapes", "dtypes", "results", "result_dtypes", "seconds", "bytes", "frame"),
    *("gradient_of", "backend", "error", "started", "peak", "values"),
)
"""The attributes that files have."""

_NEUTRAL = SimpleNamespace(neutral={dtype.name: dtype for dtype in ALL})
"""The dtypes of an event that was read from a file, by name."""


class Event:
    """One call of an op.

    Attributes:
        outer: the event of the composite around the call, or None.
        op: the name of the op.
        path: the module that was running, such as "Net.blocks.0.linear"; "" outside of modules.
        depth: the number of composites around the call.
        gradient_of: in the backward pass of a tape, the op whose gradient was being computed; otherwise "".
        seconds: the time that the call took, with all calls inside of it.
        started: when the call began, in seconds since the begin of the log.
        error: the class of the exception that the op raised; "" if it raised none.
        peak: in a profile, the most bytes in use during the call beyond those in use before it; None if not known.
        values: with `ops.record(values=True)`, the statistics of each tensor in the result; None if not known.
        where: the backend, from which properties take names. A recorder sets it and all other attributes.
        given: the shape and the native dtype of each tensor among the arguments, in turn.
        made: those of each tensor in the result.
        line: the user's file and line.
    """

    __slots__ = (
        *("depth", "error", "given", "gradient_of", "line", "made", "op"),
        *("outer", "path", "peak", "seconds", "started", "values", "where"),
    )

    depth: int
    error: str
    given: tuple[Any, ...]
    gradient_of: str
    line: tuple[str, int]
    made: tuple[Any, ...]
    op: str
    outer: "Event | None"
    path: str
    peak: int | None
    seconds: float
    started: float
    values: tuple[ValueStatistics, ...] | None
    where: Any

    @property
    def backend(self) -> str:
        """The name of the backend."""
        return str(self.where.name)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensors among the arguments."""
        return tuple(map(tuple, self.given[::2]))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The names of the dtypes of the tensors among the arguments."""
        return self._dtype_names(self.given)

    @property
    def results(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensors in the result."""
        return tuple(map(tuple, self.made[::2]))

    @property
    def result_dtypes(self) -> tuple[str, ...]:
        """The names of the dtypes of the tensors in the result."""
        return self._dtype_names(self.made)

    def _dtype_names(self, tensors: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(self.where.dtypes.neutral[dtype].name for dtype in tensors[1::2])

    @property
    def bytes(self) -> int:
        """The size of the tensors in the result."""
        neutral_dtypes = self.where.dtypes.neutral
        shape_dtype_pairs = zip(self.made[::2], self.made[1::2], strict=True)
        return sum(math.prod(shape) * neutral_dtypes[dtype].itemsize for shape, dtype in shape_dtype_pairs)

    @property
    def frame(self) -> str:
        """The user's line that called the op, as "file:line"."""
        return line_text(self.line)

    def __repr__(self) -> str:
        arguments_text = ", ".join(
            f"{dtype}{list(shape)}" for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        )
        results_text = ", ".join(
            f"{dtype}{list(shape)}" for shape, dtype in zip(self.results, self.result_dtypes, strict=True)
        )
        path_text = f" in {self.path}" if self.path else ""
        return f"<{self.op}({arguments_text}) -> {results_text or self.error or None}{path_text}>"


def event_of_row(row: Mapping[str, Any], outer: Event | None) -> Event:
    """Returns the event that a row of JSON describes, which has its `FIELDS`."""
    event = Event()
    for field_name in ("op", "path", "depth", "gradient_of", "seconds", "started", "error", "peak"):
        setattr(event, field_name, row[field_name])
    file, _, line = row["frame"].rpartition(":")
    statistics_rows = row.get("values")  # files of earlier versions have none
    event.values = (
        None
        if statistics_rows is None
        else tuple(ValueStatistics(*statistics_row) for statistics_row in statistics_rows)
    )
    event.outer, event.line = outer, (file, int(line or 0))
    event.where = SimpleNamespace(name=row["backend"], dtypes=_NEUTRAL)
    event.given, event.made = (
        _shapes_and_dtypes(row["shapes"], row["dtypes"]),
        _shapes_and_dtypes(row["results"], row["result_dtypes"]),
    )
    return event


def _shapes_and_dtypes(shapes: Any, dtypes: Any) -> tuple[Any, ...]:
    """Returns a tuple in which each shape is followed by its dtype."""
    shape_dtype_pairs = [(tuple(map(int, shape)), str(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return tuple(shape_or_dtype for pair in shape_dtype_pairs for shape_or_dtype in pair)
