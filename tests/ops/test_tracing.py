"""`torch.compile(fullgraph=True)` traces ops that read dtypes or create tensors on the host without a graph break."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch
from emberharmony import ops

ops.set_backend("torch")
x = torch.arange(16.0).reshape(4, 4) + 8 * torch.eye(4)
signal = torch.sin(torch.arange(64.0))
traced = {
    "pinv": lambda: ops.pinv(x),
    "matrix_rank": lambda: ops.matrix_rank(x),
    "cholesky_inverse": lambda: ops.cholesky_inverse(torch.linalg.cholesky(x @ x.T)),
    "matrix_norm": lambda: ops.matrix_norm(x, 1),
    "stft": lambda: ops.stft(signal, 16, 8, 16),
    "var": lambda: ops.var(x, axis=0),
    "finfo": lambda: ops.add(x, ops.finfo(ops.dtype(x)).eps),
    "arange": lambda: ops.add(x, ops.arange(4)),
    "linspace": lambda: ops.add(x, ops.linspace(0.0, 1.0, 4)),
    "hanning": lambda: ops.add(x, ops.hanning(4)),
    "pad": lambda: ops.pad(x, [(1, 2), (0, 1)]),
    "mod": lambda: ops.mod(x, 2.0),
    "expm1": lambda: ops.expm1(ops.cast(x, "complex64")),
    "lists": lambda: ops.add(ops.multiply(x, [1.0, 2.0, 3.0, 4.0]), ops.asarray([[1], [2], [3], [4]])),
    "fftfreq": lambda: ops.fftfreq(5, 0.5, dtype="float64"),
    "take": lambda: ops.take(x, torch.tensor([0, -1]), 0),
    "cast": lambda: ops.cast(x, ops.result_type(ops.dtype(x), ops.float64)),
}
for name, function in traced.items():
    wanted = function()
    torch._dynamo.reset()
    found = torch.compile(function, fullgraph=True, backend="eager")()
    assert found.dtype == wanted.dtype, name
    assert torch.allclose(found, wanted, equal_nan=True), name
leaf = x.double().requires_grad_()
for name, function in {
    "det": lambda x: ops.det(x),
    "slogdet": lambda x: ops.slogdet(x)[1],
    "logaddexp": lambda x: ops.sum(ops.logaddexp(x, 1.0)),
}.items():
    (wanted,) = torch.autograd.grad(function(leaf), leaf)
    torch._dynamo.reset()
    (found,) = torch.autograd.grad(torch.compile(function, fullgraph=True, backend="eager")(leaf), leaf)
    assert torch.allclose(found, wanted), name
print(len(traced), "traced")
"""


@pytest.mark.fresh_process
def test_torch_compile_traces_composites_without_a_graph_break() -> None:
    """Runs in a fresh process: after a `use_backend` ops read a ContextVar, which torch.compile cannot trace."""
    pytest.importorskip("torch")
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert "traced" in run.stdout, run.stderr[-2000:]
