"""Ops on PyTorch are compiled at their first call, or all of them before Dynamo can meet one."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

START = """
import sys, threading
import torch
from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core.registry import OPS

def compiled_ops():
    return [name for name in OPS if name in vars(current().bound)]

ops.set_backend("torch")
assert not compiled_ops() and "torch._dynamo" not in sys.modules, compiled_ops()
x = torch.rand(3, 4)
"""

FIRST_CALLS = """
graphs = []

def count(graph, inputs):
    graphs.append(graph)
    return graph.forward

def check(function, *, graph_count=1, fullgraph=True):
    graphs.clear()
    traced = torch.compile(function, backend=count, fullgraph=fullgraph)
    assert torch.equal(traced(x), function(x)) and torch.equal(traced(x), function(x)), function
    assert len(graphs) == graph_count, (function, len(graphs))

def with_a_break(x):
    y = ops.cos(x)
    torch._dynamo.graph_break()
    return ops.logsumexp(ops.log1p(y), axis=-1)

assert ops.exp(x).shape == (3, 4) and compiled_ops() == ["exp"]

start, results = threading.Barrier(4), []

def run(index):
    function = torch.compile(ops.square, backend="eager", fullgraph=True) if index % 2 else ops.square
    start.wait()
    results.append(function(x))

threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 4 and all(torch.equal(result, x * x) for result in results)

check(lambda x: ops.add(ops.sin(x), ops.softmax(x, axis=-1)))
assert len(compiled_ops()) == len(OPS)
check(lambda x: ops.batch_normalization_training(x, 1)[0])  # whose module defers an import
check(with_a_break, graph_count=2, fullgraph=False)
check(lambda x: torch.func.vmap(lambda row: ops.sort(row))(x))
check(lambda x: torch.func.grad(lambda y: ops.mean(ops.tanh(y)))(x))
"""

FIRST_CALLS_IN_A_BLOCK = """
with ops.use_backend("numpy"):
    ops.sin([1.0])
import torch._dynamo
assert len(compiled_ops()) == len(OPS)
with ops.use_backend("numpy"):
    assert ops.cos([0.0]).__class__.__module__ == "numpy"
assert ops.cos([0.0]).__class__ is torch.Tensor

from emberharmony.backend.torch import TorchBackend
from emberharmony.core import selection
selection.switch_backend(TorchBackend(), "test")
assert len(compiled_ops()) == len(OPS)
"""

NAMESPACE = """
ops.set_backend("numpy")
xp = ops.array_namespace(x)

def function(x):
    return xp.batch_normalization_training(xp.digamma(xp.matmul(x, x.T)), 1)[0]

assert torch.equal(torch.compile(function, backend="eager", fullgraph=True)(x), function(x))
"""


@pytest.mark.fresh_process
@pytest.mark.parametrize("program", [FIRST_CALLS, FIRST_CALLS_IN_A_BLOCK, NAMESPACE])
def test_dynamo_meets_no_op_that_was_not_called(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


FIRST_CALL_OF_ALL = """
from emberharmony import ops
assert "emberharmony.backend.torch" not in sys.modules or "torch._dynamo" in sys.modules
x = torch.rand(3, 4)
function = torch.compile(lambda x: ops.add(ops.sin(x), 1), backend="eager", fullgraph=True)
assert torch.equal(function(x), torch.sin(x) + 1)
"""


@pytest.mark.fresh_process
@pytest.mark.parametrize("imported", ["import sys, torch", "import sys, torch, torch._dynamo"])
def test_a_named_backend_is_loaded_before_dynamo_meets_an_op(imported: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", imported + FIRST_CALL_OF_ALL],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"EMBERHARMONY_BACKEND": "torch"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
