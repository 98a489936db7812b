"""Attention: masks, groups of heads, derivatives, and the fused kernels beside the composite."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.registry import OPS

X = np.sin(np.arange(24.0)).reshape(1, 4, 2, 3).astype(np.float32)


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
    with pytest.raises(ShapeError, match="query heads that is a multiple of the 2 key heads, got 3"):
        ops.dot_product_attention(np.ones((1, 2, 3, 4)), np.ones((1, 2, 2, 4)), np.ones((1, 2, 2, 4)))


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


def test_attention_over_no_features_is_uniform(backend: str) -> None:
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
def test_what_does_not_fit_is_refused(key: Any, value: Any, further: dict[str, Any], dtype: str, backend: str) -> None:
    query = of(1, 6, 4, 3).astype(dtype)
    with pytest.raises(ShapeError, match=r"of shape|may differ in the last axis only|key heads"):
        ops.dot_product_attention(query, key.astype(dtype), value.astype(dtype), **further)


def test_the_values_may_have_another_width(backend: str) -> None:
    assert ops.dot_product_attention(of(1, 6, 4, 3), of(1, 5, 2, 3), of(1, 5, 2, 7)).shape == (1, 6, 4, 7)


def test_without_heads_there_is_no_result(backend: str) -> None:
    none = np.ones((2, 3, 0, 4))
    assert tuple(ops.dot_product_attention(none, none, none).shape) == (2, 3, 0, 4)
    with pytest.raises(ShapeError, match="the 0 key heads"):
        ops.dot_product_attention(np.ones((2, 3, 2, 4)), none, none)
