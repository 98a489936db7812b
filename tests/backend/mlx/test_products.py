"""NumPy multiplies large matrices for MLX, if the environment asks for it."""

import os
import subprocess
import sys

import pytest

from emberharmony.backend.discovery import is_installed

pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(not is_installed("mlx"), reason="mlx is not installed"),
]
PROGRAM = """
import mlx.core as mx
import numpy as np
from emberharmony import ops
from emberharmony.errors import ShapeError

called = []
numpys = np.matmul
np.matmul = lambda *args, **kwargs: called.append(None) or numpys(*args, **kwargs)
ops.set_backend("mlx")
random = np.random.default_rng(0)
x, y, z = (mx.array(random.normal(size=shape).astype("float32")) for shape in ((64, 64), (64, 64), (3, 64, 64)))

def took(call):
    called.clear()
    result = call()
    mx.eval(result)
    return result, len(called)

def same(call, native, times):
    result, count = took(call)
    assert count == times, (count, times)
    for one, other in zip(ops.tree_leaves(result), ops.tree_leaves(native()), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.array(one), np.array(other), rtol=2e-4, atol=2e-4 * float(mx.abs(other).max()))

def cube(product):
    return lambda a: (product(a, y) ** 3).sum()

cpu = mx.default_device() == mx.cpu
same(lambda: ops.matmul(x, y), lambda: x @ y, cpu)
same(lambda: ops.matmul(z, y), lambda: z @ y, cpu)
same(lambda: ops.matmul(x[:8, :8], y[:8, :8]), lambda: x[:8, :8] @ y[:8, :8], 0)
half = x.astype(mx.float16)
same(lambda: ops.matmul(half, half), lambda: half @ half, 0)
same(lambda: ops.grad(cube(ops.matmul))(x), lambda: mx.grad(cube(mx.matmul))(x), 0)
same(lambda: mx.grad(cube(ops.matmul))(x), lambda: mx.grad(cube(mx.matmul))(x), cpu)
norm = lambda product: lambda a: (mx.grad(cube(product))(a) ** 2).sum()
same(lambda: mx.grad(norm(ops.matmul))(x), lambda: mx.grad(norm(mx.matmul))(x), cpu)
same(lambda: ops.compile(ops.matmul)(x, y), lambda: x @ y, 0)
same(lambda: mx.compile(ops.matmul)(x, y), lambda: x @ y, 0)
same(lambda: mx.vmap(ops.matmul, (0, None))(z, y), lambda: z @ y, 0)
try:
    ops.matmul(x, y[:63])
except ShapeError as error:
    assert "have no matrix product" in str(error), error
else:
    raise AssertionError("factors that do not fit were multiplied")
print("done")
"""


def run(named: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"EMBERHARMONY_MLX_BLAS": named}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_numpy_multiplies_large_matrices_outside_of_transforms() -> None:
    done = run("numpy")
    assert done.stdout == "done\n", done.stderr


def test_another_name_is_refused() -> None:
    done = run("openblas")
    assert "expected EMBERHARMONY_MLX_BLAS to be 'numpy' or not set, got 'openblas'" in done.stderr
