"""Attention: masks, groups of heads, derivatives, and fused kernels compared with the composite."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, ShapeError
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
    operands = [x.astype(dtype) for x in (of(1, 6, 4, 3), key, value)]
    for tensors in (operands, [ops.convert_to_tensor(x) for x in operands]):
        with pytest.raises(ShapeError, match=r"of shape|may differ in the last axis only|key heads"):
            ops.dot_product_attention(*tensors, **further)


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


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("groups, width", [(1, 3), (2, 3), (4, 3), (2, 2)])
def test_masks_scales_and_groups_are_those_of_pytorch(causal: bool, groups: int, width: int, backend: str) -> None:
    from torch import from_numpy
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (
        np.sin(np.arange(2.0 * n * h * width) + n).reshape(2, n, h, width)
        for n, h in ((5, 4), (6, groups), (6, groups))
    )
    added = np.cos(np.arange(2.0 * 5 * 6)).reshape(2, 1, 5, 6)
    kept = added > -0.5
    tensors = [from_numpy(x.swapaxes(1, 2).copy()) for x in (q, k, v)]
    for bias, mask in ((None, None), (added, None), (None, kept), (added, kept)):
        both = added if bias is not None else np.zeros_like(added)
        both = np.where(kept, both, -np.inf) if mask is not None else both
        both = np.where(np.tri(5, 6, dtype=bool), both, -np.inf) if causal else both
        wanted = scaled_dot_product_attention(*tensors, attn_mask=from_numpy(both), scale=0.3, enable_gqa=True)
        found = ops.dot_product_attention(q, k, v, bias, mask, 0.3, causal)
        assert np.allclose(ops.to_numpy(found), wanted.transpose(1, 2).numpy(), atol=1e-6), (bias is None, mask is None)


def test_dropped_weights_are_zero_and_the_others_larger(backend: str) -> None:
    q, v = np.zeros((1, 1, 1, 2), np.float32), np.eye(1000, dtype=np.float32).reshape(1, 1000, 1, 1000)
    k = np.zeros((1, 1000, 1, 2), np.float32)
    weights = ops.to_numpy(ops.dot_product_attention(q, k, v, dropout_rate=0.25, seed=3)).ravel()
    assert set(np.round(weights * 750, 4).tolist()) == {0.0, 1.0}
    assert 200 < (weights == 0).sum() < 300
    again = ops.dot_product_attention(q, k, v, dropout_rate=0.25, seed=3)
    assert np.array_equal(ops.to_numpy(again).ravel(), weights)
    everything = ops.dot_product_attention(q, k, v, dropout_rate=0)
    assert np.allclose(ops.to_numpy(everything), 0.001)
    with pytest.raises(ArgumentError, match="rate from 0 to 1, got 2"):
        ops.dot_product_attention(q, k, v, dropout_rate=2)


def test_products_of_rotated_vectors_depend_on_their_distance(backend: str) -> None:
    q, k = np.sin(np.arange(8.0)), np.cos(np.arange(8.0))
    rows = [ops.to_numpy(ops.rope(np.tile(x, (1, 40, 1)), traditional=True))[0] for x in (q, k)]
    products = rows[0] @ rows[1].T
    for distance in (0, 5, -7):
        along = np.diagonal(products, distance)
        assert np.allclose(along, along[0], atol=1e-5)
    later = ops.to_numpy(ops.rope(np.tile(q, (1, 30, 1)), offset=10, traditional=True))[0]
    assert np.allclose(later, rows[0][10:], atol=1e-6)


@pytest.mark.skipif(not is_installed("mlx"), reason="mlx is not installed")
@pytest.mark.parametrize("traditional", [False, True])
def test_rope_is_that_of_mlx(traditional: bool, backend: str) -> None:
    import mlx.core as mx

    x = np.sin(np.arange(2 * 3 * 7 * 8, dtype=np.float32)).reshape(2, 3, 7, 8)
    for dims, offset, base, scale in ((8, 0, 1e4, 1.0), (6, 4, 100.0, 0.5)):
        wanted = mx.fast.rope(mx.array(x), dims, traditional=traditional, base=base, scale=scale, offset=offset)
        found = ops.rope(x, dims, offset, traditional, base, scale, axis=-2)
        assert np.allclose(ops.to_numpy(found), np.array(wanted), atol=1e-5)
        heads_later = ops.rope(x.swapaxes(1, 2), dims, offset, traditional, base, scale)
        assert np.array_equal(ops.to_numpy(heads_later).swapaxes(1, 2), ops.to_numpy(found))


def test_far_positions_are_rotated_precisely(backend: str) -> None:
    x = np.ones((1, 4, 2), np.float32)
    at = 1_000_000 + np.arange(4.0)
    wanted = np.stack([np.cos(at) - np.sin(at), np.cos(at) + np.sin(at)], -1)
    assert np.abs(ops.to_numpy(ops.rope(x, offset=1_000_000))[0] - wanted).max() < 1e-6


def test_each_sample_may_have_its_own_offset(backend: str) -> None:
    x = np.sin(np.arange(2 * 4 * 3 * 6, dtype=np.float32)).reshape(2, 4, 3, 6)
    found = ops.to_numpy(ops.rope(x, offset=ops.array([0, 7])))
    for row, offset in enumerate((0, 7)):
        assert np.allclose(found[row], ops.to_numpy(ops.rope(x[row : row + 1], offset=offset))[0], atol=1e-5)
    last = ops.rope(x[:, :1], offset=ops.array(5))
    assert np.allclose(ops.to_numpy(last), ops.to_numpy(ops.rope(x[:, :1], offset=5)), atol=1e-5)


def test_rope_is_linear_and_preserves_lengths(backend: str) -> None:
    x = ops.convert_to_tensor(np.sin(np.arange(48, dtype=np.float32)).reshape(2, 4, 6))
    turned = ops.rope(x, 4)
    assert np.allclose(ops.to_numpy(ops.sum(turned**2, -1)), ops.to_numpy(ops.sum(x**2, -1)), atol=1e-5)
    _, tangent = ops.jvp(lambda x: ops.rope(x, 4), (x,), (x,))
    assert np.allclose(ops.to_numpy(tangent), ops.to_numpy(turned), atol=1e-6)
    slope = ops.grad(lambda x: ops.sum(ops.rope(x, 4) * turned))(x)
    assert np.allclose(ops.to_numpy(slope), ops.to_numpy(x), atol=1e-5)
    mapped = ops.vmap(lambda row: ops.rope(row, 4, axis=0))(x)
    assert np.allclose(ops.to_numpy(mapped), ops.to_numpy(turned), atol=1e-6)
    steps = ops.convert_to_tensor(np.float32([0.5, 0.25]))
    slope = ops.grad(lambda f: ops.sum(ops.rope(x, 4, frequencies=f) ** 3))(steps)
    assert np.isfinite(ops.to_numpy(slope)).all()


def test_rotations_that_do_not_fit_are_refused(backend: str) -> None:
    x = np.ones((2, 4, 6), np.float32)
    for dims in (3, 8, -2):
        with pytest.raises(ShapeError, match="an even number of features to rotate, at most 6"):
            ops.rope(x, dims)
    with pytest.raises(ArgumentError, match="another one than the last"):
        ops.rope(x, axis=-1)
    with pytest.raises(ArgumentError, match="base is a positive number"):
        ops.rope(x, base=0.0)
    with pytest.raises(ShapeError, match=r"frequencies of shape \(3,\), got \(2,\)"):
        ops.rope(x, frequencies=np.ones(2))
    with pytest.raises(ShapeError, match="one integer, or one for each sample"):
        ops.rope(x, offset=ops.array([1, 2, 3]))


def test_the_tables_of_rope_serve_gradients_and_batches_later(backend: str) -> None:
    x = np.sin(np.arange(2.0 * 3 * 1 * 4)).reshape(2, 3, 1, 4).astype(np.float32)
    first = np.array(ops.to_numpy(ops.rope(x, offset=41)))
    assert np.allclose(ops.to_numpy(ops.vmap(lambda row: ops.rope(row, offset=41, axis=0))(ops.array(x))), first)
    gradient = ops.grad(lambda x: ops.sum(ops.multiply(ops.rope(x, offset=41), first)))(ops.array(x))
    assert np.allclose(ops.to_numpy(gradient), x, atol=1e-6)  # the rotation back
    assert np.array_equal(ops.to_numpy(ops.rope(x, offset=41)), first)


def test_the_tables_of_rope_may_be_made_in_inference_mode_of_torch() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        x = torch.ones(1, 2, 1, 4)
        with torch.inference_mode():
            wanted = ops.rope(x, offset=43)
        recorded = x.clone().requires_grad_()
        found = ops.rope(recorded, offset=43)
        found.sum().backward()
        torch.testing.assert_close(found.detach(), wanted.clone())
        torch.testing.assert_close(ops.multiply(ops.rope(x, offset=43), recorded).sum().detach(), wanted.sum().clone())


def test_a_masked_key_has_no_weight_however_low_the_other_logits_are(backend: str) -> None:
    query, key = ops.full((1, 1, 1, 1), 300.0), ops.reshape(ops.asarray([-300.0, 0.0]), (1, 2, 1, 1))
    value, mask = ops.reshape(ops.asarray([5.0, 7.0]), (1, 2, 1, 1)), ops.asarray([[[[True, False]]]])
    for dtype in ("float32", "float64"):
        tensors = [ops.cast(x, dtype) for x in (query, key, value)]
        assert float(ops.sum(ops.dot_product_attention(*tensors, mask=mask))) == 5.0


@pytest.mark.parametrize(
    "options", [{}, {"scale": 0.25}, {"base": 100.0}, {"offset": 250}, {"offset": 1000, "scale": 2.0}]
)
@pytest.mark.parametrize("length", [3, 256, 257, 300, 600])
def test_rotations_follow_their_formula_at_every_position(length: int, options: dict[str, Any], backend: str) -> None:
    width = 8
    x = np.cos(np.arange(length * width)).reshape(1, length, width).astype(np.float32)
    base, scale, offset = options.get("base", 10000.0), options.get("scale", 1.0), options.get("offset", 0)
    steps = base ** (-np.arange(0, width, 2) / width)
    angles = ((offset + np.arange(length)) * scale)[:, None] * steps
    one, other = x[..., : width // 2].astype(float), x[..., width // 2 :].astype(float)
    wanted = np.concatenate(
        [one * np.cos(angles) - other * np.sin(angles), one * np.sin(angles) + other * np.cos(angles)], -1
    )
    for again in range(2):  # the second call reads the kept table
        found = ops.to_numpy(ops.rope(ops.asarray(x), **options))
        np.testing.assert_allclose(found, wanted, atol=2e-6, err_msg=str(again))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", ["mask", "causal", "bias"])
def test_a_masked_key_has_no_share_however_large_its_product_is(way: str, dtype: str, backend: str) -> None:
    query = ops.ones((1, 2, 1, 4), dtype)
    key = ops.asarray(np.array([[0.0] * 4, [1e5] * 4]).reshape(1, 2, 1, 4), dtype=dtype)
    value = ops.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 1, 2), dtype=dtype)
    mask = np.array([[True, False], [True, True]]).reshape(1, 1, 2, 2)

    def attended(query: Any) -> Any:
        if way == "causal":
            return ops.dot_product_attention(query, key, value, is_causal=True)
        if way == "bias":
            bias = ops.asarray(np.where(mask, 0.0, -np.inf), dtype=dtype)
            return ops.dot_product_attention(query, key, value, bias=bias)
        return ops.dot_product_attention(query, key, value, mask=ops.asarray(mask))

    assert ops.to_numpy(attended(query)).reshape(2, 2).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    slope = ops.to_numpy(ops.grad(lambda q: ops.sum(attended(q)))(query))
    assert not slope[0, 0].any()
