"""Normalisations, attention and sparse activations: laws and edge cases."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ShapeError

X = np.sin(np.arange(24.0)).reshape(1, 4, 2, 3).astype(np.float32)


@pytest.mark.parametrize("normalize", [ops.layer_normalization, ops.rms_normalization])
def test_half_precision_does_not_overflow(normalize: object, backend: str) -> None:
    x = np.array([[-6e4, 6e4, 1e4]], np.float16)
    values = ops.to_numpy(normalize(x))  # type: ignore[operator]
    assert values.dtype == np.float16
    assert np.isfinite(values).all()
    assert (np.abs(values) > 0.1).all()


def test_sparsemax_gives_probabilities(backend: str) -> None:
    p = ops.to_numpy(ops.sparsemax(np.arange(12.0).reshape(3, 4) ** 2 / 10, 0))
    assert np.allclose(p.sum(0), 1.0)
    assert (p >= 0).all()
    assert (p == 0).any()


def test_a_query_without_keys_takes_the_mean(backend: str) -> None:
    mask = np.array([[True, False, True, False], [False] * 4, [True] * 4, [True] * 4])
    result = ops.to_numpy(ops.dot_product_attention(X, X, X, mask=mask))
    assert np.allclose(result[0, 1], X[0].mean(0), atol=1e-6)


def test_a_causal_query_looks_back_only(backend: str) -> None:
    changed = X.copy()
    changed[:, 2:] += 1.0
    first = ops.to_numpy(ops.dot_product_attention(X, X, X, is_causal=True))
    second = ops.to_numpy(ops.dot_product_attention(X, changed, changed, is_causal=True))
    assert np.array_equal(first[:, :2], second[:, :2])
    assert not np.allclose(first[:, 2:], second[:, 2:])


def test_groups_must_divide_the_heads(backend: str) -> None:
    with pytest.raises(ShapeError, match="2 groups of keys do not divide 3 heads"):
        ops.dot_product_attention(np.ones((1, 2, 3, 4)), np.ones((1, 2, 2, 4)), np.ones((1, 2, 2, 4)))


def test_psnr_of_equal_tensors_is_infinite(backend: str) -> None:
    with np.errstate(divide="ignore"):
        assert ops.to_numpy(ops.psnr(X, X, 1.0)) == np.inf


def test_the_namespace_has_what_keras_puts_there() -> None:
    names = "relu softmax conv max_pool layer_normalization binary_crossentropy dot_product_attention one_hot"
    assert all(getattr(ops.nn, name) is getattr(ops, name) for name in names.split())
