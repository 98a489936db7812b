"""The runner: it starts workers, collects what their calls did, and starts another worker when one dies."""

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
from emberharmony.testing.fuzz.program import program
from emberharmony.testing.fuzz.worker import ALARMS, Task

DEATHS = 3
"""An op that kills this many workers is left out from then on."""
BATCH = 5000
"""The number of calls that one worker makes; a new one then frees what libraries cache."""


@dataclass(frozen=True)
class Finding:
    """A call that did something that no call may do.

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


def run(
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
    stop, deaths = first + calls, Counter[str]()
    task = Task(tally.backend, seed, first, min(first + BATCH, stop), tuple(names), (), timeout)
    while task.first < stop:
        fatal = _run_worker(task, tally, advance)
        next_number = task.stop
        if fatal is not None:
            number, outcome_kind, detail = fatal
            next_number = number + 1
            op = case_of(seed, number, names).op
            failed_outcome = _run_worker(dataclasses.replace(task, first=number, stop=number + 1), Tally(tally.backend))
            if outcome_kind != "hang" or failed_outcome is not None:
                _add_finding(tally, task, number, outcome_kind, detail, failed_outcome is not None)
            else:
                tally.counts["slow once"] += 1  # not a finding: other processes may have slowed the machine down
            deaths[op] += 1
            if deaths[op] == DEATHS:
                tally.skipped.append(op)
            advance(1)
        task = dataclasses.replace(
            task, first=next_number, stop=min(next_number + BATCH, stop), skipped=tuple(tally.skipped)
        )


def _run_worker(
    task: Task, tally: Tally, advance: Callable[[int], object] = lambda calls: None
) -> tuple[int, str, str] | None:
    """Runs a worker; returns (number, kind, detail) of the call that killed it, or None if it finished its task.

    Raises:
        RuntimeError: if the worker ended with an error outside of a call.
    """
    begun_case, ended_case = None, task.first - 1
    status: list[int] = []
    with tempfile.TemporaryFile() as output:
        for message in _worker_messages(task, output, status):
            if message[0] == "begin":
                begun_case = message[1]
                continue
            _, number, outcome_kind, detail = message
            advance(number - ended_case)
            ended_case = number
            if outcome_kind in FINDINGS:
                _add_finding(tally, task, number, outcome_kind, detail, None)
                continue
            tally.counts[outcome_kind] += 1
            if outcome_kind == "native":
                tally.native.setdefault(case_of(task.seed, number, task.names).op, detail)
        output.seek(0)
        output_text = output.read().decode(errors="replace")
    words = output_text[-300:].strip()
    code = status[0]
    if code == 0:
        advance(task.stop - 1 - ended_case)
        return None
    if begun_case is None or (code > 0 and begun_case == ended_case):
        raise RuntimeError(f"the worker of backend {task.backend!r} ended with status {code}: {words}")
    if -code in ALARMS or (not ALARMS and "Timeout (" in output_text):
        has_timed_out = ALARMS and -code == ALARMS[1]
        return (
            begun_case,
            "hang",
            f"takes more than {task.timeout:g} s" + (" and computes nothing" if has_timed_out else ""),
        )
    timing_text = " after it has returned" * (begun_case == ended_case)
    if code < 0:
        return begun_case, "signal", f"is killed by {signal.Signals(-code).name}{timing_text}: {words}".rstrip(": ")
    return begun_case, "exit", f"ends the process with status {code}: {words}".rstrip(": ")


def _worker_messages(task: Task, stream: IO[bytes], status: list[int]) -> Iterator[list[Any]]:
    """Starts a worker and yields the messages that it writes; its exit status is appended to `status`.

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
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
    )
    assert process.stdout is not None
    try:
        with process.stdout as pipe:
            for line in pipe:
                if line.endswith("\n"):  # a worker that died while it wrote leaves an incomplete line
                    yield json.loads(line)
    except BaseException:
        process.kill()
        raise
    finally:
        status.append(process.wait())


def _add_finding(tally: Tally, task: Task, number: int, kind: str, detail: str, alone: bool | None) -> None:
    case = case_of(task.seed, number, task.names)
    text = f"{FINDINGS[kind]}: {detail}" if kind in FINDINGS else detail
    program_text = program(case, task.seed, task.backend, text, watched=kind == "changed", checked=kind == "outside")
    tally.counts[kind] += 1
    tally.findings.append(Finding(task.backend, case.op, number, kind, text, program_text, alone))
