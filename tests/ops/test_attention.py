"""Attention: masks, groups of heads, derivatives, and fused kernels compared with the composite."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.registry import OPS

X = np.sin(np.arange(24.0)).reshape(1, 4, 2, 3).astype(np.float32)


def test_a_fully_masked_query_returns_the_mean_of_the_values(backend: str) -> None:
    mask = np.array([[True, False, True, False], [False] * 4, [True] * 4, [True] * 4])
    result = ops.to_numpy(ops.dot_product_attention(X, X, X, mask=mask))
    assert np.allclose(result[0, 1], X[0].mean(0), atol=1e-6)


def test_a_fully_masked_query_has_a_zero_gradient(backend: str) -> None:
    q, mask = np.array([[[[1, 2]], [[0.5, 1]]]], np.float32), np.array([[[[False, False], [True, True]]]])
    of_query = ops.grad(lambda x: ops.sum(ops.square(ops.dot_product_attention(x, q, q, mask=mask))))
    first, second = ops.to_numpy(of_query(q))[0]
    assert (first == 0).all()
    assert (second != 0).all()
    of_key = ops.grad(lambda x: ops.sum(ops.square(ops.dot_product_attention(q[:, :1], x, q, mask=mask[:, :, :1]))))
    assert (ops.to_numpy(of_key(q)) == 0).all()


def test_a_causal_query_ignores_later_keys(backend: str) -> None:
    changed = X.copy()
    changed[:, 2:] += 1.0
    first = ops.to_numpy(ops.dot_product_attention(X, X, X, is_causal=True))
    second = ops.to_numpy(ops.dot_product_attention(X, changed, changed, is_causal=True))
    assert np.array_equal(first[:, :2], second[:, :2])
    assert not np.allclose(first[:, 2:], second[:, 2:])


def test_a_number_of_heads_that_the_groups_do_not_divide_is_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="query heads that is a multiple of the 2 key heads, got 3"):
        ops.dot_product_attention(np.ones((1, 2, 3, 4)), np.ones((1, 2, 2, 4)), np.ones((1, 2, 2, 4)))


KINDS = [{}, {"mask": True}, {"is_causal": True}, {"mask": True, "bias": True, "is_causal": True}, {"scale": 0.3}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", [2, 3, 5])
def test_fused_attention_agrees_with_the_composite(kind: dict[str, Any], keys: int, backend: str) -> None:
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


def test_fused_attention_has_second_and_forward_derivatives(backend: str) -> None:
    if backend == "numpy":
        pytest.skip("NumPy has no fused attention")
    attend = lambda x: ops.dot_product_attention(x, x, x)
    first = ops.grad(lambda x: ops.sum(attend(x) ** 3))
    second = ops.grad(lambda x: ops.sum(first(x) ** 2))(ops.convert_to_tensor(X))
    assert np.isfinite(ops.to_numpy(second)).all()
    _, pushed = ops.jvp(attend, (ops.convert_to_tensor(X),), (ops.ones(X.shape),))
    assert ops.shape(pushed) == X.shape


def test_vectorized_attention_equals_one_call_after_the_other(backend: str) -> None:
    pair = ops.stack([ops.convert_to_tensor(X), ops.flip(ops.convert_to_tensor(X), 1)])
    found = ops.vmap(lambda x: ops.dot_product_attention(x, x, x, is_causal=True))(pair)
    for one, x in zip(ops.unstack(found), ops.unstack(pair), strict=True):
        right = ops.dot_product_attention(x, x, x, is_causal=True)
        np.testing.assert_allclose(ops.to_numpy(one), ops.to_numpy(right), atol=1e-6)


def test_attention_without_features_is_uniform(backend: str) -> None:
    found = ops.dot_product_attention(np.ones((1, 3, 2, 0)), np.ones((1, 4, 2, 0)), np.ones((1, 4, 2, 5)))
    assert np.allclose(ops.to_numpy(found), 1.0)


def of(*shape: int) -> Any:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    "key, value, further",
    [
        (of(1, 5, 4, 3), of(1, 3, 4, 3), {}),
        (of(1, 3, 4, 3), of(1, 5, 4, 3), {}),
        (of(1, 5, 4, 2), of(1, 5, 4, 3), {}),
        (of(1, 5, 2, 3), of(1, 5, 4, 3), {}),
        (of(1, 5, 4, 3), of(1, 5, 1, 3), {}),
        (of(2, 5, 4, 3), of(2, 5, 4, 3), {}),
        (of(1, 5, 0, 3), of(1, 5, 0, 3), {}),
        (of(5, 4, 3), of(5, 4, 3), {}),
        (of(1, 5, 4, 3), of(1, 5, 4, 3), {"bias": of(9)}),
        (of(1, 5, 4, 3), of(1, 5, 4, 3), {"bias": of(2, 4, 6, 5)}),
        (of(1, 5, 4, 3), of(1, 5, 4, 3), {"mask": of(7, 7)}),
        (of(1, 5, 4, 3), of(1, 5, 4, 3), {"mask": of(1, 1, 4, 6, 5)}),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_shapes_that_do_not_fit_are_refused(
    key: Any, value: Any, further: dict[str, Any], dtype: str, backend: str
) -> None:
    query = of(1, 6, 4, 3).astype(dtype)
    with pytest.raises(ShapeError, match=r"of shape|may differ in the last axis only|key heads"):
        ops.dot_product_attention(query, key.astype(dtype), value.astype(dtype), **further)


def test_values_may_have_more_features_than_keys(backend: str) -> None:
    assert ops.dot_product_attention(of(1, 6, 4, 3), of(1, 5, 2, 3), of(1, 5, 2, 7)).shape == (1, 6, 4, 7)


def test_attention_without_heads_is_empty(backend: str) -> None:
    none = np.ones((2, 3, 0, 4))
    assert tuple(ops.dot_product_attention(none, none, none).shape) == (2, 3, 0, 4)
    with pytest.raises(ShapeError, match="the 0 key heads"):
        ops.dot_product_attention(np.ones((2, 3, 2, 4)), none, none)


@pytest.mark.parametrize(
    ("query", "key", "value", "expected"),
    [
        ("float32", "float16", "float16", "float32"),
        ("float16", "float32", "float16", "float32"),
        ("float16", "float16", "float32", "float32"),
        ("bfloat16", "float16", "float16", "float32"),
        ("int32", "float16", "float16", "float32"),
        ("float16", "float16", "float16", "float16"),
    ],
)
def test_queries_keys_and_values_are_promoted(query: str, key: str, value: str, expected: str, backend: str) -> None:
    inputs = [ops.cast(ops.ones((1, 2, 1, 4)), name) for name in (query, key, value)]
    assert ops.dtype(ops.dot_product_attention(*inputs)) == expected
