"""Normalisations, attention and sparse activations: laws and edge cases."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, AxisError, ShapeError
from emberharmony.core.registry import OPS

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


def test_a_query_that_looks_at_no_key_has_no_gradient(backend: str) -> None:
    q, mask = np.array([[[[1, 2]], [[0.5, 1]]]], np.float32), np.array([[[[False, False], [True, True]]]])
    of_query = ops.grad(lambda x: ops.sum(ops.square(ops.dot_product_attention(x, q, q, mask=mask))))
    first, second = ops.to_numpy(of_query(q))[0]
    assert (first == 0).all()
    assert (second != 0).all()
    of_key = ops.grad(lambda x: ops.sum(ops.square(ops.dot_product_attention(q[:, :1], x, q, mask=mask[:, :, :1]))))
    assert (ops.to_numpy(of_key(q)) == 0).all()


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


KINDS = [{}, {"mask": True}, {"is_causal": True}, {"mask": True, "bias": True, "is_causal": True}, {"scale": 0.3}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", [2, 3, 5])
def test_the_fused_attention_means_what_the_composite_does(kind: dict[str, Any], keys: int, backend: str) -> None:
    k = np.cos(np.arange(keys * 6.0)).reshape(1, keys, 2, 3).astype(np.float32)
    mask = np.array([[(i * 7 + j * 5) % 3 > 0 for j in range(keys)] for i in range(4)])
    options = {"mask": mask} if "mask" in kind else {}
    options |= {"bias": np.sin(np.arange(keys, dtype=np.float32))} if "bias" in kind else {}
    options |= {name: kind[name] for name in ("scale", "is_causal") if name in kind}
    fused = ops.dot_product_attention(X, k, k, **options)
    tensors = {name: ops.convert_to_tensor(value) for name, value in options.items() if name in ("mask", "bias")}
    composed = OPS["dot_product_attention"].declared(
        *map(ops.convert_to_tensor, (X, k, k)), **{"bias": None, "mask": None, **options, **tensors}
    )
    assert np.allclose(ops.to_numpy(fused), ops.to_numpy(composed), atol=1e-6)


def test_attention_can_be_derived_twice_and_forward(backend: str) -> None:
    if backend == "numpy":
        pytest.skip("NumPy has no fused attention")
    attend = lambda x: ops.dot_product_attention(x, x, x)
    slope = ops.grad(lambda x: ops.sum(attend(x) ** 3))
    bent = ops.grad(lambda x: ops.sum(slope(x) ** 2))(ops.convert_to_tensor(X))
    assert np.isfinite(ops.to_numpy(bent)).all()
    _, pushed = ops.jvp(attend, (ops.convert_to_tensor(X),), (ops.ones(X.shape),))
    assert ops.shape(pushed) == X.shape


def test_nan_is_passed_on(backend: str) -> None:
    x = np.array([np.nan, 1.0], np.float32)
    names = "relu relu6 leaky_relu elu selu celu sigmoid log_sigmoid softplus softsign silu gelu hard_sigmoid hard_silu"
    for name in f"{names} hard_tanh hard_shrink soft_shrink tanh_shrink squareplus".split():
        assert np.isnan(ops.to_numpy(getattr(ops, name)(x))).tolist() == [True, False], name
    assert np.isnan(ops.to_numpy(ops.threshold(x, 0.5, 0.0))).tolist() == [True, False]


def test_integers_take_the_default_float_or_keep_their_dtype(backend: str) -> None:
    x = np.array([-2, 0, 3], np.int32)
    for name in ("leaky_relu", "elu", "selu", "celu", "softplus", "hard_sigmoid", "hard_silu", "soft_shrink", "gelu"):
        assert ops.dtype(getattr(ops, name)(x)) == ops.float32, name
    for name in ("relu", "relu6", "hard_tanh", "hard_shrink"):
        assert ops.dtype(getattr(ops, name)(x)) == ops.int32, name


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64"])
def test_an_integer_threshold_shrinks_integers_to_floats(dtype: str, backend: str) -> None:
    found = ops.soft_shrink(ops.cast([1, 5], dtype), 1)
    assert ops.dtype(found) == ops.float32
    assert found.tolist() == [0.0, 0.0 if dtype == "bool" else 4.0]


def test_softplus_keeps_the_digits_of_float64(backend: str) -> None:
    x = np.array([-40.0, 0.0, 25.0, 39.0])
    assert np.allclose(ops.to_numpy(ops.softplus(x)), np.logaddexp(x, 0), rtol=1e-15, atol=0)


def test_long_rows_keep_their_digits(backend: str) -> None:
    x = (np.sin(np.arange(40000.0)) + 1000.0).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    off = wide - wide.mean(-1, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-3)
    assert np.abs(ops.to_numpy(ops.layer_normalization(x)) - wanted).max() < 2e-4
    terms = np.exp(wide - wide.max(-1, keepdims=True))
    assert np.allclose(ops.to_numpy(ops.softmax(x)), terms / terms.sum(-1, keepdims=True), rtol=2e-6, atol=0)


def test_sparse_targets_that_are_no_class_cost_nothing(backend: str) -> None:
    logits = np.array([[0.0, 1.0, 3.0], [0.5, 0.5, 0.5], [1.0, 2.0, 3.0]], np.float32)
    for from_logits in (True, False):
        lost = ops.to_numpy(ops.sparse_categorical_crossentropy(np.array([2, -1, 3]), logits, from_logits))
        wanted = ops.to_numpy(ops.categorical_crossentropy(np.eye(3, dtype=np.float32)[2], logits[0], from_logits))
        assert np.allclose(lost, [float(wanted), 0.0, 0.0], atol=1e-6)
    columns = ops.sparse_categorical_crossentropy(np.array([0, 1, 0]), logits, True, 0)
    assert ops.shape(columns) == (3,)
    assert np.allclose(ops.to_numpy(columns)[1], ops.to_numpy(ops.logsumexp(logits[:, 1])) - 0.5, atol=1e-6)


@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
def test_normalisation_over_other_axes_and_broadcast_weights(axis: Any, backend: str) -> None:
    x = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4)
    off = x - x.mean(axis, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(axis, keepdims=True) + 1e-3) * 2.0 + np.arange(4.0)
    got = ops.layer_normalization(x, np.float32([2.0]), np.arange(4, dtype=np.int32), axis)
    assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5)


@pytest.mark.skipif(not is_installed("mlx"), reason="mlx is not installed")
def test_the_kernels_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend.mlx import nn_ops

    monkeypatch.setattr(nn_ops, "on_cpu", lambda: False)
    x, w = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4), np.arange(4, dtype=np.float32)
    with ops.use_backend("mlx"):
        for name, arguments in (("layer_normalization", (x, w, w)), ("rms_normalization", (x, w)), ("softmax", (x,))):
            got = getattr(ops, name)(*arguments)
            with ops.use_backend("numpy"):
                wanted = getattr(ops, name)(*arguments)
            assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5), name


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("uint8", 0, 255), ("int8", -128, 127), ("int64", -(2**63), 2**63 - 1)]
)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_softmax_of_integers_at_the_ends_of_their_range(op: str, dtype: str, low: int, high: int, backend: str) -> None:
    result = ops.to_numpy(getattr(ops, op)(ops.convert_to_tensor([low, high], dtype=dtype))).astype(float)
    spread = float(high) - float(low)
    np.testing.assert_allclose(result, [0, 1] if op == "softmax" else [-spread, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("length", [2, 5000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("offset", [1e4, -1e4, 6e4])
def test_an_offset_of_all_logits_costs_no_digits(offset: float, dtype: str, length: int, backend: str) -> None:
    x, share = ops.full((length,), offset, dtype=dtype), 1.0 / length
    eps = 2 * float(ops.finfo(dtype).eps)
    one_hot = ops.one_hot(1, length, dtype=dtype)
    for lost in (
        ops.negative(ops.log_softmax(x))[0],
        ops.categorical_crossentropy(one_hot, x, True),
        ops.sparse_categorical_crossentropy([1], x[None], True)[0],
    ):
        np.testing.assert_allclose(float(ops.cast(lost, "float64")), np.log(length), rtol=eps)
    np.testing.assert_allclose(float(ops.cast(ops.softmax(x)[0], "float64")), share, rtol=eps)


def test_softmax_of_booleans(backend: str) -> None:
    result = ops.to_numpy(ops.softmax(ops.convert_to_tensor([True, False])))
    np.testing.assert_allclose(result, [0.7310586, 0.2689414], rtol=1e-6)


def test_relu_takes_every_real_dtype(backend: str) -> None:
    for dtype, result in (("bool", "int64"), ("uint64", "uint64"), ("int8", "int8"), ("bfloat16", "bfloat16")):
        found = ops.relu(ops.cast([0, 1], dtype))
        assert (ops.dtype(found), ops.cast(found, "int64").tolist()) == (result, [0, 1])


@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax])
def test_softmax_of_nothing(op: Callable[..., Any], backend: str) -> None:
    for dtype in ("float32", "int32"):
        found = op(ops.zeros((2, 0), dtype=dtype))
        assert (found.shape, ops.dtype(found)) == ((2, 0), "float32")
    with pytest.raises(AxisError):
        op(ops.zeros((0,)), 1)


def test_glu_needs_an_axis(backend: str) -> None:
    with pytest.raises(AxisError):
        ops.glu(1.0)


def test_activations_stay_in_range(backend: str) -> None:
    assert ops.hard_silu([1e38, -1e38]).tolist() == ops.relu([1e38, -1e38]).tolist()


def test_squareplus_does_not_overflow(backend: str) -> None:
    for dtype, large in (("float16", 6e4), ("bfloat16", 1e38), ("float32", 3e38), ("float64", 1e308)):
        x = ops.cast(np.array([large, -large]), dtype)
        assert ops.cast(ops.squareplus(x), "float64").tolist() == ops.cast(ops.relu(x), "float64").tolist()
        assert ops.cast(ops.grad(lambda x: ops.sum(ops.squareplus(x)))(x), "float64").tolist() == [1.0, 0.0]
    assert ops.squareplus(3.0, 16).tolist() == 4.0
    with pytest.raises(ArgumentError, match="b is not negative"):
        ops.squareplus(3.0, -1.0)
