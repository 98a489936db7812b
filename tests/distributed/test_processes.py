"""Ranks that are processes, by each launcher and transport that is there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony.backend.discovery import is_installed as has_backend
from emberharmony.distributed import transports
from emberharmony.distributed.launching import commands

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(__file__).parent / "program.py")

pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(sys.platform == "win32", reason="the launcher needs POSIX"),
]


def launched(count: int, *options: str, backends: str) -> list[dict[str, Any]]:
    """Returns what each rank has printed."""
    command = [sys.executable, "-m", "emberharmony", "launch", "-n", str(count), *options, PROGRAM, backends]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        head, brace, text = line.partition("{")
        if brace:
            each = json.loads(brace + text)
            found[each["rank"]] = each
            # mlx.launch does not tell whose output a line is.
            assert head == ("" if "mlx.launch" in options else f"[{each['rank']}] ")
    assert sorted(found) == list(range(count)), done.stdout + done.stderr
    return [found[rank] for rank in range(count)]


def require_right(found: list[dict[str, Any]]) -> None:
    """Checks the results of `program.py` against those of one process."""
    size = len(found)
    xs = [np.arange(7, dtype=np.float32) / np.float32(7) + np.float32(rank) for rank in range(size)]
    total = sum(x.astype(float) for x in xs)
    order = {2: lambda a, b: a + b, 3: lambda a, b, c: (a + b) + c, 4: lambda a, b, c, d: (a + b) + (c + d)}[size]
    for rank, each in enumerate(found):
        np.testing.assert_allclose(each["sum"]["x"], total, rtol=1e-6)
        assert each["sum"]["n"] == sum(range(size))
        assert each["ordered"][0] == (order(*xs) / np.float32(size)).tolist()
        assert each["gather"] == np.concatenate(xs).tolist()
        assert each["part"] == [2.0 * rank * size, (2.0 * rank + 1.0) * size]
        assert each["root"] == [xs[-1].tolist(), [True, False]]
        np.testing.assert_allclose(each["gradient"], 2 * size * total, rtol=1e-6)
        assert each.get("sent", xs[0].tolist()) == xs[0].tolist()
        assert each["differing"] == [0] if size > 2 else each["differing"] == [1]


@pytest.mark.slow
def test_a_ring_of_mlx_between_two_backends() -> None:
    if not transports.is_installed("mlx"):
        pytest.skip("MLX is not installed")
    found = launched(2, "--transport", "mlx", backends="numpy,mlx")
    assert [each["backend"] for each in found] == ["numpy", "mlx"]
    require_right(found)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["local", "torchrun", "mlx.launch", "mpirun"])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("transport", ["torch", "mlx", "mpi"])
def test_all_transports_and_launchers(transport: str, launcher: str, count: int) -> None:
    """Each launcher starts its own transport, mpirun also those of PyTorch and MLX."""
    started = {"torch": ("local", "torchrun", "mpirun"), "mlx": ("local", "mlx.launch", "mpirun"), "mpi": ("mpirun",)}
    if launcher not in started[transport] or (launcher != "local" and count != 3):
        pytest.skip("this launcher does not start this transport")
    if not transports.is_installed(transport) or (launcher != "local" and not commands.program(launcher)):
        pytest.skip(f"{transport} or {launcher} is not installed")
    backends = ",".join(name for name in ("numpy", "torch", "mlx") if has_backend(name))
    require_right(launched(count, "--transport", transport, "--launcher", launcher, backends=backends))
