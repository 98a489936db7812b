"""Attention layers on every backend."""

import copy
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch

NAME = "MultiheadAttention"
DRAW = np.random.default_rng(5)
Q, K = (4, 2, 8), (5, 2, 8)
BQ, BK = (2, 4, 8), (2, 5, 8)
LATER = np.triu(np.ones((4, 4), bool), 1)
SOME = DRAW.random((4, 5)) > 0.7
EACH = DRAW.random((4, 4, 5)) > 0.7
PADDED = np.array([[False, False, True, True, True], [False, False, False, False, True]])
SOME[:, 0] = EACH[:, :, 0] = False
ADDED = DRAW.standard_normal((4, 5)).astype("float32")
MINUS = np.where(LATER, -np.inf, 0.0).astype("float32")
FLAGS: list[dict[str, Any]] = [{}, {"need_weights": False}, {"average_attn_weights": False}]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "bias": False},
]


CASES = [
    *(Case(NAME, (8, 2), (Q, K, K), options, call=flags) for options in OPTIONS for flags in FLAGS[:2]),
    *(Case(NAME, (8, 4), (Q, Q, Q), {}, call=flags) for flags in FLAGS),
    Case(NAME, (8, 1), (Q, K, K)),
    Case(NAME, (8, 8), (Q, K, K)),
    *(Case(NAME, (8, 2), (BQ, BK, BK), {"batch_first": True, **o}, call=f) for o in OPTIONS[:2] for f in FLAGS),
    *(Case(NAME, (8, 2), ((4, 8), (5, 8), (5, 8)), options, call=flags) for options in OPTIONS for flags in FLAGS),
    *(Case(NAME, (8, 2), (Q, (5, 2, 3), (5, 2, 6)), {"kdim": 3, "vdim": 6, **options}) for options in OPTIONS),
    Case(NAME, (8, 2), (BQ, BK, (2, 5, 6)), {"vdim": 6, "batch_first": True}, call=FLAGS[1]),
    Case(NAME, (8, 2, 0.3), (Q, K, K), train=False),
    Case(NAME, (8, 2, 0.0, False, True, True, 3, 6, True), (BQ, (2, 5, 3), (2, 5, 6))),
]
MASKED: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = [
    ("later", (Q, Q, Q), {}, {"attn_mask": LATER}),
    ("later-floats", (Q, Q, Q), {}, {"attn_mask": MINUS}),
    ("causal", (Q, Q, Q), {}, {"attn_mask": LATER, "is_causal": True}),
    ("some", (Q, K, K), {}, {"attn_mask": SOME}),
    ("added", (Q, K, K), {}, {"attn_mask": ADDED}),
    ("each-head", (Q, K, K), {}, {"attn_mask": EACH}),
    ("padded", (Q, K, K), {}, {"key_padding_mask": PADDED}),
    ("padded-floats", (Q, K, K), {}, {"key_padding_mask": PADDED.astype("float32") * -3}),
    ("both-floats", (Q, K, K), {}, {"key_padding_mask": PADDED.astype("float32") * -3, "attn_mask": ADDED}),
    ("padded-first", (BQ, BK, BK), {"batch_first": True}, {"key_padding_mask": PADDED, "attn_mask": SOME}),
    ("padded-single", ((4, 8), (5, 8), (5, 8)), {}, {"key_padding_mask": PADDED[0]}),
    ("each-single", ((4, 8), (5, 8), (5, 8)), {}, {"attn_mask": EACH[:2]}),
    ("padded-more", (Q, K, K), {"add_bias_kv": True}, {"key_padding_mask": PADDED, "attn_mask": SOME}),
    ("added-zeros", (Q, K, K), {"add_zero_attn": True}, {"attn_mask": ADDED}),
    ("each-both", (Q, K, K), {"add_zero_attn": True, "add_bias_kv": True}, {"attn_mask": EACH}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize(("shapes", "options", "masks"), [row[1:] for row in MASKED], ids=[row[0] for row in MASKED])
def test_masks_mean_what_those_of_torch_do(backend: str, shapes: Any, options: Any, masks: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(1)
    given = [draw.standard_normal(shape).astype("float32") for shape in shapes]
    theirs = torch.nn.MultiheadAttention(8, 2, **options)
    ours = nn.MultiheadAttention(8, 2, **options)
    ours.load_state_dict(theirs.state_dict())
    theirs = theirs.double()
    leaves = [torch.tensor(x.astype("float64"), requires_grad=True) for x in given]
    host = {name: _in_torch(torch, mask) for name, mask in masks.items()}
    right, right_weights = theirs(*leaves, **host)
    right.sum().backward()
    for need_weights in (True, False):
        found, weights = ours(*given, need_weights=need_weights, **masks)
        require_close(found, right.detach().numpy(), 2e-6, "outputs")
        if need_weights:
            require_close(weights, right_weights.detach().numpy(), 2e-6, "weights")

        def total(*inputs: Any, need_weights: bool = need_weights) -> Any:
            return ops.sum(ours(*inputs, need_weights=need_weights, **masks)[0])

        for gradient, leaf in zip(ops.grad(total, (0, 1, 2))(*given), leaves, strict=True):
            require_close(gradient, leaf.grad.numpy(), 1e-5, "gradient")


def _in_torch(torch: Any, mask: Any) -> Any:
    if not isinstance(mask, np.ndarray):
        return mask
    return torch.tensor(mask if mask.dtype == bool else mask.astype("float64"))


def test_a_causal_layer_needs_no_mask(backend: str) -> None:
    for options in OPTIONS:
        layer = nn.MultiheadAttention(8, 2, batch_first=True, **options)
        x = ops.random.normal(BQ)
        for need_weights in (True, False):
            found = layer(x, need_weights=need_weights, is_causal=True)[0]
            right = layer(x, need_weights=need_weights, attn_mask=LATER)[0]
            np.testing.assert_allclose(ops.to_numpy(found), ops.to_numpy(right), atol=2e-6)


def test_groups_of_heads_share_keys_and_values(backend: str) -> None:
    torch = pytest.importorskip("torch")
    for groups in (1, 2):
        ours = nn.MultiheadAttention(8, 4, num_kv_heads=groups)
        assert list(ours.state_dict())[:3] == ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        theirs = torch.nn.MultiheadAttention(8, 4).double()
        state = {name: torch.tensor(x.astype("float64")) for name, x in ours.state_dict(host=True).items()}

        def spread(rows: Any, groups: int = groups) -> Any:
            return rows.reshape(groups, 2, -1).repeat_interleave(4 // groups, 0).reshape(8, *rows.shape[1:])

        parts = state.pop("q_proj_weight"), spread(state.pop("k_proj_weight")), spread(state.pop("v_proj_weight"))
        state["in_proj_weight"] = torch.cat(parts)
        biases = state["in_proj_bias"].normal_().split([8, 2 * groups, 2 * groups])
        ours.in_proj_bias.value = torch.cat(biases).float().numpy()
        state["in_proj_bias"] = torch.cat([biases[0], *map(spread, biases[1:])])
        theirs.load_state_dict(state)
        x = DRAW.standard_normal(Q).astype("float32")
        right, weights = theirs(*[torch.tensor(x).double()] * 3)
        require_close(ours(x)[0], right.detach().numpy(), 2e-6, "outputs")
        require_close(ours(x)[1], weights.detach().numpy(), 2e-6, "weights")
        require_close(ours(x, need_weights=False)[0], right.detach().numpy(), 2e-6, "fused outputs")


@pytest.mark.parametrize("options", [{}, {"num_kv_heads": 1}, {"rope": nn.RoPE(4)}, {"add_bias_kv": True}], ids=str)
def test_steps_with_a_cache_equal_the_whole_sequence(backend: str, options: Any) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True, **options)
    x = ops.random.normal((2, 6, 8))
    whole = ops.to_numpy(layer(x, is_causal=True)[0])
    cache = nn.KVCache()
    for start, end in ((0, 3), (3, 4), (4, 6)):
        found = layer(x[:, start:end], need_weights=False, is_causal=True, cache=cache)[0]
        np.testing.assert_allclose(ops.to_numpy(found), whole[:, start:end], atol=3e-6)
    assert cache.length == 6
    assert not cache.state_dict()
    branch = copy.deepcopy(cache)
    branch.trim(4)
    again = layer(x[:, 4:], is_causal=True, cache=branch)[0]
    np.testing.assert_allclose(ops.to_numpy(again), whole[:, 4:], atol=3e-6)
    assert (branch.length, cache.length) == (6, 6)


def test_a_cache_follows_the_backend_in_mid_sequence(backend: str) -> None:
    layer, cache = nn.MultiheadAttention(8, 2, batch_first=True), nn.KVCache()
    x = np.random.default_rng(2).standard_normal((1, 4, 8)).astype("float32")
    whole = ops.to_numpy(layer(x, is_causal=True)[0])
    layer(x[:, :2], is_causal=True, cache=cache)
    with ops.use_backend("numpy"):
        found = ops.to_numpy(layer(x[:, 2:], is_causal=True, cache=cache)[0])
    np.testing.assert_allclose(found, whole[:, 2:], atol=3e-6)


def test_dropout_is_equal_on_every_backend_and_absent_in_use(backend: str) -> None:
    def outputs() -> Any:
        layer = nn.MultiheadAttention(8, 2, dropout=0.5, rng=nn.Rngs(3))
        x = ops.ones(Q)
        calls = [layer(x), layer(x, need_weights=False), layer.eval()(x)]
        return [ops.to_numpy(call[0]) for call in calls]

    found = outputs()
    with ops.use_backend("numpy"):
        right = outputs()
    for mine, wanted in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, wanted, atol=2e-6)
    assert abs(found[0] - found[1]).max() > 1e-3
    assert abs(found[0] - found[2]).max() > 1e-3


def test_a_query_without_keys_gets_the_mean_of_the_values(backend: str) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = ops.random.normal((1, 3, 8))
    for need_weights in (True, False):
        found = layer(x, key_padding_mask=np.ones((1, 3), bool), need_weights=need_weights)[0]
        assert np.isfinite(ops.to_numpy(found)).all()


def test_wrong_inputs_name_the_layer_and_the_shapes_that_fit(backend: str) -> None:
    layer = nn.MultiheadAttention(8, 2, kdim=3)
    with pytest.raises(
        ShapeError, match=r"key of shape \(keys, batch, 3\).*got \(4, 2, 8\), \(5, 2, 8\).*in Multihead"
    ):
        layer(ops.zeros(Q), ops.zeros(K), ops.zeros(K))
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    with pytest.raises(ShapeError, match=r"query of shape \(batch, queries, 8\)"):
        layer(ops.zeros((4, 2, 8)), ops.zeros((5, 2, 8)))
    with pytest.raises(ShapeError, match=r"expected attn_mask of shape \(4, 4\) or \(4, 4, 4\), got \(4, 3\)"):
        layer(ops.zeros(BQ), attn_mask=np.zeros((4, 3), bool))
    with pytest.raises(ShapeError, match=r"expected key_padding_mask of shape \(2, 4\), got \(4, 2\)"):
        layer(ops.zeros(BQ), key_padding_mask=np.zeros((4, 2), bool))
    cache = nn.KVCache()
    layer(ops.zeros(BQ), cache=cache)
    with pytest.raises(ShapeError, match=r"holds \(2, 4, 2, 4\).*\(1, 4, 2, 4\) does not continue"):
        layer(ops.zeros((1, 4, 8)), cache=cache)
    with pytest.raises(ArgumentError, match="expected a length from 0 to 4, got 5"):
        cache.trim(5)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="embed_dim, 8, must be a multiple of num_heads, 3"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(ArgumentError, match="num_heads, 4, must be a multiple of num_kv_heads, 3"):
        nn.MultiheadAttention(8, 4, num_kv_heads=3)
    with pytest.raises(ArgumentError, match="rope rotates 8 features of each head, but a head has 4"):
        nn.MultiheadAttention(8, 2, rope=nn.RoPE(8))
    with pytest.raises(ArgumentTypeError, match=r"rope must be a module such as nn\.RoPE\(4\), got True"):
        nn.MultiheadAttention(8, 2, rope=True)  # type: ignore[arg-type]


def test_the_layer_has_the_names_of_both_libraries() -> None:
    assert nn.MultiHeadAttention is nn.MultiheadAttention
    assert repr(nn.MultiheadAttention(8, 2, bias=False)).startswith("MultiheadAttention(\n  8, 2")


@pytest.mark.parametrize("case", [CASES[7], CASES[-1]], ids=str)
def test_layers_behave_as_layers(backend: str, case: Case) -> None:
    require_behaviours(backend, case)


def test_self_attention_is_projected_by_one_product_while_it_is_differentiated(backend: str) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    h = ops.ones(BQ)
    with ops.record(backward=True) as log:
        ops.grad(lambda h: ops.sum(layer(h, h, h, need_weights=False)[0]))(h)
    # One product for queries, keys and values, and one for the outputs.
    assert len([event for event in log if event.op == "linear" and not event.gradient_of and event.depth == 0]) == 2
