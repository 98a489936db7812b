"""Transformers on every backend."""

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")  # of torch, about its own speed

SRC, TGT, ROWS = (5, 2, 8), (4, 2, 8), (2, 4, 8)
LATER = np.triu(np.ones((4, 4), bool), 1)
PADDED = np.array([[False, False, True, True, True], [False, False, False, False, True]])
SEEN = np.arange(20).reshape(4, 5) % 3 == 2
OPTIONS: list[dict[str, Any]] = [
    {},
    {"norm_first": True},
    {"activation": "gelu"},
    {"activation": "relu", "layer_norm_eps": 0.1},
    {"bias": False},
    {"bias": False, "norm_first": True},
]
NO_DROPOUT: dict[str, Any] = {"dropout": 0.0}

LAYERS = [
    *(Case("TransformerEncoderLayer", (8, 2, 12), (TGT,), {**NO_DROPOUT, **options}) for options in OPTIONS),
    Case("TransformerEncoderLayer", (8, 2), (TGT,), train=False),
    Case("TransformerEncoderLayer", (8, 4, 12, 0.0, "gelu", 1e-3, True, True, False), (ROWS,)),
    Case("TransformerEncoderLayer", (8, 2, 12, 0.0), ((4, 8),)),
    *(Case("TransformerDecoderLayer", (8, 2, 12), (TGT, SRC), {**NO_DROPOUT, **options}) for options in OPTIONS),
    # With relu, one of the 2,048 features is so close to 0 that rounding decides its slope.
    Case("TransformerDecoderLayer", (8, 2), (TGT, SRC), {"activation": "gelu"}, train=False),
    Case("TransformerDecoderLayer", (8, 4, 12, 0.0, "gelu", 1e-3, True, True, False), (ROWS, (2, 5, 8))),
    Case("TransformerDecoderLayer", (8, 2, 12, 0.0), ((4, 8), (5, 8))),
]
WHOLE = [
    *(Case("Transformer", (8, 2, 1, 2, 12), (SRC, TGT), {**NO_DROPOUT, **options}) for options in OPTIONS),
    Case("Transformer", (8, 2, 2, 1, 12), (SRC, TGT), train=False),
    Case("Transformer", (8, 2, 1, 1, 12, 0.0, "gelu", None, None, 1e-3, True, True, False), (ROWS, (2, 3, 8))),
    Case("Transformer", (8, 2, 1, 1, 12, 0.0), ((5, 8), (4, 8))),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", LAYERS + WHOLE, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


def require_like(
    make: Callable[[Any], Any], shapes: list[tuple[int, ...]], masks: Mapping[str, Any], flags: Mapping[str, Any]
) -> None:
    """Checks outputs and gradients by parameters of a module made of `nn` against the same made of `torch.nn`."""
    theirs, ours = make(torch.nn), make(nn)
    ours.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs = theirs.double()
    draw = np.random.default_rng(2)
    inputs = [draw.standard_normal(shape).astype("float32") for shape in shapes]
    right = theirs(
        *(torch.tensor(x).double() for x in inputs), **{k: torch.tensor(mask) for k, mask in masks.items()}, **flags
    )
    cotangent = draw.standard_normal(right.shape).astype("float32")
    (right * torch.tensor(cotangent)).sum().backward()
    require_close(ours(*inputs, **masks, **flags), right.detach().numpy(), 3e-6, "outputs")
    ops.backward(lambda: ops.sum(ops.multiply(ours(*inputs, **masks, **flags), cotangent)), ours)
    ours_by_name = dict(ours.named_parameters())
    for name, parameter in theirs.named_parameters():
        require_close(ours_by_name[name].grad, parameter.grad.numpy(), 1e-5, f"gradient by {name}")


def _encoder(layers: Any) -> Any:
    return layers.TransformerEncoder(layers.TransformerEncoderLayer(8, 2, 12, 0.0), 2)


def _encoder_with_norm(layers: Any) -> Any:
    layer = layers.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=True)
    return layers.TransformerEncoder(layer, num_layers=2, norm=layers.LayerNorm(8))


def _decoder(layers: Any) -> Any:
    return layers.TransformerDecoder(layers.TransformerDecoderLayer(8, 2, 12, 0.0), 2)


