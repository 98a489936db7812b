"""Engines in processes of their own: their compilers, their caches on disk, and a machine without a compiler."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.fresh_process]

PROGRAM = """
import sys, warnings
import numpy as np
from emberharmony import errors, ops

if sys.argv[1] == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)
ops.set_backend("numpy")

def function(w, x):
    return ops.value_and_grad(lambda w: ops.mean(ops.square(ops.tanh(ops.matmul(x, w) * 0.5) - ops.exp(-x[:, :3]))))(w)

rng = np.random.default_rng(0)
run, seen = ops.compile(function, sys.argv[1]), []
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always", errors.EngineWarning)
    for seed in range(3):
        w, x = rng.standard_normal((5, 3)), rng.standard_normal((4, 5))
        for one, other in zip(run(w, x), function(w, x)):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
print([str(each.message) for each in seen if each.category is errors.EngineWarning])
"""


def output(engine: str, folder: Path, **environment: str) -> str:
    """Returns what the program prints, with its caches in a folder."""
    given = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    command = [sys.executable, "-c", PROGRAM, engine]
    done = subprocess.run(
        command, capture_output=True, text=True, env=given | {"XDG_CACHE_HOME": str(folder)} | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("engine", "kernels"), [("torch", "*.so"), ("numba", "*.nbc"), ("jax", "*-cache")])
def test_a_later_process_finds_what_was_compiled(engine: str, kernels: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    found = []
    for _ in range(2):
        assert output(engine, tmp_path) == "[]\n"
        found.append({path.name: path.stat().st_mtime_ns for path in (tmp_path / "emberharmony").rglob(kernels)})
    assert found[0] == found[1] != {}


def test_without_a_compiler_numpy_computes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert "NumPy computes, because the engine cannot run" in output("torch", tmp_path, CXX=str(tmp_path / "g++"))
