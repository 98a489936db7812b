"""Runs pytest in forked copies of a process that has imported the libraries, but not the package under test.

`copies.py` starts this file as a program in a copy of the tree, with the names of the libraries. It reads one request
per line of its standard input and answers each with one line. A fork saves the imports, which take several seconds.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

OPTIONS = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "--no-header",
    "--tb=short",
    "--basetemp=../temporary",
)


class Recorder:
    """A plugin of pytest that writes the first failure and the number of tests to a file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.record: dict[str, Any] = {"passed": 0, "failure": None}

    def save_record(self) -> None:
        """Writes the file."""
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.record, file)

    def record_failure(self, phase: str, name: str, text: str) -> None:
        """Keeps the first failure at once, because the process may not live until the end."""
        if self.record["failure"] is None:
            self.record["failure"] = {"phase": phase, "test": name, "text": text[-3000:]}
            self.save_record()

    def pytest_collectreport(self, report: Any) -> None:
        """Keeps an error of collection."""
        if report.failed:
            self.record_failure("collect", report.nodeid, report.longreprtext)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keeps a failure, and counts the tests that passed."""
        if report.failed:
            self.record_failure(report.when, report.nodeid, report.longreprtext)
        elif report.when == "call" and report.passed:
            self.record["passed"] += 1


def run_child(request: dict[str, Any]) -> int:
    """Runs the request in this process, and returns its exit status."""
    if "module" in request:
        importlib.import_module("emberharmony.ops").set_backend("numpy")
        importlib.import_module(request["module"])
        return 0
    import pytest

    if "reached" in request:
        plugin = importlib.import_module("reached").Reached(Path(request["reached"]), Path.cwd())
        return int(pytest.main([*(option for option in OPTIONS if option != "-x"), *request["arguments"]], [plugin]))
    recorder = Recorder(request["report"])
    status = int(pytest.main([*OPTIONS, *request["arguments"]], plugins=[recorder]))
    recorder.save_record()
    return status


def run_in_fork(request: dict[str, Any]) -> dict[str, Any]:
    """Runs the request in a fork, and returns its exit status, signal or timeout, and its seconds."""
    start_time = time.monotonic()
    child_id = os.fork()
    if child_id == 0:
        status = 70
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            null_device = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null_device, 0), (log, 1), (log, 2)):
                os.dup2(source, target)
            status = run_child(request)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)
    try:
        answer = _wait_for_child(child_id, start_time + request["timeout"])
    finally:
        # The server may end before its child, and a test may have left programs that it started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child_id, signal.SIGKILL)
    return {**answer, "seconds": round(time.monotonic() - start_time, 2)}


def _wait_for_child(child_id: int, deadline: float) -> dict[str, Any]:
    while True:
        done, state = os.waitpid(child_id, os.WNOHANG)
        if done:
            exit_code = os.waitstatus_to_exitcode(state)
            return {"status": exit_code} if exit_code >= 0 else {"status": None, "reason": f"signal {-exit_code}"}
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child_id, signal.SIGKILL)
            os.waitpid(child_id, 0)
            return {"status": None, "reason": "timeout"}
        time.sleep(0.02)


def serve_requests(libraries: Sequence[str], requests: IO[str], answers: IO[str]) -> None:
    """Answers each request, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client ends the server after Ctrl-C
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in requests:
        print(json.dumps(run_in_fork(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    serve_requests(sys.argv[1:], sys.stdin, os.fdopen(os.dup(1), "w"))
