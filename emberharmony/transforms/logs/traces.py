"""Profiles in the formats of viewers: the trace of Chrome and Perfetto, and the file of speedscope."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony.transforms.logs.events import Event
from emberharmony.version import __version__

_Entry = tuple[int, Event | None]
"""What runs: the number of its frame, and the event if it is a call and no module."""


def chrome_trace(events: Sequence[Event], name: str) -> dict[str, Any]:
    """Returns calls in the trace event format, which chrome://tracing and ui.perfetto.dev open.

    Times are in microseconds, as the format wants them.
    """
    trace_events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}},
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "ops"}},
    ]
    for event in events:
        arguments = {
            "module": event.path,
            "shapes": [list(shape) for shape in event.shapes],
            "dtypes": list(event.dtypes),
            "results": [list(shape) for shape in event.results],
            "line": event.frame,
        }
        if event.gradient_of:
            arguments["gradient_of"] = event.gradient_of
        if event.error:
            arguments["error"] = event.error
        trace_events.append(
            {
                "name": event.op,
                "cat": "backward" if event.gradient_of else "op",
                "ph": "X",
                "ts": event.started * 1e6,
                "dur": event.seconds * 1e6,
                "pid": 1,
                "tid": 1,
                "args": arguments,
            }
        )
    return {"traceEvents": trace_events, "displayTimeUnit": "ms"}


def speedscope_profile(events: Sequence[Event], name: str) -> dict[str, Any]:
    """Returns calls in the file format of speedscope: when each module and each op began and ended.

    A module lasts from its first call to its last one before a call of another module; so its own time is that between
    the calls.

    Args:
        events: the calls, in the order in which they begin.
        name: the name of the profile.
    """
    index_by_frame: dict[tuple[str, str, int], int] = {}
    frame_events: list[dict[str, Any]] = []
    open_entries: list[_Entry] = []
    current_time = 0.0

    def end_entries(count: int, before: float) -> None:
        """Ends the running entries but the first `count`, at the latest when the next one begins."""
        nonlocal current_time
        while len(open_entries) > count:
            frame, event = open_entries.pop()
            if event is not None:
                # Times are rounded, so a call may seem to end after the next one has begun.
                current_time = max(current_time, min(event.started + event.seconds, before))
            frame_events.append({"type": "C", "frame": frame, "at": current_time})

    for event in events:
        entries = _running_entries(event, index_by_frame)
        shared_depth = 0
        while (
            shared_depth < min(len(open_entries), len(entries)) and open_entries[shared_depth] == entries[shared_depth]
        ):
            shared_depth += 1
        end_entries(shared_depth, event.started)
        current_time = max(current_time, event.started)
        for entry in entries[shared_depth:]:
            frame_events.append({"type": "O", "frame": entry[0], "at": current_time})
            open_entries.append(entry)
    end_entries(0, math.inf)
    frame_rows = [
        {"name": title} | ({"file": file, "line": line} if file else {}) for title, file, line in index_by_frame
    ]
    return _speedscope_file(name, frame_rows, frame_events, current_time)


def _speedscope_file(
    name: str, frames: list[dict[str, Any]], frame_events: list[dict[str, Any]], end_time: float
) -> dict[str, Any]:
    profile = {
        "type": "evented",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": end_time,
        "events": frame_events,
    }
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": f"emberharmony {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": [profile],
    }


def _running_entries(event: Event, frames: dict[tuple[str, str, int], int]) -> list[_Entry]:
    """Returns the modules and calls that run when a call begins, the outermost first and the call itself last.

    Args:
        event: the call.
        frames: the number of each frame; new ones are added.
    """
    outer_event = event.outer
    entries = [] if outer_event is None else _running_entries(outer_event, frames)
    outer_path = "" if outer_event is None else outer_event.path
    path = event.path
    titles = []
    if path != outer_path:
        module_names = path.split(".")
        first_new_level = outer_path.count(".") + 1 if outer_path and path.startswith(outer_path + ".") else 0
        titles = [".".join(module_names[: i + 1]) for i in range(first_new_level, len(module_names))] if path else []
    if event.gradient_of and event.gradient_of != (outer_event.gradient_of if outer_event is not None else ""):
        titles.append(f"gradient of {event.gradient_of}")
    for title in titles:
        entries.append((frames.setdefault((title, "", 0), len(frames)), None))
    file, _, line = event.frame.rpartition(":")
    entries.append((frames.setdefault((event.op, file, int(line or 0)), len(frames)), event))
    return entries
