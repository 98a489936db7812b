"""The process that makes the fuzzed calls of one backend, and may die of them; `runner` starts it and hears of each.

It reads its task from the first argument and writes lines of JSON to its standard output: `["begin", number]` before a
call, `["end", number, kind, detail]` after it. Whatever else is printed goes to the standard error.
"""

import faulthandler
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from emberharmony import ops
from emberharmony.core.errors import IndexOutOfBoundsError
from emberharmony.core.registry import OPS
from emberharmony.testing.fuzz.cases import FuzzCase, case_of
from emberharmony.testing.fuzz.judge import PROGRAM, digest, verdict
from emberharmony.testing.fuzz.program import arguments, namespace

PATIENCE = 6
"""A call that waits, and does not compute, may do so for so many times the limit: the machine may be busy."""
ALARMS = (signal.SIGPROF, signal.SIGALRM) if hasattr(signal, "setitimer") else ()
"""Windows has no alarms; there a thread of `faulthandler` ends the process."""


@dataclass(frozen=True)
class Task:
    """What a worker is to do: the calls from `first` up to and without `stop`.

    Args:
        names: the ops, which the calls take in turn.
        skipped: ops that are left out.
        timeout: seconds of computing after which a call counts as hanging.
        memory: bytes that the process may take beyond what it needs to start.
    """

    backend: str
    seed: int
    first: int
    stop: int
    names: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    timeout: float = 10.0
    memory: int = 3 * 2**30


def work(task: Task, report: TextIO) -> None:
    """Makes all calls of a task.

    The alarms' default action kills the process in whatever native code it is, even where the parent is gone.
    """
    for alarm in ALARMS:
        signal.signal(alarm, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    ops.set_backend(task.backend)
    scope = namespace()
    case_of(task.seed, task.first, task.names)  # reads all sample rows, before memory is scarce
    _limit_memory(task.memory)
    for number in range(task.first, task.stop):
        case = case_of(task.seed, number, task.names)
        if case.op in task.skipped:
            continue
        _tell(report, "begin", number)
        kind, detail = outcome(case, scope, task.timeout)
        _tell(report, "end", number, kind, detail)


def _tell(report: TextIO, *parts: Any) -> None:
    report.write(json.dumps(parts) + "\n")
    report.flush()


def outcome(case: FuzzCase, scope: dict[str, Any], timeout: float) -> tuple[str, str]:
    """Makes a call on the active backend and returns what it did: a kind, and for most kinds what was raised.

    The kinds are "returned", "unmade" (an argument cannot be made), those of `verdict`, "outside" and "changed".
    """
    _set_alarm(timeout)
    try:
        args, kwargs, then = eval(compile(arguments(case), PROGRAM, "eval"), scope)
        before = digest((args, kwargs, then))
    except Exception as error:  # noqa: BLE001  (the argument's)
        _set_alarm(0.0)
        return "unmade", f"{type(error).__name__}: {error!s:.300}"
    _set_alarm(timeout)
    kind, detail = "returned", ""

    def call(checked: bool) -> None:
        with ops.checked(checked):
            result = OPS[case.op].function(*args, **kwargs)
            ops.eval(result(*then) if case.then and callable(result) else result)

    try:
        call(case.checked)
        if not case.checked and (outside := _reads_outside(call)):
            kind, detail = "outside", outside
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is judged)
        kind = verdict(error)
        detail = f"{type(error).__name__}: {error!s:.300}"
        if kind == "untyped":
            detail += f"\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
    if case.op == "set_default_device":
        ops.set_default_device(None)
    try:
        after = digest((args, kwargs, then))
    finally:
        _set_alarm(0.0)
    if after != before and kind != "untyped":
        changed = next((f"{a} became {b}" for a, b in zip(before, after, strict=False) if a != b), "lengths")
        return "changed", f"{changed} ({kind})"
    return kind, detail


def _reads_outside(call: Callable[[bool], None]) -> str:
    """Makes a call that returned in checked mode too; returns what the error says if an index lies outside there."""
    try:
        call(True)
    except IndexOutOfBoundsError as error:
        return str(error)
    except Exception:  # noqa: BLE001  (it returned before: an iterator was used up, or memory is)
        return ""
    return ""


def _set_alarm(timeout: float) -> None:
    """Ends the process after so many seconds of the processor's time, or `PATIENCE` times as many by the clock."""
    if ALARMS:
        signal.setitimer(signal.ITIMER_PROF, timeout)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * timeout)
    elif timeout:
        faulthandler.dump_traceback_later(PATIENCE * timeout, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory(more: int) -> None:
    """Lets the process take so many bytes more than it has, where the system can say what it has."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return  # Windows has no such module, and macOS neither has the file nor keeps the limit
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, resource.RLIM_INFINITY))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    for part in ("names", "skipped"):
        given[part] = tuple(given[part])
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as pipe:
        os.dup2(2, 1)
        work(Task(**given), pipe)
