"""Wrong inputs and options: each raises a typed error that names the layer in its model, what was given and wanted."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, IndexOutOfBoundsError, ShapeError, UninitializedParameterError


class Net(nn.Module):
    """A model with a layer at `blocks.1`."""

    def __init__(self, layer: Any) -> None:
        self.blocks = [nn.Identity(), layer]

    def __call__(self, *inputs: Any) -> Any:
        return self.blocks[1](*inputs)


class Making(nn.Module):
    """A model that makes a layer in its constructor."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        self.layer = make()


THREE = [(5, 2, 6), (5, 2, 8), (5, 2, 8)]
INPUTS: list[tuple[nn.Module, list[Any], str, str]] = [
    (nn.Linear(3, 4), [(2, 5)], "(2, 5)", "(4, 3)"),
    (nn.Bilinear(3, 4, 2), [(5, 6), (5, 4)], "(5, 6)", "(..., 3)"),
    (nn.Conv1d(3, 4, 3), [(1, 6, 8)], "(1, 6, 8)", "3 channels"),
    (nn.Conv2d(3, 4, 3), [(1, 6, 8, 8)], "(1, 6, 8, 8)", "3 channels"),
    (nn.Conv3d(3, 4, 1), [(1, 6, 2, 2, 2)], "(1, 6, 2, 2, 2)", "3 channels"),
    (nn.Conv2d(3, 4, 3, data_format="channels_last"), [(1, 3, 8, 8)], "(1, 3, 8, 8)", "3 channels"),
    (nn.Conv2d(4, 4, 3, groups=2), [(1, 2, 8, 8)], "(1, 2, 8, 8)", "4 channels"),
    (nn.DepthwiseConv2d(3, 3), [(1, 6, 8, 8)], "(1, 6, 8, 8)", "3 channels"),
    (nn.ConvTranspose2d(3, 4, 3), [(1, 6, 8, 8)], "(1, 6, 8, 8)", "3 channels"),
    (nn.BatchNorm2d(3), [(2, 6, 8, 8)], "(2, 6, 8, 8)", "3 channels"),
    (nn.InstanceNorm2d(3, affine=True), [(2, 6, 8, 8)], "(2, 6, 8, 8)", "3 channels"),
    (nn.GroupNorm(3, 6), [(2, 5, 8)], "(2, 5, 8)", "6 channels"),
    (nn.LayerNorm(5), [(2, 6)], "(2, 6)", "(5,)"),
    (nn.RMSNorm(5), [(2, 6)], "(2, 6)", "(5,)"),
    (nn.PReLU(5), [(2, 6)], "(2, 6)", "5 channels"),
    (nn.LSTM(3, 4), [(5, 2, 6)], "(5, 2, 6)", "(time, batch, 3)"),
    (nn.GRUCell(3, 4), [(2, 6)], "(2, 6)", "(12, 3)"),
    (nn.MultiheadAttention(8, 2), THREE, "(5, 2, 6)", "(queries, batch, 8)"),
    (nn.RoPE(6), [(2, 3, 5)], "at most 5", "got 6"),
    (nn.BatchNorm1d(3), [(1, 3)], "(1, 3)", "more than one value for each channel"),
    (nn.BatchNorm2d(3), [(1, 3, 1, 1)], "(1, 3, 1, 1)", "more than one value for each channel"),
    (nn.InstanceNorm1d(3), [(2, 3, 1)], "(2, 3, 1)", "more than one value for each sample"),
]
"""A layer, the shapes of wrong inputs, and what the message says was given and wanted."""

OPTIONS: list[tuple[str, Callable[[], nn.Module], str]] = [
    ("Conv2d", lambda: nn.Conv2d(3, 4, 3, groups=2), "groups=2 does not divide in_channels=3"),
    ("Conv1d", lambda: nn.Conv1d(4, 3, 3, groups=2), "groups=2 does not divide out_channels=3"),
    ("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 3, 3, groups=2), "groups=2 does not divide out_channels=3"),
    ("GroupNorm", lambda: nn.GroupNorm(4, 6), "num_groups must divide num_channels, got 4 and 6"),
    ("MultiheadAttention", lambda: nn.MultiheadAttention(8, 3), "embed_dim, 8, must be a multiple of num_heads, 3"),
    ("MultiheadAttention", lambda: nn.TransformerEncoderLayer(8, 3), "embed_dim, 8, must be a multiple of num_heads"),
    (
        "MultiheadAttention",
        lambda: nn.MultiHeadAttention(8, 4, num_kv_heads=3),
        "num_heads, 4, must be a multiple of num_kv_heads, 3",
    ),
    ("RoPE", lambda: nn.RoPE(5), "dims must be even, because the features form pairs, got 5"),
    (
        "SinusoidalPositionalEncoding",
        lambda: nn.SinusoidalPositionalEncoding(5),
        "dims must be even, because the features form pairs, got 5",
    ),
    ("Conv2d", lambda: nn.Conv2d(3, 4, 3, 2, "same"), "padding='same' needs stride 1, got (2, 2)"),
]
"""The class, a constructor with a wrong option, and the message."""


def test_inputs_of_wrong_shapes_name_the_layer(backend: str) -> None:
    faults = []
    for layer, shapes, given, wanted in INPUTS:
        kind = type(layer).__name__
        with pytest.raises(ShapeError) as raised:
            Net(layer)(*(ops.zeros(shape) for shape in shapes))
        text = str(raised.value)
        if not (given in text and wanted in text and "(in blocks.1 of Net, a" in text and f" {kind})" in text):
            faults.append(f"{kind}: {text}")
    assert not faults, "\n".join(faults)


def test_a_part_of_a_layer_is_named_by_its_path(backend: str) -> None:
    with pytest.raises(ShapeError, match=r"in blocks\.1\.self_attn of Net, a MultiheadAttention"):
        Net(nn.TransformerEncoderLayer(8, 2, 12))(ops.zeros((5, 2, 6)))
    with pytest.raises(ShapeError, match=r"in blocks\.1\.layers\.0\.self_attn of Net, a MultiheadAttention"):
        Net(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12), 2))(ops.zeros((5, 2, 6)))


