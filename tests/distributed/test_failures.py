"""Ranks that are killed, stopped or late are named, and nothing of the run stays."""

import sys

import pytest

from emberharmony.distributed import transports
from emberharmony.distributed.launching import commands
from tests.distributed import trials

pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc"),
]


def require_right(transport: str, seed: int, how: str = "") -> None:
    """Makes a trial."""
    if not transports.is_installed(transport) or (transport == "mpi" and not commands.launcher_path("mpirun")):
        pytest.skip(f"{transport} is not installed")
    found = trials.trial(transport, seed, how)
    assert trials.faults(transport, found) == [], found


def test_a_rank_that_is_killed_is_named_by_all_others() -> None:
    require_right("mlx" if transports.is_installed("mlx") else "torch", 1, "kill")


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["torch", "mlx", "mpi"])
def test_ranks_that_fail_at_random(transport: str) -> None:
    for seed in range(100):
        require_right(transport, seed)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop", "sleep", "raise", "end"])
@pytest.mark.parametrize("transport", ["torch", "mlx", "mpi"])
def test_each_way_to_fail(transport: str, how: str) -> None:
    require_right(transport, 3, how)
