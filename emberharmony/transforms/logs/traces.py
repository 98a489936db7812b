"""Profiles in the formats of viewers: the trace of Chrome and Perfetto, and the file of speedscope."""

from collections.abc import Sequence
from typing import Any

from emberharmony.transforms.logs.events import Event
from emberharmony.version import __version__


def chrome_trace(events: Sequence[Event], name: str) -> dict[str, Any]:
    """Returns calls in the trace event format, which chrome://tracing and ui.perfetto.dev open.

    Times are in microseconds, as the format wants them.
    """
    rows: list[dict[str, Any]] = [
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
        rows.append(
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
    return {"traceEvents": rows, "displayTimeUnit": "ms"}


def speedscope(events: Sequence[Event], own: dict[Event, float], name: str) -> dict[str, Any]:
    """Returns calls in the file format of speedscope: the stack of modules and ops of each call, and its own time.

    Args:
        events: the calls.
        own: the time of each call without the calls inside of it, in seconds.
        name: the name of the profile.
    """
    frames: dict[tuple[str, str, int], int] = {}

    def frame(title: str, file: str = "", line: int = 0) -> int:
        return frames.setdefault((title, file, line), len(frames))

    samples, weights = [], []
    for event in events:
        chain = [event]
        while chain[-1].outer is not None:
            chain.append(chain[-1].outer)
        modules = event.path.split(".") if event.path else []
        stack = [frame(".".join(modules[: i + 1])) for i in range(len(modules))]
        if event.gradient_of:
            stack.append(frame(f"gradient of {event.gradient_of}"))
        for call in reversed(chain):
            file, _, line = call.frame.rpartition(":")
            stack.append(frame(call.op, file, int(line or 0)))
        samples.append(stack)
        weights.append(max(own[event], 0.0))
    shown = [{"name": title} | ({"file": file, "line": line} if file else {}) for title, file, line in frames]
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": f"emberharmony {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": shown},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
