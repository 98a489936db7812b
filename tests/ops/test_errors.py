"""Results that some native library alone gets wrong."""

import numpy as np
import pytest

from emberharmony import ops


def test_integer_division_by_zero_gives_zero_and_by_minus_one_wraps(backend: str) -> None:
    lowest = np.array([-(2**31), 7, -7], np.int32)
    assert ops.to_numpy(ops.floor_divide(lowest, np.int32(-1))).tolist() == [-(2**31), -7, 7]
    assert ops.to_numpy(ops.mod(lowest, np.int32(-1))).tolist() == [0, 0, 0]
    assert ops.to_numpy(ops.floor_divide(lowest, np.int32(0))).tolist() == [0, 0, 0]
    assert ops.to_numpy(ops.mod(lowest, np.int32(0))).tolist() == [0, 0, 0]


def test_floor_divide_of_floats_is_exact(backend: str) -> None:
    assert ops.to_numpy(ops.floor_divide(np.float32([1.0, 7.5]), np.float32([0.1, 2.0]))).tolist() == [9.0, 3.0]


def test_long_reductions_are_precise(backend: str) -> None:
    n = 10**6
    far = (1e4 + np.random.default_rng(0).standard_normal(n)).astype(np.float32)
    assert float(ops.std(far)) == pytest.approx(float(far.astype(np.float64).std()), rel=1e-6)
    tenth = np.full(n, 0.1, np.float32)
    assert float(ops.sum(tenth)) == pytest.approx(float(tenth.astype(np.float64).sum()), rel=1e-6)
    assert float(ops.erf(1e-6)) == pytest.approx(1.1283791670951e-06, rel=1e-6)
    pairs = ops.mean(tenth.reshape(-1, 2), axis=0)
    assert ops.to_numpy(pairs).tolist() == pytest.approx([0.1, 0.1], rel=1e-6)


def test_half_precision_is_accumulated_in_a_wider_dtype(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        x = ops.cast(ops.full((10000,), 0.1), dtype)
        assert float(ops.cast(ops.mean(x), "float32")) == pytest.approx(0.1, rel=1e-2)


def test_float64_is_never_narrowed(backend: str) -> None:
    x = np.array([1 / 3])
    assert ops.dtype(ops.convert_to_tensor(x)) == "float64"
    assert ops.to_numpy(ops.multiply(x, 3.0)).tolist() == [1.0]
