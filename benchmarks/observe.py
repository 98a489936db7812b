"""Measures what `ops.record` and `ops.checked` add to a training step.

The rows are training steps (`benchmarks/training.py`). Each takes its turn outside of `ops.record` and in it, in one
process; the figures are CPU times: the step, the ratio of the same step again, that of the step recorded, that of the
step recorded with `backward=True`, that of the step in `ops.checked("nan")`, and the time to enter and leave a block of
`ops.record`. The ratios are medians of the rounds.
"""

import re
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import training
from pairs import make_parser, measure_each, restart_with_one_thread

from emberharmony import ops

STEPS: dict[str, Callable[[], Callable[[], Any]]] = {
    "MLP 64-128-10, batch 32": training.our_mlp,
    "transformer block 256": training.our_block,
}
WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "off": nullcontext,
    "again": nullcontext,
    "record": ops.record,
    "backward": lambda: ops.record(backward=True),
    "nan": lambda: ops.checked("nan"),
}
COLUMNS = ("step µs", *list(WAYS)[1:], "block µs")


def time_turn(way: str, step: Callable[[], Any], count: int) -> tuple[float, float]:
    """Returns the seconds of a step, and those of entering and leaving the block around all steps of the turn."""
    begin = time.process_time()
    with WAYS[way]():
        start = time.process_time()
        for _ in range(count):
            step()
        end = time.process_time()
    return (end - start) / count, time.process_time() - end + start - begin


def measure_step(step: Callable[[], Any], rounds: int, seconds: float = 0.02) -> dict[str, float]:
    """Returns the figures of a step by column."""
    for way in WAYS:
        time_turn(way, step, 2)
    count = max(1, int(seconds / time_turn("off", step, 3)[0]))
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    blocks = []
    order = list(WAYS)
    for _ in range(rounds):
        for way in order:
            step_seconds, block = time_turn(way, step, count)
            times[way].append(step_seconds)
            blocks += [block] if way == "record" else []
        order.reverse()
    figures = {"step µs": min(times["off"]) * 1e6, "block µs": statistics.median(blocks) * 1e6}
    for way in COLUMNS[1:-1]:
        figures[way] = statistics.median(a / b for a, b in zip(times[way], times["off"], strict=True))
    return figures


def measure(backend: str, options: Any) -> dict[str, dict[str, float]]:
    """Returns the figures of one backend, and prints them."""
    ops.set_backend(backend)
    figures = {}
    print(f"\n{backend:28}" + "".join(f"{name:>12}" for name in COLUMNS))
    for title, make in STEPS.items():
        if re.search(options.pattern, f"{backend} {title}"):
            row = figures[title] = measure_step(make(), options.rounds)
            print(f"{title:28}" + "".join(f"{row[name]:12.2f}" for name in COLUMNS), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    measure_each(make_parser(__doc__, 20).parse_args(), measure)


if __name__ == "__main__":
    main()