def _decoder_with_norm(layers: Any) -> Any:
    layer = layers.TransformerDecoderLayer(8, 2, 12, 0.0, norm_first=True)
    return layers.TransformerDecoder(layer, num_layers=2, norm=layers.LayerNorm(8))


def _transformer(layers: Any) -> Any:
    return layers.Transformer(8, 2, 1, 1, 12, 0.0)


def _custom(layers: Any) -> Any:
    return layers.Transformer(8, 2, custom_encoder=_encoder(layers), custom_decoder=_decoder(layers))


ALL: dict[str, Any] = {
    "src_key_padding_mask": PADDED,
    "tgt_mask": LATER,
    "memory_mask": SEEN,
    "memory_key_padding_mask": PADDED,
    "tgt_key_padding_mask": PADDED[:, :4],
}
STACKS: list[tuple[Any, Any, Any, Any]] = [
    (_encoder, [TGT], {}, {}),
    (_encoder, [TGT], {"mask": LATER}, {"is_causal": True}),
    (_encoder, [SRC], {"src_key_padding_mask": PADDED}, {}),
    (_encoder_with_norm, [ROWS], {"mask": LATER, "src_key_padding_mask": PADDED[:, :4]}, {}),
    (_decoder, [TGT, SRC], {}, {}),
    (_decoder, [TGT, SRC], {"tgt_mask": LATER, "memory_mask": SEEN}, {"tgt_is_causal": True}),
    (_decoder_with_norm, [TGT, SRC], {k: ALL[k] for k in ALL if k != "src_key_padding_mask"}, {}),
    (_transformer, [SRC, TGT], ALL, {}),
    (_transformer, [TGT, TGT], {"src_mask": LATER, "tgt_mask": LATER}, {"src_is_causal": True, "tgt_is_causal": True}),
    (_custom, [SRC, TGT], {"tgt_mask": LATER}, {}),
]


@pytest.mark.parametrize(("make", "shapes", "masks", "flags"), STACKS)
def test_stacks_and_masks_mean_what_those_of_torch_do(
    backend: str, make: Any, shapes: Any, masks: Any, flags: Any
) -> None:
    require_like(make, shapes, masks, flags)


def test_an_activation_may_be_a_function_or_a_module(backend: str) -> None:
    wanted = nn.TransformerEncoderLayer(8, 2, 12, 0.0, "relu")
    x = ops.random.normal(TGT)
    for activation in (ops.relu, nn.Lambda(ops.relu)):
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0, activation)
        layer.load_state_dict(wanted.state_dict())
        np.testing.assert_array_equal(ops.to_numpy(layer(x)), ops.to_numpy(wanted(x)))


def test_dropout_is_equal_on_every_backend_and_differs_between_layers(backend: str) -> None:
    def outputs() -> Any:
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.5, rng=nn.Rngs(1))
        net = nn.TransformerEncoder(layer, 2)
        x = ops.ones(TGT)
        drawn = [one.dropout(ops.ones((4, 4))) for one in net.layers]
        return [ops.to_numpy(y) for y in (net(x), net(x), net.eval()(x), *drawn)]

    found = outputs()
    with ops.use_backend("numpy"):
        right = outputs()
    for mine, wanted in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, wanted, atol=3e-6)
    assert abs(found[0] - found[1]).max() > 1e-3
    assert abs(found[0] - found[2]).max() > 1e-3
    assert (found[3] != found[4]).any()


def test_layers_that_are_computed_again_drop_the_same_elements(backend: str) -> None:
    x = ops.convert_to_tensor(np.random.default_rng(0).standard_normal(TGT).astype("float32"))
    found = []
    for wrapped in (nn.Sequential, nn.Remat):
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.5, norm_first=True, rng=nn.Rngs(1))
        module = wrapped(layer)
        ops.backward(lambda module=module: ops.sum(ops.square(module(x))), layer)
        found.append([ops.to_numpy(parameter.grad) for parameter in layer.parameters()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * abs(one).max())


def test_the_layers_of_a_stack_have_parameters_of_their_own(backend: str) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12)
    net = nn.TransformerEncoder(layer, 2)
    assert len(net.parameters()) == 2 * len(layer.parameters())
    first, second = (one.linear1.weight.value for one in net.layers)
    np.testing.assert_array_equal(ops.to_numpy(first), ops.to_numpy(second))
    made = nn.Transformer(8, 2, 2, 0 + 1, 12)
    first, second = (one.linear1.weight.value for one in made.encoder.layers)
    assert (ops.to_numpy(first) != ops.to_numpy(second)).any()
    assert abs(ops.to_numpy(first)).max() <= np.sqrt(6 / 20)


