"""The examples in the docstrings, and what a program pays that uses none of it."""

import doctest
import os
import subprocess
import sys
from types import ModuleType

import pytest

from emberharmony import ops
from emberharmony.distributed import collectives, environment, wire, world
from emberharmony.distributed.launching import commands


@pytest.mark.parametrize("module", [collectives, world], ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples_give_the_results_that_they_show(module: ModuleType, backend: str) -> None:
    failures, attempted = doctest.testmod(module, extraglobs={"ops": ops})
    assert attempted
    assert not failures


@pytest.mark.parametrize("module", [environment, wire, commands], ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples_without_tensors(module: ModuleType) -> None:
    failures, attempted = doctest.testmod(module)
    assert attempted
    assert not failures


@pytest.mark.fresh_process
def test_nobody_else_pays_for_it() -> None:
    program = """
import sys
from emberharmony import io, nn, ops, optim
import emberharmony.cli.main
assert hasattr(ops, "sin") and "distributed" not in vars(ops) and "distributed" not in dir(ops)
layer = nn.Linear(2, 1)
ops.backward(lambda: ops.sum(layer(ops.ones((1, 2)))), layer)
optim.SGD(layer, lr=0.1).step()
nn.fit
loaded = {name for name in sys.modules if "distributed" in name or name.split(".")[0] in ("torch", "mlx", "mpi4py")}
assert not loaded, loaded
assert ops.distributed.all_sum(ops.ones(1)).tolist() == [1.0]
assert "emberharmony.distributed" in sys.modules and "torch" not in sys.modules
"""
    environ = {**os.environ, "EMBERHARMONY_BACKEND": "numpy"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
