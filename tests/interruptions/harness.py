"""Raises exceptions at a chosen instruction of the package's own code, and signals at random moments."""

import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import emberharmony

PACKAGE = str(Path(emberharmony.__file__).parent) + os.sep
Action = Callable[[], object]
Where = tuple[str, str, int]


class InterruptionError(Exception):
    """An exception in the role of one that a signal handler raises."""


def trace(action: Action, at: int = -1, kind: type[Exception] = InterruptionError) -> tuple[list[Where], bool]:
    """Runs an action; raises an exception before its instruction of this number, counted in the package only.

    Returns where the instructions stand that were counted, and whether that very exception arrived.
    """
    seen: list[Where] = []
    raised = kind("interrupted")
    watched = _monitored if sys.version_info >= (3, 12) else _traced

    def step(code: CodeType, offset: int) -> None:
        if len(seen) == at:
            seen.append((code.co_filename, code.co_qualname, offset))
            raise raised
        seen.append((code.co_filename, code.co_qualname, offset))

    def isolated() -> Iterator[object]:
        """Runs the action in a generator, which has an exception state of its own.

        An exception before an instruction that ends an `except` block, where CPython runs no signal handler, leaves
        the caught exception in that state, and later code would see it in `sys.exception()`.
        """
        yield action()

    try:
        with watched(step):
            next(isolated())
    except Exception as error:
        if error is not raised:
            raise
        raised.__traceback__ = None  # its frames hold the state that the action left, and one of them holds `raised`
        return seen[:at], True
    return seen[:at] if at >= 0 else seen, False


@contextmanager
def _traced(step: Callable[[CodeType, int], None]) -> Iterator[None]:
    """Calls a function before each instruction of the package; an exception of it ends that."""

    def opcode(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            step(frame.f_code, frame.f_lasti)
        return opcode

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return opcode

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _monitored(step: Callable[[CodeType, int], None]) -> Iterator[None]:
    """Does what `_traced` does on Python 3.12 and later, where tracers miss instructions of code that ran before."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    tool = monitoring.DEBUGGER_ID

    def instruction(code: CodeType, offset: int) -> Any:
        if not code.co_filename.startswith(PACKAGE):
            return monitoring.DISABLE
        frame = sys._getframe(1)  # noqa: F841  (a signal handler holds the frame that it interrupts, too)
        try:
            step(code, offset)
        except Exception:
            monitoring.set_events(tool, 0)
            raise
        return None

    monitoring.use_tool_id(tool, "interruptions")
    monitoring.register_callback(tool, monitoring.events.INSTRUCTION, instruction)
    monitoring.restart_events()
    monitoring.set_events(tool, monitoring.events.INSTRUCTION)
    try:
        yield
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, None)
        monitoring.free_tool_id(tool)


def moments(action: Action) -> list[int]:
    """Returns the numbers of the first and the last execution of each instruction of the package in an action."""
    ran, _ = trace(action)
    first = {where: i for i, where in reversed(list(enumerate(ran)))}
    last = {where: i for i, where in enumerate(ran)}
    return sorted({*first.values(), *last.values()})


@contextmanager
def raising(kind: type[Exception] = InterruptionError) -> Iterator[list[Exception]]:
    """Installs a handler of SIGALRM that raises exceptions of a kind; yields the list of the raised ones.

    The garbage collector is off meanwhile, because hypothesis registers a callback with it, and Python drops exceptions
    of such callbacks. Coverage is stopped too, because an exception between its acquiring and releasing a lock would
    leave the lock acquired forever.
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
    """Runs an action, signals the process after a delay, and returns whether the signal interrupted the action."""
    try:
        signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))
        action()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except InterruptionError:
        return True
    return False


def duration(action: Action) -> float:
    """Returns the seconds that an action takes: the minimum of five runs."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def delays(longest: float, seed: int) -> Iterator[float]:
    """Yields random delays without end."""
    choose = random.Random(seed)
    while True:
        yield choose.uniform(0.0, longest)
