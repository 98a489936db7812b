"""The runner of the fuzzer: it starts workers, collects the outcomes of their calls, and replaces workers that die."""

import dataclasses
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from emberharmony.testing.fuzz.cases import case_of
from emberharmony.testing.fuzz.judge import FINDINGS
from emberharmony.testing.fuzz.program import program_source
from emberharmony.testing.fuzz.worker import ALARMS, Task

DEATHS = 3
"""The number of workers that an op may kill before the fuzzer leaves it out."""
BATCH = 5000
"""The number of calls that one worker makes; a new one then frees what libraries cache."""


@dataclass(frozen=True)
class Finding:
    """A fuzzed call that broke a rule, such as an undocumented error, a crash or a changed argument.

    Args:
        number: the number of the call.
        kind: "signal", "hang", "exit", or one of `judge.FINDINGS`.
        detail: what happened: the signal, or the error.
        snippet: a program that makes the call.
        alone: whether it also happens if the call is the only one of its process; None if that was not tried.
    """

    backend: str
    op: str
    number: int
    kind: str
    detail: str
    snippet: str
    alone: bool | None = None


@dataclass
class Tally:
    """The results of the calls on one backend.

    Args:
        counts: the number of calls by outcome: "returned", "typed", "native", "admitted", "unmade", "slow once", and
            the kinds of findings.
        native: by op, the first error of class `BackendExecutionError`, which is less specific than it could be.
        skipped: the ops that were left out because they killed `DEATHS` workers.
    """

    backend: str
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    native: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Returns the results as a dictionary that can be written as JSON."""
        return vars(self) | {"findings": [vars(finding) for finding in self.findings]}


def run_calls(
    tally: Tally,
    calls: int,
    seed: int,
    names: Sequence[str],
    timeout: float = 10.0,
    first: int = 0,
    advance: Callable[[int], object] = lambda calls: None,
) -> None:
    """Makes calls of the named ops on the tally's backend, in workers, and adds the results to the tally.

    Args:
        timeout: seconds of processor time after which a call counts as hanging.
        first: the number of the first call.
        advance: is called with the number of calls that have just been finished.

    Raises:
        RuntimeError: if a worker cannot start, or fails outside of a call.
    """
    stop_number, deaths_by_op = first + calls, Counter[str]()
    task = Task(tally.backend, seed, first, min(first + BATCH, stop_number), tuple(names), (), timeout)
    while task.first < stop_number:
        fatal_outcome = _run_worker(task, tally, advance)
        next_number = task.stop
        if fatal_outcome is not None:
            number, outcome_kind, detail = fatal_outcome
            next_number = number + 1
            op_name = case_of(seed, number, names).op
            lone_outcome = _run_worker(dataclasses.replace(task, first=number, stop=number + 1), Tally(tally.backend))
            if outcome_kind != "hang" or lone_outcome is not None:
                _add_finding(tally, task, number, outcome_kind, detail, lone_outcome is not None)
            else:
                tally.counts["slow once"] += 1  # no finding: the machine may have been busy
            deaths_by_op[op_name] += 1
            if deaths_by_op[op_name] == DEATHS:
                tally.skipped.append(op_name)
            advance(1)
        task = dataclasses.replace(
            task, first=next_number, stop=min(next_number + BATCH, stop_number), skipped=tuple(tally.skipped)
        )


def _run_worker(
    task: Task, tally: Tally, advance: Callable[[int], object] = lambda calls: None
) -> tuple[int, str, str] | None:
    """Runs a worker; returns (number, kind, detail) of the call that killed it, or None if it finished its task.

    Raises:
        RuntimeError: if the worker ended with an error outside of a call.
    """
    begun_number, ended_number = None, task.first - 1
    exit_statuses: list[int] = []
    with tempfile.TemporaryFile() as output:
        for message in _worker_messages(task, output, exit_statuses):
            if message[0] == "begin":
                begun_number = message[1]
                continue
            _, number, outcome_kind, detail = message
            advance(number - ended_number)
            ended_number = number
            if outcome_kind in FINDINGS:
                _add_finding(tally, task, number, outcome_kind, detail, None)
                continue
            tally.counts[outcome_kind] += 1
            if outcome_kind == "native":
                tally.native.setdefault(case_of(task.seed, number, task.names).op, detail)
        output.seek(0)
        output_text = output.read().decode(errors="replace")
    last_output = output_text[-300:].strip()
    exit_status = exit_statuses[0]
    if exit_status == 0:
        advance(task.stop - 1 - ended_number)
        return None
    if begun_number is None or (exit_status > 0 and begun_number == ended_number):
        raise RuntimeError(f"the worker of backend {task.backend!r} ended with status {exit_status}: {last_output}")
    if -exit_status in ALARMS or (not ALARMS and "Timeout (" in output_text):
        is_wall_clock_alarm = ALARMS and -exit_status == ALARMS[1]
        return (
            begun_number,
            "hang",
            f"takes more than {task.timeout:g} s" + (" and computes nothing" if is_wall_clock_alarm else ""),
        )
    timing_text = " after it has returned" * (begun_number == ended_number)
    if exit_status < 0:
        return (
            begun_number,
            "signal",
            f"is killed by {signal.Signals(-exit_status).name}{timing_text}: {last_output}".rstrip(": "),
        )
    return begun_number, "exit", f"ends the process with status {exit_status}: {last_output}".rstrip(": ")


def _worker_messages(task: Task, stream: IO[bytes], exit_statuses: list[int]) -> Iterator[list[Any]]:
    """Starts a worker and yields the messages that it writes; its exit status is appended to `exit_statuses`.

    The worker has a session of its own, so Ctrl-C interrupts only this process, which then kills the worker.
    """
    command = [sys.executable, "-m", "emberharmony.testing.fuzz.worker", json.dumps(dataclasses.asdict(task))]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stream,
        encoding="utf-8",
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows as `start_new_session`
    )
    assert process.stdout is not None
    try:
        with process.stdout as worker_output:
            for line in worker_output:
                if line.endswith("\n"):  # a worker that died while it wrote leaves an incomplete line
                    yield json.loads(line)
    except BaseException:
        process.kill()
        raise
    finally:
        exit_statuses.append(process.wait())


def _add_finding(tally: Tally, task: Task, number: int, kind: str, detail: str, alone: bool | None) -> None:
    case = case_of(task.seed, number, task.names)
    finding_text = f"{FINDINGS[kind]}: {detail}" if kind in FINDINGS else detail
    program_text = program_source(
        case, task.seed, task.backend, finding_text, watched=kind == "changed", checked=kind == "outside"
    )
    tally.counts[kind] += 1
    tally.findings.append(Finding(task.backend, case.op, number, kind, finding_text, program_text, alone))
