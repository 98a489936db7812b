"""`ops.profile`: where the time of a program goes, by op, module and line, and how near it is to the machine's best."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from emberharmony.core.errors import ArgumentError, EmberError
from emberharmony.core.state.files import replace_text
from emberharmony.transforms.logs import traces
from emberharmony.transforms.logs.costs import Cost, cost_of
from emberharmony.transforms.logs.events import Event
from emberharmony.transforms.logs.log import GROUPS, Log, LogWriter
from emberharmony.transforms.logs.roofline import Rates, rates
from emberharmony.transforms.observe import Observation, WatchedCall, Watcher

_UNTIMED = "ops inside of a function that the library vectorizes cannot be waited for: their time is that of the call"


class ProfileRow(NamedTuple):
    """What calls with one op, module or line took together.

    Attributes:
        name: the op, the module or the line.
        calls: the number of calls.
        seconds: the time, with all calls inside.
        own_seconds: the time without the calls inside.
        operations: arithmetic operations, as `transforms.logs.costs` counts them.
        bytes: bytes read and written.
        share: the least time that the machine needs for both, divided by the time that was taken; None if nothing is
            known of the costs.
        peak: the most bytes that one of the calls needed beyond those in use before it; None if it is not known.
    """

    name: str
    calls: int
    seconds: float
    own_seconds: float
    operations: int
    bytes: int
    share: float | None
    peak: int | None


class Profile(Log):
    """The log of a program, with costs and tables of them."""

    def __init__(self) -> None:
        super().__init__()
        self._backend: Any = None

    @property
    def rates(self) -> Rates | None:
        """How fast the machine multiplies matrices and moves memory on the backend that was called last.

        It is measured once in a process, which takes some tenths of a second. None if the profile was loaded, or if the
        program called no op.
        """
        return None if self._backend is None else rates(self._backend)

    def costs(self) -> dict[Event, Cost]:
        """Returns the cost of each event without the events inside it, so that the sum is the cost of the program."""
        cost_by_event: dict[Event, Cost] = {}
        outer_events = {event.outer for event in self}
        no_cost = Cost(0, 0, False)
        for event in self:  # outer events come first
            outer_event = event.outer
            is_included = outer_event is not None and cost_by_event.get(outer_event, no_cost).whole
            cost = cost_of(event.op, event.shapes, event.dtypes, event.results, event.result_dtypes)
            if is_included:
                cost_by_event[event] = Cost(0, 0, True)
            else:
                cost_by_event[event] = no_cost if event in outer_events and not cost.whole else cost
        return cost_by_event

    def rows(self, by: str = "op") -> list[ProfileRow]:
        """Returns what the calls of each op, module or line took, the longest first.

        Raises:
            ArgumentError: if `by` is not "op", "module" or "line".
        """
        key_of = GROUPS.get(by)
        if key_of is None:
            raise ArgumentError(f"rows() groups by {', '.join(map(repr, GROUPS))}, not {by!r}")
        own_seconds, costs = self.own_seconds(), self.costs()
        peak_rates = self.rates
        events_by_key: dict[str, list[Event]] = {}
        for event in self:
            events_by_key.setdefault(key_of(event), []).append(event)
        rows = []
        for group_name, events in events_by_key.items():
            operations, moved_bytes = (sum(costs[event][i] for event in events) for i in (0, 1))
            seconds = sum(event.seconds for event in events if not _is_in_own_group(event, key_of))
            group_seconds = sum(own_seconds[event] for event in events)
            # A cost that stands for a whole op is compared with its whole time.
            compared_seconds = [
                event.seconds if costs[event].whole else own_seconds[event] for event in events if costs[event].bytes
            ]
            least_seconds = [peak_rates.least_seconds(*costs[event][:2]) for event in events] if peak_rates else []
            roofline_share = (
                sum(least_seconds) / sum(compared_seconds) if sum(least_seconds) and sum(compared_seconds) else None
            )
            peak_sizes = [event.peak for event in events if event.peak is not None]
            rows.append(
                ProfileRow(
                    group_name,
                    len(events),
                    seconds,
                    group_seconds,
                    operations,
                    moved_bytes,
                    roofline_share,
                    max(peak_sizes) if peak_sizes else None,
                )
            )
        return sorted(rows, key=lambda row: -row.own_seconds)

    def cells(self, by: str = "op", most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Returns the header and the cells of a table: calls, times, rates, the share of the best rate, memory.

        Args:
            by: "op", "module" or "line".
            most: the number of rows; None gives all.

        Raises:
            ArgumentError: if `by` is none of these.
        """
        header = [by, "calls", "total ms", "own ms", "own %", "GFLOP/s", "GB/s", "of best", "peak MB"]
        rows = self.rows(by)
        total_seconds = sum(row.own_seconds for row in rows) or 1.0
        cells = []
        for row in rows[:most]:
            name, calls, seconds, row_seconds, operations, moved_bytes, roofline_share, peak = row
            nonzero_seconds = seconds or 1.0
            cells.append(
                [
                    *(
                        name,
                        str(calls),
                        f"{seconds * 1e3:.3f}",
                        f"{row_seconds * 1e3:.3f}",
                        f"{row_seconds / total_seconds:.1%}",
                    ),
                    *(f"{operations / nonzero_seconds / 1e9:.2f}" if operations else "-",),
                    *(
                        f"{moved_bytes / nonzero_seconds / 1e9:.2f}" if moved_bytes else "-",
                        "-" if roofline_share is None else f"{roofline_share:.0%}",
                    ),
                    "-" if peak is None else f"{peak / 1e6:.2f}",
                ]
            )
        if all(row.peak is None for row in rows):
            header, cells = header[:-1], [row[:-1] for row in cells]
        return header, cells

    def summary(self) -> str:
        """Returns one line: the calls, their time, and the rates of the machine."""
        seconds = sum(event.seconds for event in self if event.outer is None)
        summary_text = f"{len(self)} calls of ops, {seconds * 1e3:.1f} ms"
        if self.rates is not None:
            summary_text += f"; best here: {self.rates.operations / 1e9:.1f} GFLOP/s, {self.rates.bytes / 1e9:.1f} GB/s"
        return summary_text

    def report(self) -> dict[str, Any]:
        """Returns the tables as plain data, for JSON."""
        report: dict[str, Any] = {"rates": None if self.rates is None else self.rates._asdict(), "notes": self.notes}
        return report | {group_name: [row._asdict() for row in self.rows(group_name)] for group_name in GROUPS}

    def save_report(self, file: str | Path) -> None:
        """Writes the tables into a file as JSON; `save` writes the events."""
        replace_text(str(file), json.dumps(self.report(), indent=1) + "\n")

    def save_chrome_trace(self, file: str | Path, name: str = "emberharmony") -> None:
        """Writes the calls into a file that chrome://tracing and ui.perfetto.dev open."""
        replace_text(str(file), json.dumps(traces.chrome_trace(self, name)) + "\n")

    def save_speedscope(self, file: str | Path, name: str = "emberharmony") -> None:
        """Writes the calls into a file that speedscope.app opens: by module, then by op."""
        replace_text(str(file), json.dumps(traces.speedscope_profile(self, name)) + "\n")


