"""Exceptions raised at a chosen instruction of the package's own code, and signals at random moments."""

import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import emberharmony

PACKAGE = str(Path(emberharmony.__file__).parent) + os.sep
Action = Callable[[], object]
Where = tuple[str, str, int]


class InterruptionError(Exception):
    """Stands for whatever a signal handler raises."""


def trace(action: Action, at: int = -1, kind: type[Exception] = InterruptionError) -> tuple[list[Where], bool]:
    """Runs an action; raises an exception before its instruction of this number, counted in the package only.

    Returns where the instructions stand that were counted, and whether that very exception arrived.
    """
    seen: list[Where] = []
    raised = kind("interrupted")

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            if len(seen) == at:
                raise raised
            seen.append((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lasti))
        return step

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 offers no opcodes unless a frame asked before settrace
    sys.settrace(enter)
    try:
        action()
    except Exception as error:
        sys.settrace(before)
        if error is not raised:
            raise
        return seen, True
    finally:
        sys.settrace(before)
    return seen, False


def moments(action: Action) -> list[int]:
    """Returns the first and the last run of each instruction of the package that an action runs."""
    ran, _ = trace(action)
    first = {where: i for i, where in reversed(list(enumerate(ran)))}
    last = {where: i for i, where in enumerate(ran)}
    return sorted({*first.values(), *last.values()})


@contextmanager
def raising(kind: type[Exception] = InterruptionError) -> Iterator[list[Exception]]:
    """Makes the handler of SIGALRM raise exceptions of a kind; yields the list of those that it raised.

    The garbage collector waits meanwhile: hypothesis has a callback in it, and what is raised in one is lost. Coverage
    waits too: an exception between its taking and releasing a lock would leave the lock taken, for ever.
    """
    raised: list[Exception] = []

    def handler(signum: int, frame: FrameType | None) -> None:
        raised.append(kind("signal"))
        raise raised[-1]

    tracer = sys.gettrace()
    sys.settrace(None)
    before, collecting = signal.signal(signal.SIGALRM, handler), gc.isenabled()
    gc.disable()
    try:
        yield raised
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if collecting:
            gc.enable()
        sys.settrace(tracer)


def struck(action: Action, delay: float) -> bool:
    """Runs an action and sends the process a signal after a delay; returns whether it arrived before the end."""
    try:
        signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))
        action()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except InterruptionError:
        return True
    return False


def duration(action: Action) -> float:
    """Returns the seconds that an action takes, the least of some."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def delays(longest: float, seed: int) -> Iterator[float]:
    """Returns random delays, without end."""
    choose = random.Random(seed)
    while True:
        yield choose.uniform(0.0, longest)
