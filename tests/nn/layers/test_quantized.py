"""Quantised layers on every backend: values, transforms, files, models that are quantised and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours, require_compiled
from tests.nn.oracle import Case, require_close

X = np.random.default_rng(0).standard_normal((2, 64)).astype("float32")


def _net() -> Any:
    rng = ops.random.Generator(0)
    inner = [nn.Linear(64, 64, rng=rng), nn.Linear(64, 32, bias=False, rng=rng)]
    return nn.Sequential(nn.Embedding(10, 64, rng=rng), nn.ReLU(), nn.Sequential(*inner))


CASES = [
    Case("QuantizedLinear", (64, 4), ((2, 64),), {"bits": 8}, train=False),
    Case("QuantizedLinear", (64, 4), ((2, 64),), {"bias": False, "group_size": 32}, train=False),
    Case("QuantizedEmbedding", (6, 64), (np.array([[0, 5, 2], [1, 1, -1]]),), train=False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_stay_the_same_under_transforms_and_copies(backend: str, case: Case) -> None:
    require_behaviours(backend, case, compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_layers_compute_the_same(backend: str, case: Case) -> None:
    require_compiled(backend, case)


@pytest.mark.parametrize("bits", [4, 8])
def test_layers_compute_with_the_quantised_values(backend: str, bits: int) -> None:
    base = nn.Linear(64, 4)
    layer = nn.QuantizedLinear.from_linear(base, bits=bits)
    values = ops.to_numpy(ops.dequantize(*ops.quantize(base.weight, bits=bits), bits=bits)).astype("float64")
    require_close(layer(X), X @ values.T + ops.to_numpy(base.bias.value), 2e-6, "QuantizedLinear")
    require_close(layer.dequantized()(X), X @ values.T + ops.to_numpy(base.bias.value), 2e-6, "dequantized")
    assert layer.bias is base.bias
    assert [name for name, _ in layer.named_parameters(trainable=True)] == ["bias"]
    assert [name for name, _ in layer.named_buffers()] == ["weight"]
    table = nn.QuantizedEmbedding.from_embedding(nn.Embedding.from_pretrained(base.weight), bits=bits)
    require_close(table([3, 0]), values[[3, 0]], 2e-6, "QuantizedEmbedding")
    require_close(table.as_linear(X), X @ values.T, 2e-6, "as_linear")
    assert repr(table) == f"QuantizedEmbedding(4, 64{', bits=8' if bits == 8 else ''})"


def test_scales_and_biases_are_trained_on_demand(backend: str) -> None:
    layer = nn.QuantizedLinear(64, 4).unfreeze("scales", "biases")
    assert set(nn.value_and_grad(layer, lambda: ops.sum(ops.square(layer(X))))()[1]) == {"scales", "biases", "bias"}


@pytest.mark.parametrize(("bits", "share"), [(4, 0.15), (8, 0.01)])
def test_a_model_is_quantised_in_place_with_the_expected_error(backend: str, bits: int, share: float) -> None:
    net, other = _net(), _net()
    tokens = [1, 7]
    right = ops.to_numpy(net(tokens))
    errors = nn.quantization_error(net, bits=bits)
    found = nn.quantize(net, bits=bits)
    assert list(found) == list(errors) == ["0", "2.0", "2.1"]
    assert [type(layer).__name__ for layer in found.values()] == ["QuantizedEmbedding", *["QuantizedLinear"] * 2]
    assert net[2][1] is found["2.1"]
    assert abs(ops.to_numpy(net(tokens)) - right).max() <= 2 * share * abs(right).max()
    before = other.state_dict(host=True)
    back = nn.dequantize(net)
    assert list(back) == list(found)
    for name, error in errors.items():
        difference = net.state_dict(host=True)[f"{name}.weight"] - before[f"{name}.weight"]
        assert abs(difference).max() == pytest.approx(error.largest, rel=1e-5)
        assert 0.0 < error.relative < share
    assert all(parameter.trainable for parameter in net.parameters())


def test_the_documented_error_is_that_of_normal_weights(backend: str) -> None:
    net = nn.Sequential(nn.Embedding(256, 256, rng=ops.random.Generator(0)))
    found = [nn.quantization_error(net, bits=bits)["0"].relative for bits in (4, 8)]
    assert found == pytest.approx([0.09, 0.005], rel=0.15)
    assert nn.quantization_error(nn.Sequential(nn.Embedding.from_pretrained(ops.zeros((2, 64))))) == {"0": (0.0, 0.0)}


def test_a_predicate_a_shared_layer_and_lora(backend: str) -> None:
    shared = nn.Linear(64, 64)
    net: Any = nn.Sequential(shared, nn.Sequential(shared), nn.Linear(64, 3))
    found = nn.quantize(net, group_size=32, where=lambda name, layer: layer.out_features != 3)
    assert list(found) == ["0", "1.0"]
    assert net[0] is net[1][0]
    assert type(net[2]) is nn.Linear
    tuned: Any = nn.Sequential(nn.LoRALinear(64, 64), nn.Linear(64, 3))
    assert list(nn.quantize(tuned)) == ["1"]


def test_a_quantised_model_is_saved_and_loaded(backend: str, tmp_path: Path) -> None:
    net, other = _net(), _net()
    nn.quantize(net, bits=8)
    io.save(net.state_dict(), tmp_path / "net.safetensors")
    nn.quantize(other, bits=8)
    for cell in other.parameters():
        cell.value = ops.zeros_like(cell.value)
    other.load_state_dict(io.load(tmp_path / "net.safetensors"))
    assert ops.to_numpy(other([1, 7])).tolist() == ops.to_numpy(net([1, 7])).tolist()
    names = ["0.weight", "0.scales", "0.biases", "2.0.weight", "2.0.scales", "2.0.biases", "2.0.bias"]
    assert set(net.state_dict()) == {*names, "2.1.weight", "2.1.scales", "2.1.biases"}


@pytest.mark.parametrize("bits", [4, 8])
def test_mlx_nn_reads_and_writes_the_same_files(backend: str, bits: int, tmp_path: Path) -> None:
    mx, theirs = pytest.importorskip("mlx.core"), pytest.importorskip("mlx.nn")
    layer, table = nn.QuantizedLinear(64, 8, bits=bits), nn.QuantizedEmbedding(8, 64, bits=bits)
    linear, embedding = theirs.QuantizedLinear(64, 8, bits=bits), theirs.QuantizedEmbedding(8, 64, bits=bits)
    for ours, other, name in ((layer, linear, "linear"), (table, embedding, "table")):
        path = str(tmp_path / f"{name}.safetensors")
        io.save(ours.state_dict(layout="mlx"), path)
        other.load_weights(path)
        again = type(ours)(*((64, 8) if ours is layer else (8, 64)), bits=bits)
        other.save_weights(path)
        again.load_state_dict(io.load(path), layout="mlx")
        assert {k: v.tolist() for k, v in again.state_dict().items()} == {
            k: v.tolist() for k, v in ours.state_dict().items()
        }
    require_close(layer(X), np.array(linear(mx.array(X))), 2e-6, "mlx.nn.QuantizedLinear")
    require_close(table([1, 5]), np.array(embedding(mx.array([1, 5]))), 0.0, "mlx.nn.QuantizedEmbedding")
    require_close(table.as_linear(X), np.array(embedding.as_linear(mx.array(X))), 2e-6, "as_linear")


def test_wrong_models_are_refused_and_stay_as_they_are(backend: str) -> None:
    net: Any = nn.Sequential(nn.Linear(64, 33), nn.Sequential(nn.Linear(33, 2)))
    for function in (nn.quantize, nn.quantization_error):
        with pytest.raises(ShapeError, match=r"1\.0, Linear: .*group_size 64 divides, got shape \(2, 33\).*`where`"):
            function(net)
    assert type(net[0]) is nn.Linear
    with pytest.raises(ArgumentError, match="bits must be 4 or 8, got 5"):
        nn.quantize(net, bits=5)
    with pytest.raises(ArgumentError, match=r"no linear layer or embedding to quantise; it has 0, 1\.0"):
        nn.quantize(net, where=lambda name, layer: False)
    with pytest.raises(ArgumentError, match=r"call nn\.QuantizedLinear\.from_linear"):
        nn.quantize(net[0])
    with pytest.raises(ArgumentError, match="Sequential has no quantised layer"):
        nn.dequantize(net)
    with pytest.raises(ShapeError, match="group_size 64 divides"):
        nn.QuantizedLinear(33, 2)
    held: Any = nn.Lambda(lambda x: x)
    held.parts = (nn.Linear(64, 2),)
    with pytest.raises(ArgumentTypeError, match=r"parts\.0 is in a tuple"):
        nn.quantize(held)
