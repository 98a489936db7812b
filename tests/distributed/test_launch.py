"""`emberharmony launch`: output with ranks, one end for all, and no process that stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from emberharmony.core.errors import ArgumentError
from emberharmony.distributed import transports
from emberharmony.distributed.launching import commands, run

fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
PYTHON = [sys.executable, "-S", "-E"]
LAUNCH = """
import sys
from emberharmony.distributed.launching import commands, run
sys.exit(run.launch(sys.argv[3:], run.Options(int(sys.argv[1]), "torch", sys.argv[2], grace=1.0)))
"""


@pytest.fixture(autouse=True)
def _no_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "is_installed", lambda name: True)


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


def test_each_line_has_its_rank(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import os, sys; print('here', os.environ['RANK']); sys.stderr.write('last')"
    assert run.launch([*PYTHON, "-c", program], run.Options(3)) == 0
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == [f"[{rank}] here {rank}" for rank in range(3)]
    assert sorted(err.splitlines()) == [f"[{rank}] last" for rank in range(3)]
    assert run.launch([*PYTHON, "-c", "print(1)"], run.Options(1, prefix=False)) == 0
    assert capfd.readouterr().out == "1\n"
    with pytest.raises(ArgumentError, match="0 ranks, expected at least 1"):
        run.launch(PYTHON, run.Options(0))


@pytest.mark.parametrize("how", ["exit", "signal"])
def test_all_end_when_one_fails(how: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The others have started processes of their own, and ignore SIGTERM."""
    program = f"""
import os, signal, subprocess, sys, time
if os.environ["RANK"] == "1":
    while len(os.listdir({str(tmp_path)!r})) < 2:
        time.sleep(0.01)
    {"sys.exit(7)" if how == "exit" else "os.kill(os.getpid(), 9)"}
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)"])
with open(os.path.join({str(tmp_path)!r}, f".{{os.getpid()}}"), "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
os.rename(file.name, file.name.replace("/.", "/"))
time.sleep(60)
"""
    run_brief, run._BRIEF = run._BRIEF, 0.3
    try:
        status = run.launch([*PYTHON, "-c", program], run.Options(3, grace=0.1))
    finally:
        run._BRIEF = run_brief
    assert status == (7 if how == "exit" else 137)
    ended = "exit status 7" if how == "exit" else "signal SIGKILL"
    assert f"emberharmony launch: rank 1 ended with {ended}; the others have 0.1 s to end" in capfd.readouterr().err
    processes = [int(word) for path in tmp_path.iterdir() for word in path.read_text().split()]
    assert len(processes) == 4
    assert not any(map(alive, processes))


SLEEPER = """
import os, signal, time
child = os.fork()
if not child:  # what a rank has started, and what does not end by itself
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)
if os.environ.get("STUBBORN"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), child, flush=True)
time.sleep(60)
"""


def started(count: int, launcher: str = "local", **options: Any) -> tuple[subprocess.Popen[str], list[int]]:
    """Returns a launcher, and the processes of its ranks and those that they have started."""
    command = [sys.executable, "-c", LAUNCH, str(count), launcher, *PYTHON, "-c", SLEEPER]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    program = subprocess.Popen(command, text=True, **options)
    assert program.stdout is not None
    lines = [program.stdout.readline() for _ in range(count)]
    return program, [int(word) for line in lines for word in line.split()[1:]]


def require_gone(processes: list[int]) -> None:
    """Waits until processes have ended."""
    until = time.monotonic() + 15
    while any(map(alive, processes)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(alive, processes))


SIGNALS = [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129), ("SIGKILL", -9)]


@pytest.mark.sampled(2)
@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("launcher", "name", "status"),
    [
        ("local", "SIGKILL", -9),
        *(pytest.param("local", *x, marks=pytest.mark.slow) for x in SIGNALS[:3]),
        *(pytest.param(program, *x, marks=pytest.mark.slow) for program in ("torchrun", "mpirun") for x in SIGNALS),
    ],
)
def test_no_process_stays_when_the_launcher_ends(
    launcher: str, name: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "SIGKILL":
        monkeypatch.setenv("STUBBORN", "1")  # the ranks ignore SIGTERM
    if launcher != "local" and not commands.launcher_path(launcher):
        pytest.skip(f"{launcher} is not installed")
    program, processes = started(2, launcher)
    assert len(processes) == 4
    with program:
        assert all(map(alive, processes))
        program.send_signal(getattr(signal, name))
        _, err = program.communicate(timeout=60)
        assert program.returncode == status, err
    require_gone(processes)


@pytest.mark.fresh_process
def test_no_process_stays_when_the_terminal_is_closed() -> None:
    ours, theirs = os.openpty()
    try:
        # A session whose terminal it is, as a shell has it.
        program, processes = started(
            2,
            stdin=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
    finally:
        os.close(theirs)
    with program:
        assert all(map(alive, processes))
        os.close(ours)
        assert program.wait(60) == 129
    require_gone(processes)
