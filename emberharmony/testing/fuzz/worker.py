"""The worker: the process that makes the fuzzed calls of one backend. A call may kill it, so `runner` starts it.

The first command-line argument is the task, as JSON. The worker writes lines of JSON to its standard output:
`["begin", number]` before a call, and `["end", number, kind, detail]` after it. What a library prints goes to the
standard error.
"""

import faulthandler
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from emberharmony import ops
from emberharmony.core.errors import IndexOutOfBoundsError
from emberharmony.core.registry import OPS
from emberharmony.core.types import BackendName
from emberharmony.testing.fuzz.cases import FuzzCase, case_of
from emberharmony.testing.fuzz.judge import PROGRAM, digest, verdict
from emberharmony.testing.fuzz.program import arguments_source, namespace

PATIENCE = 6
"""A call may take this many times its limit by the clock, because on a busy machine it has to wait for the processor.
The limit itself is for the time that it computes."""
ALARMS = (signal.SIGPROF, signal.SIGALRM) if hasattr(signal, "setitimer") else ()
"""Windows has no alarms; there a thread of `faulthandler` ends the process."""


@dataclass(frozen=True)
class Task:
    """The task of a worker: the calls from number `first` up to, but not including, `stop`.

    Args:
        names: the ops, which the calls take in turn.
        skipped: the ops that are left out.
        timeout: seconds of processor time after which a call counts as hanging.
        memory: bytes that the process may allocate in addition to those it has after its start.
    """

    backend: str
    seed: int
    first: int
    stop: int
    names: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    timeout: float = 10.0
    memory: int = 3 * 2**30


def run_task(task: Task, message_stream: TextIO) -> None:
    """Makes all calls of a task on its backend, and writes a message before and after each.

    The alarms keep their default action, which kills the process: a Python handler could not run while native code
    hangs. It also works if the parent process has ended.
    """
    for alarm in ALARMS:
        signal.signal(alarm, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    ops.set_backend(BackendName(task.backend))
    program_namespace = namespace()
    case_of(task.seed, task.first, task.names)  # loads all sample rows before the memory is limited
    _limit_memory(task.memory)
    for number in range(task.first, task.stop):
        case = case_of(task.seed, number, task.names)
        if case.op in task.skipped:
            continue
        _write_message(message_stream, "begin", number)
        outcome_kind, detail = call_outcome(case, program_namespace, task.timeout)
        _write_message(message_stream, "end", number, outcome_kind, detail)


def _write_message(message_stream: TextIO, *message: Any) -> None:
    message_stream.write(json.dumps(message) + "\n")
    message_stream.flush()


def call_outcome(case: FuzzCase, scope: dict[str, Any], timeout: float) -> tuple[str, str]:
    """Makes a call on the active backend and returns (kind, detail), where `detail` says what was raised or changed.

    The kinds are "returned", "unmade" (an argument could not be created), "outside" (checked mode found a read outside
    of a tensor), "changed" (the call modified an argument), and those of `verdict`.
    """
    _set_alarm(timeout)
    try:
        args, kwargs, later_args = eval(compile(arguments_source(case), PROGRAM, "eval"), scope)
        digest_before = digest((args, kwargs, later_args))
    except Exception as error:  # noqa: BLE001  (the source of an argument may raise anything)
        _set_alarm(0.0)
        return "unmade", f"{type(error).__name__}: {error!s:.300}"
    _set_alarm(timeout)
    outcome_kind, detail = "returned", ""

    def make_call(checked: bool) -> None:
        with ops.checked(checked):
            result = OPS[case.op].function(*args, **kwargs)
            ops.eval(result(*later_args) if case.then and callable(result) else result)

    try:
        make_call(case.checked)
        _set_alarm(timeout)
        if not case.checked and (outside_read_text := _out_of_bounds_message(make_call)):
            outcome_kind, detail = "outside", outside_read_text
    except BaseException as error:  # noqa: BLE001  (`verdict` judges every exception, SystemExit too)
        outcome_kind = verdict(error)
        if outcome_kind == "untyped" and OPS[case.op].takes_callable and _has_class(args, kwargs):
            outcome_kind = "admitted"  # a class in the role of a function raises errors of its constructor
        detail = f"{type(error).__name__}: {error!s:.300}"
        if outcome_kind == "untyped":
            detail += f"\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
    if case.op == "set_default_device":  # the next call must not depend on the state that this one leaves
        ops.set_default_device(None)
    try:
        digest_after = digest((args, kwargs, later_args))
    finally:
        _set_alarm(0.0)
    if digest_after != digest_before and outcome_kind != "untyped":
        change_text = next(
            (f"{a} became {b}" for a, b in zip(digest_before, digest_after, strict=False) if a != b), "lengths"
        )
        return "changed", f"{change_text} ({outcome_kind})"
    return outcome_kind, detail


def _has_class(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, type) for value in (*args, *kwargs.values()))


def _out_of_bounds_message(make_call: Callable[[bool], None]) -> str:
    """Repeats a call that returned, in checked mode; returns the message if an index turns out to be out of bounds."""
    try:
        make_call(True)
    except IndexOutOfBoundsError as error:
        return str(error)
    except Exception:  # noqa: BLE001  (the first call returned; now an iterator may be exhausted, or the memory)
        return ""
    return ""


def _set_alarm(timeout: float) -> None:
    """Sets the alarms that end the process after a time in seconds; 0 turns them off.

    Args:
        timeout: the limit in seconds of processor time; by the clock it is `PATIENCE` times as long.
    """
    if ALARMS:
        signal.setitimer(signal.ITIMER_PROF, timeout)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * timeout)
    elif timeout:
        faulthandler.dump_traceback_later(PATIENCE * timeout, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory(extra_bytes: int) -> None:
    """Limits the memory of the process to `extra_bytes` more than it has; does nothing on systems without /proc."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used_bytes = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return  # Windows lacks `resource`, and macOS lacks `/proc` and would not enforce the limit
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + extra_bytes, resource.RLIM_INFINITY))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    for part in ("names", "skipped"):
        given[part] = tuple(given[part])
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as pipe:
        os.dup2(2, 1)
        run_task(Task(**given), pipe)
