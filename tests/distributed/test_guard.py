"""The guard of a rank: whole lines, the same signals and status, and an end for all that the rank has started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from emberharmony.distributed.launching import commands

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")
PYTHON = [sys.executable, "-S", "-E", "-c"]


def guarded(program: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Returns a guard of rank 3 and its program, started."""
    command = commands.guarded_command([*PYTHON, program], 0, prefix=options.pop("prefix", True))
    environ = {**os.environ, "RANK": "3", **options}
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def alive(process: int) -> bool:
    """Returns whether a process runs; one that has ended and waits for its parent does not."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return not os.path.exists("/proc/self")


def test_lines_are_whole_and_have_the_rank() -> None:
    program = """
import os, time
for part in (b"a", b"b\\n\\nc", b"d\\ne"):
    os.write(1, part)
    os.write(2, part.upper())
    time.sleep(0.01)
os.write(1, b"x" * 200_000)
"""
    out, err = guarded(program).communicate(timeout=60)
    assert out == b"[3] ab\n[3] \n[3] cd\n[3] e" + b"x" * 200_000 + b"\n"
    assert err == b"[3] AB\n[3] \n[3] CD\n[3] E\n"
    assert guarded("print(1)", prefix=False).communicate(timeout=60)[0] == b"1\n"


@pytest.mark.parametrize("end", ["0", "7", "SIGKILL", "SIGTERM", "SIGABRT"])
def test_it_ends_as_the_rank_does_and_notes_it(end: str, tmp_path: Path) -> None:
    number = getattr(signal, end, None)
    program = f"import os, sys; os.kill(os.getpid(), {number:d})" if number else f"import sys; sys.exit({end})"
    with guarded(program, EMBERHARMONY_BOARD=str(tmp_path / "board")) as guard:
        assert guard.wait(60) == (-number if number else int(end))
    (note,) = tmp_path.iterdir()
    assert note.name == "board.3"
    assert note.read_text().split()[1] == str(-number if number else int(end))


def test_a_program_that_cannot_be_started_says_so() -> None:
    command = commands.guarded_command(["/no/such/program"], 0, prefix=True)
    done = subprocess.run(command, env={**os.environ, "RANK": "0"}, capture_output=True, check=False, timeout=60)
    assert done.returncode == 127
    assert done.stderr.startswith(b"[0] /no/such/program cannot be started: ")


def test_signals_come_once_and_a_child_that_holds_the_output_ends() -> None:
    program = """
import os, signal, sys, time
if not os.fork():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    time.sleep(60)
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"USR1\\n"))
os.write(1, b"ready\\n")
time.sleep(0.5)
time.sleep(0.1)
"""
    with guarded(program) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == b"[3] ready\n"
        guard.send_signal(signal.SIGUSR1)
        assert guard.communicate(timeout=30)[0] == b"[3] USR1\n"
        assert guard.returncode == 0


def test_what_the_rank_has_started_ends_with_it() -> None:
    program = """
import os, time
child = os.fork()
if not child:
    os.close(1)
    os.close(2)
    time.sleep(60)
print(child)
"""
    out, _ = guarded(program).communicate(timeout=60)
    child = int(out.split()[1])
    until = time.monotonic() + 10
    while alive(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(child)