def _is_in_own_group(event: Event, key: Callable[[Event], str]) -> bool:
    """Returns whether a call is inside of another one of the same group, whose time contains its own."""
    outer_event, group_name = event.outer, key(event)
    while outer_event is not None and key(outer_event) != group_name:
        outer_event = outer_event.outer
    return outer_event is not None


class Profiler(LogWriter):
    """The watcher that fills a profile: it waits for results that are computed later, and notes peaks of memory.

    Args:
        log: the profile.
        backward: see `profile`.
        memory: see `profile`.
    """

    def __init__(self, log: Profile, backward: bool = False, memory: bool = False) -> None:
        super().__init__(log, backward, capture=())
        self._memory, self._profile = memory, log
        self._traces = memory and _is_tracing()
        self._open: list[list[int]] = []

    def before(self, call: WatchedCall) -> None:
        """Adds the event of a call, and restarts the count of the memory."""
        super().before(call)
        if self._memory:
            peak = call.backend.peak_memory(restart=True)
            if peak is not None:
                if self._open:
                    self._open[-1][1] = max(self._open[-1][1], peak[1])
                self._open.append([peak[0], peak[0]])
            else:
                self.on_note(f"the peak memory of the calls is not known on backend {call.backend.name!r}")

    def after(self, call: WatchedCall, result: Any) -> None:
        """Waits for the result, and adds its time and the peak of memory to the profile."""
        self._profile._backend = call.backend.without_watchers
        try:
            if call.backend.wait_for(result):
                call.seconds = perf_counter() - call.started
        except (EmberError, ValueError, RuntimeError):  # inside of `vmap` the values cannot be had
            self.on_note(_UNTIMED)
        event = call.kept[self]
        super().after(call, result)
        if self._memory:
            peak = call.backend.peak_memory(restart=True)
            if peak is not None and self._open:
                memory_before, peak_bytes = self._open.pop()
                peak_bytes = max(peak_bytes, peak[1])
                if self._open:
                    self._open[-1][1] = max(self._open[-1][1], peak_bytes)
                event.peak = peak_bytes - memory_before

    def on_end(self) -> None:
        """Ends the count of the memory, unless the program had begun it before."""
        if self._memory and not self._traces and _is_tracing():
            sys.modules["tracemalloc"].stop()


def _is_tracing() -> bool:
    """Returns whether Python counts the memory that is allocated."""
    tracemalloc_module = sys.modules.get("tracemalloc")
    return tracemalloc_module is not None and tracemalloc_module.is_tracing()


class Profiling(Observation):
    """The block of `ops.profile`.

    Args:
        backward: see `profile`.
        memory: see `profile`.
    """

    __slots__ = ("_options", "_profile")

    def __init__(self, backward: bool = False, memory: bool = False) -> None:
        super().__init__(Watcher())
        self._options = bool(backward), bool(memory)

    def __enter__(self) -> Profile:
        """Starts the profile and returns it; it is empty yet."""
        profile = Profile()
        self.watcher = Profiler(profile, *self._options)
        super().__enter__()
        return profile
