"""Runs the checks of a backend in a process of its own, so that a crash or an endless wait is a finding.

`python -m emberharmony.testing.doctor.process NAME [DEVICE]` writes a line of JSON for each finding, and one before
each check, by which the parent knows in which one the process ended.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, ROWS, Finding

SECONDS = 30.0
"""The time limit of one check in seconds, with the import of the library."""
_FORK_SECONDS = 5.0
FORK = """\
x = ops.ones(3); ops.eval(x); import os; child = os.fork()
print(ops.sum(x)); os.wait() if child else os._exit(0)"""
_FORK = "a child process that is forked after the parent has computed"


def findings_of_backend(
    name: str, device: str | None, seconds: float = SECONDS
) -> Iterator[Finding | dict[str, Any] | str]:
    """Yields the findings about a backend, and its facts as a dict, or a text that says why it lacks the device.

    Args:
        name: the backend.
        device: the device; None for its default one.
        seconds: how long a check may take.
    """
    command = [sys.executable, "-W", "ignore", "-m", __name__, name, *([] if device is None else [device])]
    child_environment = {**os.environ, "EMBERHARMONY_TRACEBACK": "full"}  # the last line of a traceback is the error
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_environment
    )
    check_name = "import"
    has_ended = False
    try:
        for line in _json_lines(process, seconds):
            message = json.loads(line)
            if "begins" in message:
                check_name = message["begins"]
            elif "ends" in message:
                has_ended = True
            elif "facts" in message:
                yield message["facts"]
            elif "lacks" in message:
                yield message["lacks"]
            else:
                yield Finding(**message)
    except TimeoutError:
        yield Finding(name, check_name, BROKEN, f"has not ended after {seconds:g} s", repro=repro_of(name, check_name))
        has_ended = True
    finally:
        process.kill()
        error_lines = process.communicate()[1].strip().splitlines()
    if not has_ended:
        last_error = error_lines[-1] if error_lines else "without a word"
        fault_text = f"the process ended by {_exit_text(process.returncode)}: {last_error}"
        yield Finding(name, check_name, BROKEN, fault_text, repro=repro_of(name, check_name))


def _json_lines(process: "subprocess.Popen[str]", seconds: float) -> Iterator[str]:
    """Yields the lines of JSON that a process writes.

    Raises:
        TimeoutError: if it writes nothing for so long.
    """
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    unfinished_line, last_time = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, last_time + seconds - time.monotonic())):
                raise TimeoutError
            chunk = os.read(process.stdout.fileno(), 2**16)
            if not chunk:
                return
            last_time = time.monotonic()
            *complete_lines, unfinished_line = (unfinished_line + chunk).split(b"\n")
            yield from (line.decode() for line in complete_lines if line.startswith(b"{"))


def _exit_text(status: int | None) -> str:
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"


def repro_of(name: str, check: str) -> str:
    """Returns the program of three lines that repeats a check of a backend."""
    setup_source = f"from emberharmony import ops; ops.set_backend({name!r})\n"
    if check == "import":
        return f"{setup_source}x = ops.ones(3)\nprint(x)"
    if check == "fork":
        return f"{setup_source}{FORK}"
    from emberharmony.testing.doctor.checks import CHECKS  # imported here, because the module imports NumPy and all ops

    return setup_source + CHECKS[check][1]


def check_fork(name: str) -> Finding:
    """Forks a child that computes, waits some seconds for it, and returns the finding."""
    if not hasattr(os, "fork"):
        return Finding(name, "fork", OK, "there is none on this system")
    from emberharmony import ops

    x = ops.full((64, 64), 1.0)
    ops.eval(ops.matmul(x, x))
    child_id = os.fork()
    if child_id == 0:
        status = 1
        with contextlib.suppress(BaseException):
            status = 0 if float(ops.sum(ops.matmul(x, x))) == 64.0**3 else 2
        os._exit(status)
    end_time = time.monotonic() + _FORK_SECONDS
    while time.monotonic() < end_time:
        ended_child, status = os.waitpid(child_id, os.WNOHANG)
        if ended_child:
            exit_code = os.waitstatus_to_exitcode(status)
            if exit_code == 0:
                return Finding(name, "fork", OK, "a child computes")
            if exit_code == 2:
                return Finding(name, "fork", BROKEN, f"{_FORK} computes something else", repro=repro_of(name, "fork"))
            return Finding(name, "fork", DIFFERS, f"{_FORK} ends by {_exit_text(exit_code)}", ROWS["remaining"])
        time.sleep(0.02)
    os.kill(child_id, signal.SIGKILL)
    os.waitpid(child_id, 0)
    return Finding(name, "fork", DIFFERS, f"{_FORK} waits without end: use spawn", ROWS["remaining"])


def _print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content), flush=True)  # noqa: T201  (the parent reads it)


def main(name: str, device: str | None = None) -> None:
    """Runs all checks of a backend and writes the findings to standard output as lines of JSON."""
    _print_json({"begins": "import"})
    from emberharmony import ops
    from emberharmony.backend.discovery import load
    from emberharmony.core.errors import DeviceError, UnsupportedOpError
    from emberharmony.testing.doctor import machine
    from emberharmony.testing.doctor.checks import CHECKS, run_check

    backend = load(name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(ops.use_backend(backend))
        try:
            stack.enter_context(ops.device(device) if device is not None else contextlib.nullcontext())
        except (DeviceError, UnsupportedOpError) as error:
            _print_json({"lacks": f"{name}: {error}"})
            _print_json({"ends": True})
            return
        device_name = ops.get_default_device()
        backend_facts = {
            "version": str(backend.version),
            "devices": ops.get_available_devices(),
            "device": device_name,
            "model": backend.device_model(device_name),
            "memory": ops.memory_info(),
            "precision": ops.precision(),
        }
        for check in CHECKS:
            _print_json({"begins": check})
            _print_json(asdict(run_check(backend, check)))
        _print_json({"facts": {**backend_facts, "loaded libraries": machine.loaded_libraries()}})
        if device_name == "cpu":
            _print_json({"begins": "fork"})
            _print_json(asdict(check_fork(name)))
    _print_json({"ends": True})
    sys.stdout.flush()
    os._exit(0)  # ends the process at once, because threads of a library may wait without end


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(*sys.argv[1:])