def test_decoding_step_by_step_equals_the_whole_sequence(backend: str) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=True)
    net = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval()
    x = ops.random.normal((1, 4, 8))
    whole = ops.to_numpy(net(x, is_causal=True))
    caches = [nn.KVCache() for _ in net.layers]
    for t in range(4):
        found = ops.to_numpy(net(x[:, t : t + 1], is_causal=True, caches=caches))
        np.testing.assert_allclose(found[:, 0], whole[:, t], atol=4e-6)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, batch_first=True), 2).eval()
    memory = ops.random.normal((1, 5, 8))
    whole = ops.to_numpy(decoder(x, memory, tgt_is_causal=True))
    caches = [nn.KVCache() for _ in decoder.layers]
    for t in range(4):
        found = ops.to_numpy(decoder(x[:, t : t + 1], memory, tgt_is_causal=True, caches=caches))
        np.testing.assert_allclose(found[:, 0], whole[:, t], atol=4e-6)
    with pytest.raises(ArgumentError, match="expected 2 caches, one for each layer, got 1"):
        net(x, caches=caches[:1])


def test_the_mask_of_later_keys_is_that_of_torch(backend: str) -> None:
    found = ops.to_numpy(nn.Transformer.generate_square_subsequent_mask(4))
    np.testing.assert_array_equal(found, torch.nn.Transformer.generate_square_subsequent_mask(4).numpy())


def test_copies_of_stacks_compute_the_same(backend: str) -> None:
    net = nn.Transformer(8, 2, 1, 1, 12, activation="gelu").eval()
    src, tgt = ops.random.normal(SRC), ops.random.normal(TGT)
    right = ops.to_numpy(net(src, tgt))
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(ops.to_numpy(copied(src, tgt)), right)
        assert repr(copied) == repr(net)


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "TransformerEncoderLayer", (8, 2, 12), ((3, 2, 8),), {"activation": "gelu", "norm_first": True}, train=False
        ),
        Case("TransformerDecoderLayer", (8, 2, 12), ((2, 2, 8), (3, 2, 8)), {"norm_first": True}, train=False),
    ],
    ids=str,
)
def test_layers_behave_as_layers(backend: str, case: Case) -> None:
    require_behaviours(backend, case)


def test_wrong_inputs_name_the_layer_and_the_shapes_that_fit(backend: str) -> None:
    net = nn.Transformer(8, 2, 1, 1, 12)
    with pytest.raises(ShapeError, match=r"src and tgt with the same batch on axis 1, got \(5, 2, 8\) and \(4, 3, 8\)"):
        net(ops.zeros(SRC), ops.zeros((4, 3, 8)))
    with pytest.raises(ShapeError, match=r"in encoder\.layers\.0\.self_attn of Transformer, a MultiheadAttention"):
        net(ops.zeros((5, 2, 6)), ops.zeros((4, 2, 6)))
    with pytest.raises(ShapeError, match=r"in decoder\.layers\.0\.self_attn of Transformer"):
        net(ops.zeros(SRC), ops.zeros(TGT), tgt_mask=np.zeros((3, 3), bool))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="embed_dim, 8, must be a multiple of num_heads, 3"):
        nn.TransformerEncoderLayer(8, 3)
    with pytest.raises(ArgumentError, match=r"activation must be one of 'relu', 'gelu', got 'rely'.*relu"):
        nn.TransformerEncoderLayer(8, 2, activation="rely")
    with pytest.raises(ArgumentError, match="dim_feedforward must be at least 1, got 0"):
        nn.TransformerDecoderLayer(8, 2, 0)
    with pytest.raises(ArgumentError, match="num_layers must be at least 1, got 0"):
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12), 0)
