"""Ranks that are processes, by each launcher and transport that is there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops, optim
from emberharmony.backend.discovery import is_installed as has_backend
from emberharmony.distributed import transports
from emberharmony.distributed.launching import commands
from tests.distributed import gradients, learner

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
MIXED = ",".join(name for name in ("numpy", "torch", "mlx") if has_backend(name))

pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(sys.platform == "win32", reason="the launcher needs POSIX"),
]


def launched(folder: Path, program: str, count: int, *options: str, backends: str) -> list[dict[str, Any]]:
    """Returns what each rank has written."""
    launch = [sys.executable, "-m", "emberharmony", "launch", "-n", str(count), *options]
    command = [*launch, str(FOLDER / program), backends, str(folder)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "is ready" in line]
    assert sorted(said) == [f"[{rank}] rank {rank} is ready" for rank in range(count)]
    return written(folder, count)


def written(folder: Path, count: int) -> list[dict[str, Any]]:
    """Returns what each rank has written into a folder."""
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(count)]


def require_installed(transport: str, launcher: str = "local") -> None:
    """Skips the test if a library or a launcher is missing."""
    launcher = "mpirun" if transport == "mpi" else launcher
    if not transports.is_installed(transport) or (launcher != "local" and not commands.launcher_path(launcher)):
        pytest.skip(f"{transport} or {launcher} is not installed")


def require_right(found: list[dict[str, Any]]) -> None:
    """Checks the results of `program.py` against those of one process."""
    size = len(found)
    xs = [np.arange(7, dtype=np.float32) / np.float32(7) + np.float32(rank) for rank in range(size)]
    total = sum(x.astype(float) for x in xs)
    wanted = gradients.of_one_process(size)
    differences = {
        "shape": "rank 1 gives w: shape (3,), float32 (the others: w: shape (2,), float32)",
        "dtype": "rank 1 gives 0: shape (2,), int32 (the others: 0: shape (2,), float32)",
        "order": "rank 1 calls broadcast(), the others all_sum()",
        "left out": "rank 1 calls barrier(), the others all_mean()",
    }
    order = {2: lambda a, b: a + b, 3: lambda a, b, c: (a + b) + c, 4: lambda a, b, c, d: (a + b) + (c + d)}[size]
    for rank, each in enumerate(found):
        np.testing.assert_allclose(each["sum"]["x"], total, rtol=1e-6)
        assert each["sum"]["n"] == sum(range(size))
        thirds = [sum((i + other) / 3 for other in range(size)) for i in range(3)]
        np.testing.assert_allclose(each["precise"], thirds, rtol=1e-14)
        assert each["ordered"][0] == (order(*xs) / np.float32(size)).tolist()
        assert each["gather"] == np.concatenate(xs).tolist()
        assert each["part"] == [2.0 * rank * size, (2.0 * rank + 1.0) * size]
        assert each["root"] == [xs[-1].tolist(), [True, False]]
        for name, rows in wanted.items():
            np.testing.assert_allclose(each["gradients"][name], rows[rank], rtol=1e-6, err_msg=name)
        assert each.get("sent", xs[0].tolist()) == xs[0].tolist()
        assert {what: ranks for what, (ranks, _) in each["differing"].items()} == {what: [1] for what in differences}
        for what, text in differences.items():
            assert text in each["differing"][what][1], each["differing"][what]


def require_trained(found: list[dict[str, Any]], backends: str) -> None:
    """Checks the weights of `learner.py` against those of one process."""
    with ops.use_backend("numpy"):
        net = learner.model()
        losses = learner.trained(net, optim.AdamW(net, lr=0.05), learner.batches(), learner.STEPS)
        wanted = learner.host(net)
    with ops.use_backend(backends.partition(",")[0]):
        bits = learner.bits(None)
    for each in found:
        for kind in ("whole", "sharded"):
            np.testing.assert_allclose(each[kind].pop("losses"), losses, rtol=1e-5)
            for name, x in wanted.items():
                np.testing.assert_allclose(each[kind][name], x, rtol=0, atol=1e-6, err_msg=f"{kind} {name}")
        assert each["sharded"] == found[0]["sharded"]  # the owner of a parameter sends it, so all have its bits
        if "," not in backends:
            assert each["bits"] == bits
        else:
            np.testing.assert_allclose(_floats(each["bits"]), _floats(bits), rtol=0, atol=1e-6)


def _floats(bits: dict[str, str]) -> Any:
    return np.concatenate([np.frombuffer(bytes.fromhex(text), np.float32) for text in bits.values()])


def test_a_training_on_two_processes_is_that_of_one(tmp_path: Path) -> None:
    transport = next((name for name in ("mlx", "torch") if transports.is_installed(name)), None)
    if transport is None:
        pytest.skip("no transport is installed")
    require_trained(launched(tmp_path, "learner.py", 2, "--transport", transport, backends="numpy"), "numpy")


@pytest.mark.slow
@pytest.mark.parametrize("backends", [*MIXED.split(","), MIXED], ids=[*MIXED.split(","), "mixed"])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transport", ["torch", "mlx", "mpi", "single"])
def test_trainings_on_processes_are_that_of_one(transport: str, count: int, backends: str, tmp_path: Path) -> None:
    if transport == "single" and count > 1:
        pytest.skip("one process alone")
    require_installed(transport)
    require_trained(launched(tmp_path, "learner.py", count, "--transport", transport, backends=backends), backends)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["local", "torchrun", "mlx.launch", "mpirun"])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("transport", ["torch", "mlx", "mpi"])
def test_all_transports_and_launchers(transport: str, launcher: str, count: int, tmp_path: Path) -> None:
    """Each launcher starts its own transport, mpirun also those of PyTorch and MLX."""
    started = {"torch": ("local", "torchrun", "mpirun"), "mlx": ("local", "mlx.launch", "mpirun"), "mpi": ("mpirun",)}
    if launcher not in started[transport] or (launcher != "local" and count != 3 and transport != "mpi"):
        pytest.skip("this launcher does not start this transport, or another case shows it")
    require_installed(transport, launcher)
    require_right(
        launched(tmp_path, "program.py", count, "--transport", transport, "--launcher", launcher, backends=MIXED)
    )


def started_directly(how: str, folder: Path) -> list[subprocess.Popen[str]]:
    """Starts the ranks without `emberharmony launch`."""
    program = [str(FOLDER / "program.py"), MIXED, str(folder)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}

    def start(*command: str, **variables: str) -> subprocess.Popen[str]:
        given = {**environ, **variables}
        return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    if how == "torchrun":
        path = commands.launcher_path("torchrun")
        return [start(sys.executable, path, "--nproc-per-node=3", "--standalone", "--log-dir=/dev/null", *program)]
    if how == "mlx.launch":
        return [start(sys.executable, commands.launcher_path("mlx.launch"), "-n", "3", "--", sys.executable, *program)]
    if how == "mpirun":
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [start(commands.launcher_path("mpirun"), *root, "--oversubscribe", "-n", "3", sys.executable, *program)]
    job = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "node7"}
    job |= {"SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_TASKS_PER_NODE": "3"}
    return [start(sys.executable, *program, **job, SLURM_PROCID=str(i), SLURM_LOCALID=str(i)) for i in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["torchrun", "mlx.launch", "mpirun", "srun"])
def test_ranks_that_other_launchers_start(how: str, tmp_path: Path) -> None:
    """Torchrun, MLX and Open MPI themselves, and processes with the variables that srun of Slurm sets."""
    require_installed({"torchrun": "torch", "mlx.launch": "mlx", "mpirun": "mpi", "srun": "torch"}[how])
    if how != "srun" and not commands.launcher_path(how):
        pytest.skip(f"{how} is not installed")
    for process in started_directly(how, tmp_path):
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
    require_right(written(tmp_path, 3))
