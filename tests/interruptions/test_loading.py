"""A backend whose loading was interrupted loads at the next attempt. Its library is imported beforehand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emberharmony.backend.discovery import BUILTIN, is_installed

PROGRAM = """
import contextlib, importlib.util, os, platform, random, sys, threading

import numpy

name, count = sys.argv[1], int(sys.argv[2])
__import__({"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}[name])
if name == "torch":
    import torch._dynamo

from emberharmony import ops
from tests.interruptions.harness import trace


def in_child(action):
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.write(writing, repr(action()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as stream:
        found = stream.read()
    assert os.waitpid(process, 0)[1] == 0, found
    return eval(found)


def attempt(at):
    where, arrived = trace(lambda: ops.set_backend(name), at)
    assert arrived, where[-1]
    ops.set_backend(name)
    assert ops.get_backend() == name
    kind = ops.backend_of(ops.zeros((2,))).tensor_type
    assert kind is type(ops.add(1.0, 2.0)) is type(ops.softmax([1.0, 2.0])) is type(ops.random.normal((2,)))
    assert ops.to_numpy(ops.matmul([[2.0]], [[3.0]])).tolist() == [[6.0]]


length = in_child(lambda: len(trace(lambda: ops.set_backend(name))[0]))
assert length > 1000, length
choose = random.Random(0)
for _ in range(count):
    at = choose.randrange(length)
    in_child(lambda: attempt(at))
"""


def _interrupted(name: str, count: int, folder: Path) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("EMBERHARMONY")}
    environment = clean | {"EMBERHARMONY_CONFIG": str(folder / "none.toml"), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), clean.get("PYTHONPATH"))))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, name, str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr


pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    # PyTorch takes seconds to load in each of the processes.
    pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=[pytest.mark.slow] if name == "torch" else [])
            for name in BUILTIN
            if is_installed(name)
        ],
    ),
]


def test_a_backend_loads_after_an_interruption(name: str, tmp_path: Path) -> None:
    _interrupted(name, 2, tmp_path)


@pytest.mark.slow
def test_a_backend_loads_after_each_of_two_hundred_interruptions(name: str, tmp_path: Path) -> None:
    _interrupted(name, 200, tmp_path)
