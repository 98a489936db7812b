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


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_the_loss_is_the_softmax_less_the_label(from_logits: bool, dtype: str, backend: str) -> None:
    x = np.abs(np.sin(np.arange(12.0))).reshape(3, 4) + 0.1
    labels = np.array([2, 0, -1])
    logits = ops.cast(x, dtype)
    slope = ops.to_numpy(
        ops.grad(lambda x: ops.sum(ops.sparse_categorical_crossentropy(labels, x, from_logits)))(logits)
    )
    hot = np.eye(4)[[2, 0, 0]]
    at = np.exp(x) / np.exp(x).sum(-1, keepdims=True) - hot if from_logits else 1 / x.sum(-1, keepdims=True) - hot / x
    assert np.allclose(slope, at * (labels >= 0)[:, None], atol=1e-6)


def test_the_gradient_of_a_clipped_probability_is_zero(backend: str) -> None:
    x = ops.convert_to_tensor(np.array([[0.0, 1.0], [1e-9, 1.0], [0.5, 0.5]]))
    slope = ops.to_numpy(ops.grad(lambda x: ops.sum(ops.sparse_categorical_crossentropy([0, 0, 0], x)))(x))
    assert np.allclose(slope, [[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0]])


def test_the_loss_has_derivatives_of_higher_order(backend: str) -> None:
    labels, x = np.array([2, 0, 1]), ops.cast(np.sin(np.arange(12.0)).reshape(3, 4), "float64")
    tangent = ops.cast(np.cos(np.arange(12.0)).reshape(3, 4), "float64")
    loss = lambda x: ops.sum(ops.sparse_categorical_crossentropy(labels, x, True) ** 2)
    first = ops.grad(loss)
    assert np.isclose(float(ops.jvp(loss, (x,), (tangent,))[1]), float(ops.sum(first(x) * tangent)))
    second = ops.grad(lambda x: ops.sum(first(x) * tangent))(x)
    step = 1e-6
    wanted = (ops.to_numpy(first(x + tangent * step)) - ops.to_numpy(first(x - tangent * step))) / (2 * step)
    assert np.allclose(ops.to_numpy(second), wanted, atol=1e-6)


def test_the_loss_maps_over_a_batch(backend: str) -> None:
    labels, x = np.array([[2, 0, 1], [1, -1, 7]]), np.sin(np.arange(24.0, dtype=np.float32)).reshape(2, 3, 4)
    mapped = ops.vmap(lambda t, x: ops.sparse_categorical_crossentropy(t, x, True))
    found = ops.to_numpy(mapped(ops.convert_to_tensor(labels), ops.convert_to_tensor(x)))
    assert np.allclose(found, ops.to_numpy(ops.sparse_categorical_crossentropy(labels, x, True)), atol=1e-6)
    assert found[1, 1:].tolist() == [0.0, 0.0]


def test_the_loss_of_many_classes_is_precise(backend: str) -> None:
    x = (np.sin(np.arange(60000.0)) * 3 + 100).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    wanted = np.log(np.exp(wide - 100).sum(-1)) + 100 - wide[[0, 1], [5, 29999]]
    found = ops.to_numpy(ops.sparse_categorical_crossentropy(np.array([5, 29999]), x, True))
    assert np.abs(found - wanted).max() < 4e-6
