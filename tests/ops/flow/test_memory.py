"""A tensor larger than the memory: every backend raises the same error, and the process survives."""

import os
import subprocess
import sys

import pytest

from emberharmony.backend.discovery import BUILTIN, is_installed

PROGRAM = """
import resource, sys
from emberharmony import ops
from emberharmony.errors import OutOfMemoryError

ops.set_backend(sys.argv[1])
n, a, row = 2**16, ops.ones((2**16,)), ops.ones((1, 2**16))
column, wide = ops.ones((n, 1)), ops.broadcast_to(row, (n, n))
calls = {
    "zeros": lambda: ops.zeros((n, n)),
    "full": lambda: ops.full((n, n), a[0]),
    "eye": lambda: ops.eye(n),
    "diag": lambda: ops.diag(a),
    "vander": lambda: ops.vander(a, n),
    "linspace": lambda: ops.linspace(a, a, n),
    "outer": lambda: ops.outer(a, a),
    "kron": lambda: ops.kron(a, a),
    "matmul": lambda: ops.matmul(column, row),
    "matmul of integers": lambda: ops.matmul(ops.cast(column, "int32"), ops.cast(row, "int32")),
    "einsum": lambda: ops.einsum("i,j->ij", a, a),
    "cdist": lambda: ops.cdist(column, column),
    "pad": lambda: ops.pad(column[:1], (n, n)),
    "tile": lambda: ops.tile(a, n),
    "repeat": lambda: ops.repeat(a, n),
    "repeat with counts": lambda: ops.repeat(a, [n] * n),
    "concatenate": lambda: ops.concatenate([wide, wide]),
    "stack": lambda: ops.stack([wide, wide]),
    "take": lambda: ops.take(row, [0] * n, 0),
    "get_item": lambda: ops.get_item(row, [0] * n),
    "one_hot": lambda: ops.one_hot([1] * n, n),
    "segment_sum": lambda: ops.segment_sum(row, [0], n),
    "scatter": lambda: ops.scatter([[0]], row, (n, n)),
    "fft": lambda: ops.fft.fft(column, n),
    "random": lambda: ops.random.normal((n, n)),
    "random with a seed": lambda: ops.random.uniform((n, n), seed=1),
}
ops.eval([a, row, column])
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 2**31,) * 2)
for name, call in calls.items():
    try:
        ops.eval(call())
    except OutOfMemoryError as error:
        assert f"() on backend {sys.argv[1]!r}: " in str(error), error
        assert isinstance(error, MemoryError)
    else:
        raise AssertionError(name)
print("lives on")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no limit of the address space")
@pytest.mark.parametrize("name", [name for name in BUILTIN if is_installed(name)])
def test_a_tensor_larger_than_the_memory_limit_is_refused(name: str) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, "lives on\n"), done.stderr[-2000:]
