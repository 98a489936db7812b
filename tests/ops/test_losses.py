"""Edge cases of losses."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError

X = np.sin(np.arange(24.0)).astype(np.float32)


def test_psnr_of_equal_tensors_is_infinite(backend: str) -> None:
    with np.errstate(divide="ignore"):
        assert ops.to_numpy(ops.psnr(X, X, 1.0)) == np.inf


def test_the_loss_of_a_target_out_of_range_is_zero(backend: str) -> None:
    logits = np.array([[0.0, 1.0, 3.0], [0.5, 0.5, 0.5], [1.0, 2.0, 3.0]], np.float32)
    for from_logits in (True, False):
        lost = ops.to_numpy(ops.sparse_categorical_crossentropy(np.array([2, -1, 3]), logits, from_logits))
        wanted = ops.to_numpy(ops.categorical_crossentropy(np.eye(3, dtype=np.float32)[2], logits[0], from_logits))
        assert np.allclose(lost, [float(wanted), 0.0, 0.0], atol=1e-6)
    columns = ops.sparse_categorical_crossentropy(np.array([0, 1, 0]), logits, True, 0)
    assert ops.shape(columns) == (3,)
    assert np.allclose(ops.to_numpy(columns)[1], ops.to_numpy(ops.logsumexp(logits[:, 1])) - 0.5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float32"])
def test_the_loss_does_not_depend_on_the_dtype_of_the_targets(dtype: str, backend: str) -> None:
    target, logits = np.array([1, 0, 1], dtype), np.array([2.0, -1.0, 0.5], np.float32)
    wanted = np.log1p(np.exp(logits)) - target.astype(np.float64) * logits
    assert np.allclose(ops.to_numpy(ops.binary_crossentropy(target, logits, from_logits=True)), wanted, rtol=1e-5)


def test_psnr_does_not_overflow_in_narrow_dtypes(backend: str) -> None:
    wanted = 20 * np.log10(255.0) - 20 * np.log10(200.0)
    for dtype in ("uint8", "int16", "float16", "float32"):
        found = ops.psnr(ops.cast([0, 200], dtype), ops.cast([200, 0], dtype), 255)
        assert ops.dtype(found) == ("float16" if dtype == "float16" else "float32")
        np.testing.assert_allclose(float(ops.cast(found, "float32")), wanted, rtol=1e-3)
    far = ops.psnr(ops.cast([300.0], "float16"), ops.cast([-300.0], "float16"), 1.0)
    np.testing.assert_allclose(float(ops.cast(far, "float32")), -20 * np.log10(600.0), rtol=1e-3)
    with pytest.raises(ArgumentError, match="max_val is a positive number, not 0"):
        ops.psnr(X, X, 0)


def test_the_tangent_of_psnr_has_its_dtype(backend: str) -> None:
    x = ops.ones((3,))
    value, tangent = ops.jvp(lambda a, b: ops.psnr(a, b, 1.0), (x, ops.zeros((3,))), (x, ops.zeros((3,))))
    assert ops.dtype(value) == ops.dtype(tangent) == "float32"
    np.testing.assert_allclose(float(tangent), -20 / np.log(10.0), rtol=1e-6)
