"""Quantised layers on every backend: values, transforms, files, models that are quantised and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops
from emberharmony.core import selection
from emberharmony.core.cells.forms import layout_of
from emberharmony.errors import ArgumentError, ArgumentTypeError, IndexOutOfBoundsError, ShapeError
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
    layer = nn.QuantizedLinear(128, 2)
    layer(ops.zeros((1, 128)))
    with pytest.raises(ShapeError, match=r"x of shape \(\.\.\., 128\) for a quantised matrix .*got \(2, 64\)"):
        layer(ops.zeros((2, 64)))
    held: Any = nn.Lambda(lambda x: x)
    held.parts = (nn.Linear(64, 2),)
    with pytest.raises(ArgumentTypeError, match=r"parts\.0 is in a tuple"):
        nn.quantize(held)


def _layout(layer: Any) -> Any:
    cells = (layer.weight, layer.scales, layer.biases)
    return layout_of(cells, selection.active().backend.home)


@pytest.mark.parametrize(("bits", "group_size"), [(4, 32), (4, 64), (4, 128), (8, 32), (8, 64)])
def test_any_number_of_rows_and_vectors(backend: str, bits: int, group_size: int) -> None:
    columns = 3 * group_size
    for rows in (1, 3, 37, 130):
        layer = nn.QuantizedLinear(columns, rows, bias=False, bits=bits, group_size=group_size)
        words = layer.weight.value.tolist()
        values = ops.to_numpy(layer._dequantized_weight()).astype("float64")
        for leading_axes in ((), (1,), (0,), (2, 1), (5,), (70,)):
            shape = (*leading_axes, columns)
            drawn = ops.convert_to_tensor(np.random.default_rng(rows).standard_normal(shape).astype("float32"))
            for x in (drawn, ops.broadcast_to(ops.ones(()), shape)):  # which repeats one element in memory
                host = ops.to_numpy(x).astype("float64")
                found, size = ops.to_numpy(layer(x)), abs(host) @ abs(values.T)
                assert found.shape == size.shape
                assert (abs(found - host @ values.T) <= 4e-6 * size).all(), (rows, shape)
        assert (_layout(layer) is not None) == (backend == "torch")
        assert layer.weight.value.tolist() == words


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes_than_float32(backend: str, dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2e-6}[dtype]
    layer = nn.QuantizedLinear(64, 5, bias=False, dtype=dtype if dtype != "float64" else None)
    values = ops.to_numpy(ops.cast(layer._dequantized_weight(), "float64"))
    for shape in ((1, 64), (7, 64)):
        x = ops.cast(np.random.default_rng(0).standard_normal(shape).astype("float32"), dtype)
        found = layer(x)
        assert ops.dtype(found).name == dtype
        require_close(ops.cast(found, "float64"), ops.to_numpy(ops.cast(x, "float64")) @ values.T, eps, dtype)


def test_gradients_flow_to_the_inputs_and_to_scales_on_demand_after_products(backend: str) -> None:
    layer = nn.QuantizedLinear(64, 5, bias=False)
    values, x = ops.to_numpy(layer._dequantized_weight()), ops.convert_to_tensor(X)
    layer(x)

    def loss(x: Any) -> Any:
        return ops.sum(ops.square(layer(x)))

    wanted = 2 * X @ values.T @ values
    require_close(ops.grad(loss)(x), wanted, 2e-6, "gradient")
    require_close(ops.vmap(ops.grad(loss))(x), wanted, 2e-6, "mapped gradient")
    require_close(ops.jvp(loss, (x,), (x,))[1], (wanted * X).sum(), 2e-6, "jvp")
    second = ops.grad(lambda x: ops.sum(ops.grad(loss)(x)))(x)
    require_close(second, 2 * (values.T @ values).sum(0) + 0 * X, 4e-6, "second")
    layer(x)
    layer.unfreeze("scales", "biases")
    ops.backward(lambda: loss(x), layer)
    require_close(layer.biases.grad, (2 * X @ values.T).T @ X.sum(-1, keepdims=True), 4e-6, "biases")


def test_a_table_that_is_multiplied_and_looked_up(backend: str) -> None:
    table = nn.QuantizedEmbedding(7, 64)
    rows = ops.to_numpy(table(list(range(7))))
    assert tuple(table([]).shape) == (0, 64)
    for x in (X, X[:1]):
        require_close(table.as_linear(ops.convert_to_tensor(x)), x @ rows.T, 2e-6, "as_linear")
        assert ops.to_numpy(table([[3, -1], [0, 6]])).tolist() == rows[[[3, 6], [0, 6]]].tolist()
        assert (_layout(table) is not None) == (backend == "torch")
    with pytest.raises(IndexOutOfBoundsError):
        table([7])


def test_the_layout_of_a_kernel_takes_the_memory_of_the_words() -> None:
    pytest.importorskip("torch")
    with ops.use_backend("torch"):
        for bits in (4, 8):
            layer = nn.QuantizedLinear(256, 256, bias=False, bits=bits)
            file = sum(ops.to_numpy(tensor).nbytes for tensor in layer.state_dict().values())
            layer(ops.zeros((1, 256)))
            kept = sum(cell.value.nbytes for cell in (layer.scales, layer.biases)) + _layout(layer).nbytes
            assert kept <= 1.05 * file
