"""Ranks that are killed, stopped or late are named, and nothing of the run stays."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emberharmony.distributed import transports
from emberharmony.distributed.launching import commands

FOLDER = Path(__file__).parent
ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER.parents[1]), os.environ.get("PYTHONPATH", "")])}

pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc"),
]


@pytest.mark.parametrize(
    ("transport", "count"),
    [("mlx", 1), *(pytest.param(name, 100, marks=pytest.mark.slow) for name in ("torch", "mlx"))],
)
def test_a_rank_that_fails_at_random_is_named_by_all_others(transport: str, count: int) -> None:
    if not transports.is_installed(transport):
        pytest.skip(f"{transport} is not installed")
    command = [sys.executable, str(FOLDER / "trials.py"), transport, str(count)]
    done = subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    trials = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(trials) == count
    for trial in trials:
        reports = [each for each in trial["reports"] if each["rank"] != trial["victim"]]
        assert [each["error"] for each in reports] == ["DistributedError"] * 2, trial
        assert [each["ranks"] for each in reports] == [[trial["victim"]]] * 2, trial


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop", "sleep", "raise"])
@pytest.mark.parametrize("transport", ["torch", "mlx", "mpi"])
def test_the_launcher_ends_all_ranks(transport: str, how: str) -> None:
    if not transports.is_installed(transport) or (transport == "mpi" and not commands.program("mpirun")):
        pytest.skip(f"{transport} is not installed")
    program = [str(FOLDER / "failing.py"), how]
    options = ["-n", "3", "--transport", transport, "--grace", "15"]
    done = subprocess.run(
        [sys.executable, "-m", "emberharmony", "launch", *options, *program],
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode not in (0, 2), done.stderr
    processes = [line.split()[-1] for line in done.stdout.splitlines() if line.split()[-1].isdigit()]
    assert len(processes) == 3, done.stdout
    until = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{process}") for process in processes) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{process}") for process in processes)
    # mpirun ends the others at once if a rank is killed or fails, so that they cannot say anything themselves.
    if transport != "mpi" or how in ("stop", "sleep"):
        assert "all_mean() (call 7) on rank 0 of 3 cannot end: rank 1 (process" in done.stderr, done.stderr
        assert "all_mean() (call 7) on rank 2 of 3 cannot end: rank 1 (process" in done.stderr, done.stderr
    if transport != "mpi" and how == "kill":
        assert "rank 1 ended with signal SIGKILL after all_sum() (call 6)" in done.stderr
