"""MLX without NumPy, which no op imports before a program asks for data on the host."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.backend.mlx.tensor_ops import of_numbers

mx = pytest.importorskip("mlx.core")

CALLS = """
ops.add(x, x), ops.add(x, 1), ops.add(1.0, 2.0), ops.matmul(x, ops.transpose(x)), ops.softmax(x, -1)
ops.arange(5), ops.arange(100), ops.zeros((2, 3)), ops.full((2, 2), 7.0), ops.eye(3), ops.array([[1.0, 2.0]])
ops.sum(x, axis=0), ops.std(x), ops.argmax(x, axis=1), ops.reshape(x, (4, 3)), ops.concatenate([x, x], axis=0)
ops.split(x, 2, axis=1), ops.where(x > 3, x, 0.0), ops.take(x, i, axis=0), ops.pad(x, ((1, 1), (0, 0)))
ops.get_item(x, (slice(None), 1)), ops.get_item(x, (Ellipsis, None)), ops.get_item(x, i)
ops.set_item(x, (slice(None), 1), 2.0), ops.einsum("ij,kj->ik", x, x), ops.sort(x), ops.erf(x), ops.isclose(x, x)
ops.value_and_grad(lambda x: ops.sum(ops.tanh(x)))(x), ops.vmap(ops.sum)(x), ops.compile(ops.sin)(x)
ops.eval(ops.random.seed(0), x)
""".strip().splitlines()


@pytest.mark.fresh_process
def test_ops_import_it_only_for_data_on_the_host() -> None:
    lines = "\n".join(f"{call}\nassert 'numpy' not in sys.modules, {call!r}" for call in CALLS)
    program = f"""
import sys
from emberharmony import ops
assert "numpy" not in sys.modules, "import"
x, i = ops.reshape(ops.arange(1.0, 13.0), (3, 4)), ops.array([0, 2])
{lines}
print(ops.to_numpy(ops.sum(x)), "numpy" in sys.modules)
"""
    environment = os.environ | {"EMBERHARMONY_BACKEND": "mlx"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "78.0 True\n", done.stderr


@given(st.lists(st.floats(width=64) | st.floats(width=32), min_size=1), st.sampled_from(["float32", "float64"]))
def test_floats_have_the_bits_of_numpy(values: list[float], dtype: str) -> None:
    with ops.use_backend("mlx"), np.errstate(all="ignore"):
        made = np.array(ops.array(values, dtype=dtype))
        np.testing.assert_array_equal(made, np.array(values).astype(dtype), strict=True)
        assert (np.signbit(made) == np.signbit(values)).all() or np.isnan(values).any()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1) | st.lists(st.booleans(), min_size=1))
def test_integers_and_booleans_are_exact(values: list[int]) -> None:
    with ops.use_backend("mlx"):
        for each in (values, [values, values], values[0]):
            np.testing.assert_array_equal(np.array(ops.array(each)), np.array(each), strict=True)


def test_other_numbers_are_left_to_the_host() -> None:
    with ops.use_backend("mlx"):
        for value in ([], [1, 2.0], [True, 2], (1.0, 2.0), [[1.0], (2.0,)], [[1.0], [2.0, 3.0]], 2**63, 1j):
            assert of_numbers(value, None) is None
        assert of_numbers([1.1], ops.float16) is None  # MLX would round twice
        assert of_numbers([1], ops.int32) is None  # which may not hold it
        assert ops.array([1.1], dtype="float16").dtype == mx.float16
        with pytest.raises(ops.EmberError, match="rectangular"):
            ops.array([[1.0], [2.0, 3.0]])


@pytest.mark.parametrize("count", [1, 64, 65, 2**13 - 1, 2**13])
def test_ranges_are_the_same_however_they_are_made(count: int) -> None:
    with ops.use_backend("mlx"):
        for dtype in ("int64", "int32", "float32"):
            made = np.array(ops.arange(-3, 3 * count - 3, 3, dtype=dtype))
            np.testing.assert_array_equal(made, np.arange(-3, 3 * count - 3, 3, dtype=dtype), strict=True)
