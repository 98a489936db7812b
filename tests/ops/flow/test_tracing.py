"""`torch.compile(fullgraph=True)` traces ops that read dtypes or create tensors on the host without a graph break."""

import subprocess
import sys

import pytest

START = """
import sys
import torch
from emberharmony import ops

ops.set_backend("torch")

def as_one_graph(functions):
    # Returns the results of functions, which are traced in one graph, or one by one to name the one that is refused.
    try:
        return torch.compile(lambda: {name: f() for name, f in functions.items()}, fullgraph=True, backend="eager")()
    except Exception:
        for name, function in functions.items():
            torch._dynamo.reset()
            try:
                torch.compile(function, fullgraph=True, backend="eager")()
            except Exception as error:
                raise AssertionError(name) from error
        raise
"""
PROGRAM = """
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
wanted = {name: function() for name, function in traced.items()}
for name, found in as_one_graph(traced).items():
    assert found.dtype == wanted[name].dtype, name
    assert torch.allclose(found, wanted[name], equal_nan=True), name
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


@pytest.mark.slow
@pytest.mark.fresh_process
def test_torch_compile_traces_composites_without_a_graph_break() -> None:
    """Runs in a fresh process: after a `use_backend` ops read a ContextVar, which torch.compile cannot trace."""
    pytest.importorskip("torch")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + PROGRAM], capture_output=True, text=True, check=False
    )
    assert "traced" in run.stdout, run.stderr[-2000:]


SPECIAL = {
    **dict.fromkeys(
        ("digamma", "entr", "erfcx", "gammaln", "i0e", "i1", "i1e", "log_ndtr", "logit", "ndtr", "ndtri"), 1
    ),
    **dict.fromkeys(("beta", "betaln", "gammainc", "gammaincc", "polygamma", "xlog1py", "xlogy", "zeta"), 2),
    "betainc": 3,
}
"""The number of tensors that each special function takes."""
DIFFERENTIATED = {"betainc": "eager", "i0e": "eager", "xlog1py": "aot_eager"}
"""The functions that are traced with their gradients, and by what; aot_eager takes seconds for most of them."""
SPECIAL_PROGRAM = """
x = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
calls, differentiated = {}, {}
for part in sys.argv[1].split():
    name, count, backend = part.split(":")
    given = [torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)] * (int(count) - 1)
    if backend:
        differentiated[name] = given, backend
    else:
        calls[name] = lambda function=getattr(ops, name), given=given: function(*given, x)
wanted = {name: call() for name, call in calls.items()}
found = as_one_graph(calls)
for name in calls:
    assert torch.allclose(found[name], wanted[name], rtol=1e-13, atol=0.0), name
for name, (given, backend) in differentiated.items():
    function, leaf = getattr(ops, name), x.clone().requires_grad_()
    wanted = function(*given, leaf)
    torch._dynamo.reset()
    found = torch.compile(lambda *xs: function(*xs), fullgraph=True, backend=backend)(*given, leaf)
    assert torch.allclose(found, wanted, rtol=1e-13, atol=0.0), name
    gradients = [torch.autograd.grad(y.sum(), leaf)[0] for y in (found, wanted)]
    assert torch.allclose(*gradients, rtol=1e-13, atol=0.0), name
print(len(calls), "and", len(differentiated), "traced")
"""


@pytest.mark.slow
@pytest.mark.fresh_process
def test_torch_compile_traces_special_functions_and_their_gradients() -> None:
    pytest.importorskip("torch")
    given = " ".join(f"{name}:{count}:{DIFFERENTIATED.get(name, '')}" for name, count in SPECIAL.items())
    command = [sys.executable, "-W", "ignore", "-c", START + SPECIAL_PROGRAM, given]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    count = len(DIFFERENTIATED)
    assert run.stdout == f"{len(SPECIAL) - count} and {count} traced\n", run.stderr[-2000:]
