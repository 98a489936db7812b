"""`compare` of whole programs: the examples, training steps saved by two processes, and the memory of a fresh one."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import compare
from emberharmony.backend.discovery import is_installed
from emberharmony.demo.programs import load_example
from emberharmony.errors import TracedTensorError

ROOT = Path(__file__).parents[3]
PAIRS = [pair for pair in (("numpy", "torch"), ("torch", "mlx")) if all(map(is_installed, pair))]
"""The pairs of backends that are compared."""

TRAINED = ("gpt", "lstm", "residual", "vae")
UNSEEN = ("gaussian_process", "least_squares", "logistic_regression")
"""The examples with an operator whose left operand is native, of which MLX itself computes the gradient."""

pairs = pytest.mark.parametrize("pair", PAIRS, ids="-".join)


@pytest.mark.slow
@pairs
@pytest.mark.parametrize("name", sorted(file.stem for file in (ROOT / "examples").glob("*.py")))
def test_no_op_of_an_example_is_wrong(name: str, pair: tuple[str, str]) -> None:
    def program() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")

    if "mlx" in pair and name in UNSEEN:
        with pytest.raises(TracedTensorError, match=rf"tensor at .*{name}\.py:\d+.* call the functions of ops"):
            compare(program, backends=pair, stop="all")
        return
    report = compare(program, backends=pair, stop="all")
    assert len(report.rows) > 20
    assert not [found.message for found in report.divergences if found.is_wrong]


@pytest.mark.slow
@pairs
@pytest.mark.parametrize("name", TRAINED)
def test_no_op_of_a_training_example_is_wrong(name: str, pair: tuple[str, str]) -> None:
    program = load_example(f"training/{name}")
    report = compare(lambda: program.train(steps=2, size=4, progress=False), backends=pair, stop="all")
    assert len(report.rows) > 20
    assert not [found.message for found in report.divergences if found.is_wrong]


STEP = """
from emberharmony import nn, ops, optim

net = nn.Sequential(
    nn.Linear(4, 8, rng=ops.random.Generator(0)),
    nn.LayerNorm(8),
    nn.Dropout(0.5, rng=ops.random.Generator(1)),
    nn.Linear(8, 2, rng=ops.random.Generator(2)),
)
optimizer = optim.AdamW(net.parameters(), 1e-2)

def loss(x, y):
    return ops.mean(ops.square(net(x) - y)){fault}

def step(x, y):
    found = ops.backward(lambda: loss(x, y), net)
    optimizer.step()
    return found
"""


def _command(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "emberharmony", "compare", *arguments]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pairs
@pytest.mark.parametrize("options", [("loss", "--gradients"), ("step",)], ids=["gradients", "step"])
def test_runs_that_two_processes_saved_are_compared(tmp_path: Path, pair: tuple[str, str], options: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(5, width)).astype("float32") for width in (4, 2))
    np.savez(tmp_path / "batch.npz", x=x, y=y)
    (tmp_path / "right.py").write_text(STEP.format(fault=""))
    (tmp_path / "other.py").write_text(STEP.format(fault=" + ops.mean(ops.tanh(x))"))
    function, *rest = options
    logs = {}
    for name, program, backend in (("a", "right", 0), ("b", "right", 1), ("c", "other", 1)):
        logs[name] = f"{name}.log"
        given = [f"{program}.py:{function}", "--inputs", "batch.npz", "--backends", pair[backend], *rest]
        saved = _command(tmp_path, *given, "--save", logs[name])
        assert saved.returncode == 0, saved.stderr
    same = _command(tmp_path, logs["a"], logs["b"], "--all")
    assert same.returncode == 0, same.stdout + same.stderr
    assert same.stdout.startswith("no op of")
    parted = _command(tmp_path, logs["a"], logs["c"])
    assert parted.returncode == 1, parted.stdout + parted.stderr
    assert "control flow parts" in parted.stdout
    assert f"tanh() on {pair[1]}" in parted.stdout


MEMORY = """
import resource, sys
import numpy as np
from emberharmony import compare, ops

*backends, compared = sys.argv[1:]

def program(x):
    x = ops.reshape(ops.transpose(ops.tanh(ops.multiply(x, 1.1))), x.shape)
    return ops.sum(ops.softmax(ops.exp(x), axis=-1))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

for backend in backends:
    compare(program, np.ones((64, 64), "float32"), backends=(backend, backend), stop="all")
before = peak()
x = np.random.default_rng(0).normal(size=(4096, 4096)).astype("float32")
if compared == "compared":
    assert compare(program, x, backends=backends, stop="all").ok
else:
    with ops.use_backend(backends[0]):
        float(program(ops.convert_to_tensor(x, copy=True)))
print((peak() - before) / x.nbytes)
"""


@pytest.mark.slow
@pairs
def test_a_fresh_process_takes_two_of_the_largest_tensor_beyond_both_runs(pair: tuple[str, str]) -> None:
    pytest.importorskip("resource", reason="the system does not tell the peak")

    def peak(*arguments: str) -> float:
        line = [sys.executable, "-c", MEMORY, *arguments]
        return float(subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout)

    alone = max(peak(backend, "alone") for backend in pair)
    assert peak(*pair, "compared") <= alone + 2