def test_wrong_options_name_the_class_and_the_model_that_makes_it() -> None:
    for kind, make, message in OPTIONS:
        with pytest.raises(ArgumentError) as raised:
            make()
        assert f"(in {kind}" in str(raised.value)
        with pytest.raises(ArgumentError) as raised:
            Making(make)
        assert message in str(raised.value)
        assert f"(in {kind} of Making)" in str(raised.value)


def test_an_index_that_is_out_of_range_names_the_layer(backend: str) -> None:
    net = Net(nn.Embedding(5, 3))
    for wrong, index in (([1, 7], 7), (np.array([1, -7]), -7)):  # values that the host knows
        with pytest.raises(IndexOutOfBoundsError, match=rf"index {index} .*5.* \(in blocks\.1 of Net, an Embedding\)"):
            net(wrong)
    for layer, indices in ((nn.Embedding(5, 3), [1, 7]), (nn.EmbeddingBag(5, 3), [[1, 7]])):
        kind = type(layer).__name__
        with ops.checked(), pytest.raises(IndexOutOfBoundsError, match=rf"index 7 .*5.*blocks\.1 of Net, an {kind}\)"):
            Net(layer)(ops.convert_to_tensor(indices))


def test_a_layer_without_shapes_is_named_by_each_use(backend: str) -> None:
    net = Net(nn.Linear(None, 4))
    for use, place in (
        (lambda: net(ops.zeros((2, 3))), "in blocks.1 of Net, a Linear"),
        (net.state_dict, "blocks.1.weight of Net"),
        (lambda: net.load_state_dict({"blocks.1.weight": [[1.0]], "blocks.1.bias": [1.0]}), "blocks.1.weight of Net"),
        (lambda: ops.backward(lambda: ops.sum(net(ops.zeros((2, 3)))), net), "a parameter of a layer Linear"),
    ):
        with pytest.raises(UninitializedParameterError) as raised:
            use()
        assert place in str(raised.value)
        assert "call nn.build(model, example)" in str(raised.value)


def test_a_shared_parameter_has_both_names(backend: str) -> None:
    net = Net(nn.Linear(2, 2))
    net.blocks[0] = nn.Linear(2, 2)
    net.blocks[0].weight = net.blocks[1].weight
    assert [*net.state_dict()] == ["blocks.0.weight", "blocks.0.bias", "blocks.1.weight", "blocks.1.bias"]
    assert [name for name, _ in net.named_parameters()] == ["blocks.0.weight", "blocks.0.bias", "blocks.1.bias"]
    values = {**net.state_dict(), "blocks.0.weight": ops.zeros((2, 2))}
    with pytest.raises(KeyError, match=r"blocks\.1\.weight: is the same parameter as another name, whose value diff"):
        net.load_state_dict(values)
    values["blocks.1.weight"] = ops.zeros((2, 2))
    assert len(net.load_state_dict(values).loaded) == 4


def test_a_model_that_contains_itself_is_refused(backend: str) -> None:
    net = Net(nn.Linear(2, 2))
    net.blocks.append(net)
    for use in (net.parameters, net.state_dict, net.train, net.summary, lambda: net.freeze("blocks.1")):
        with pytest.raises(ArgumentError, match=r"Net contains itself: blocks\.2 is Net again; keep references"):
            use()
    assert "(blocks.2): ..." in repr(net)
    with pytest.raises(ShapeError, match=r"\(2, 5\).*\(2, 2\).*a Linear\)"):
        net(ops.zeros((2, 5)))


@pytest.mark.fresh_process
def test_bfloat16_on_numpy_without_ml_dtypes_says_what_to_install() -> None:
    code = """
import sys
sys.modules["ml_dtypes"] = None
from emberharmony import nn, ops
from emberharmony.errors import DTypeError
ops.set_backend("numpy")
for use in (
    lambda: nn.Linear(2, 3).to(dtype="bfloat16"),
    lambda: nn.Linear(2, 3, dtype="bfloat16"),
    lambda: ops.autocast("bfloat16").__enter__(),
):
    try:
        use()
    except DTypeError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    wanted = 'bfloat16 in NumPy needs ml_dtypes: pip install "emberharmony[bfloat16]"'
    assert all(wanted in line for line in lines), done.stdout
