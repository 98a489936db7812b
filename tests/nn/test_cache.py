"""The cache of keys and values: what it holds is as if each step had concatenated, but a step copies no other."""

import copy
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ShapeError, TracedTensorError
from emberharmony.nn.cache import STEP

DRAW = np.random.default_rng(3)


def steps(*lengths: int) -> list[Any]:
    return [DRAW.standard_normal((2, length, 3, 4)).astype("float32") for length in lengths]


def extend(cache: nn.KVCache, keys: Any, values: Any = None) -> tuple[Any, Any]:
    return cache.extend(ops.array(keys), ops.array(keys + 1 if values is None else values))


def held(cache: nn.KVCache) -> tuple[Any, Any]:
    return tuple(np.array(ops.to_numpy(cell.value)) for cell in (cache.keys, cache.values))  # type: ignore[union-attr, return-value]


def test_a_cache_holds_exactly_what_it_was_given(backend: str) -> None:
    cache, given = nn.KVCache(), steps(5, 1, 1, 3, STEP - 10, 1, 1, 2 * STEP, 1)
    for i, each in enumerate(given):
        keys, values = extend(cache, each)
        right = np.concatenate(given[: i + 1], 1)
        np.testing.assert_array_equal(ops.to_numpy(keys), right)
        np.testing.assert_array_equal(ops.to_numpy(values), right + 1)
        assert cache.length == right.shape[1]


def test_a_step_copies_no_other(backend: str) -> None:
    cache = nn.KVCache()
    for each in steps(5, 1):
        extend(cache, each)
    before = extend(cache, *steps(1))[0]
    old = np.array(ops.to_numpy(before))
    after = extend(cache, *steps(1))[0]
    np.testing.assert_array_equal(ops.to_numpy(before), old)
    if backend == "numpy":
        assert np.shares_memory(before, after)
    elif backend == "torch":
        assert before.data_ptr() == after.data_ptr()


def test_branches_of_a_sequence_do_not_meet(backend: str) -> None:
    cache = nn.KVCache()
    first, one, other, third = steps(5, 2, 2, 1)
    extend(cache, first[:, :4])
    extend(cache, first[:, 4:])
    branches = [copy.deepcopy(cache), copy.deepcopy(cache), cache]
    for branch, more in zip(branches, (one, other, third), strict=True):
        extend(branch, more)
    for branch, more in zip(branches, (one, other, third), strict=True):
        np.testing.assert_array_equal(held(branch)[0], np.concatenate([first, more], 1))
    shown = cache.keys.value  # type: ignore[union-attr]
    cache.trim(3)
    extend(cache, one)
    np.testing.assert_array_equal(held(cache)[1], np.concatenate([first[:, :3], one], 1) + 1)
    np.testing.assert_array_equal(ops.to_numpy(shown), np.concatenate([first, third], 1))


def test_a_cache_goes_on_with_other_dtypes_and_backends(backend: str) -> None:
    cache, given = nn.KVCache(), steps(2, 1, 1, 1)
    for place, each in zip(("numpy", backend, "numpy", backend), given, strict=True):
        with ops.use_backend(place):
            extend(cache, each)
    keys, _ = extend(cache, given[0].astype("float16"), given[0])
    assert ops.dtype(keys).name == "float32"
    np.testing.assert_array_equal(held(cache)[1][:, :5], np.concatenate(given, 1) + 1)


def test_gradients_flow_through_a_cache(backend: str) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = ops.array(DRAW.standard_normal((2, 4, 8)), "float32")

    def loss(cached: bool) -> Any:
        if not cached:
            return ops.sum(ops.square(layer(x, need_weights=False, is_causal=True)[0]))
        cache = nn.KVCache()
        parts = [
            layer(x[:, a:b], need_weights=False, is_causal=True, cache=cache)[0] for a, b in ((0, 2), (2, 3), (3, 4))
        ]
        return ops.sum(ops.square(ops.concatenate(parts, 1)))

    found = []
    for cached in (False, True):
        ops.zero_grad(layer)
        ops.backward(lambda cached=cached: loss(cached), layer)
        found.append([ops.to_numpy(cell.grad) for cell in layer.parameters()])
    for mine, right in zip(*found, strict=True):
        np.testing.assert_allclose(mine, right, atol=2e-5)


def test_padding_is_masked_and_moves_the_positions(backend: str) -> None:
    cache = nn.KVCache()
    cache.padding = (0, 2)
    assert (cache.text_mask(), cache.offset) == (None, (0, -2))
    extend(cache, *steps(3))
    first = np.array([[True] * 3, [False, False, True]])[:, None, None]
    np.testing.assert_array_equal(ops.to_numpy(cache.mask(3)), first)
    extend(cache, *steps(2))
    seen = np.tri(2, 5, 3, bool) & (np.arange(5) >= np.array([0, 2])[:, None, None, None])
    np.testing.assert_array_equal(ops.to_numpy(cache.mask(2)), seen)
    assert cache.offset == (5, 3)
    plain = nn.KVCache()
    extend(plain, *steps(3))
    assert plain.mask(1) is plain.mask(3) is None
    np.testing.assert_array_equal(ops.to_numpy(plain.mask(2)), np.tri(2, 3, 1, bool))
    layer = nn.LearnedPositional(6, 4)
    weight, x = ops.to_numpy(layer.weight.value), ops.zeros((2, 3, 4))
    np.testing.assert_array_equal(ops.to_numpy(layer(x, (3, -2))), weight[[[3, 4, 5], [0, 0, 0]]])
    for wrong in ((4, 0), (0,)):
        with pytest.raises(ShapeError):
            layer(x, wrong)


def test_a_failed_gradient_leaves_the_cache_as_it_was(backend: str) -> None:
    cache, given = nn.KVCache(), steps(2, 1, 1, 1)
    for each in given[:3]:
        extend(cache, each)
    with pytest.raises(TracedTensorError):
        ops.grad(lambda x: ops.sum(cache.extend(x, x)[0]))(ops.array(given[3]))
    extend(cache, given[3])
    np.testing.assert_array_equal(held(cache)[0], np.concatenate(given, 1))


def test_a_cache_goes_on_around_inference_mode_and_graphs_of_torch() -> None:
    torch = pytest.importorskip("torch")
    cache, given = nn.KVCache(), steps(2, 1, 1, 1, 1, 1)
    with ops.use_backend("torch"):
        for i, each in enumerate(given):
            with torch.inference_mode(i in (1, 2)):
                extend(cache, each)
        np.testing.assert_array_equal(held(cache)[0], np.concatenate(given, 1))
        recorded = torch.ones((2, 1, 3, 4), requires_grad=True)
        cache.extend(recorded, recorded)[0].sum().backward()
        assert float(recorded.grad.sum()) == 24
