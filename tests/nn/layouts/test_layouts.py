"""The layouts of MLX and Keras: rows for all layers, and layers of both libraries that load what we write."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops
from emberharmony.nn.layouts.table import TABLE, layouts_of
from tests.nn import keras_layers
from tests.nn.layout_cases import CASES, Case, last, output, require_close

_OTHERS = "KVCache Lambda Module ModuleDict ModuleList ParameterDict ParameterList Remat Repeat Residual"
WITHOUT_TENSORS = set(
    " ".join(
        (
            _OTHERS,
            "CELU ELU GEGLU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh Heaviside LeakyReLU LogSigmoid",
            "LogSoftmax Mish RReLU ReLU ReLU2 ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus",
            "Softshrink Softsign SwiGLU Tanh Tanhshrink Threshold AlphaDropout DropPath Dropout Dropout1d",
            "Dropout2d Dropout3d FeatureAlphaDropout GaussianDropout GaussianNoise Identity LocalResponseNorm",
            "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d",
            "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d",
            "ZeroPad2d ZeroPad3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d",
            "AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d GlobalAvgPool GlobalMaxPool",
            "LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d ALiBi",
            "RoPE SinusoidalPositionalEncoding ChannelShuffle DataParallel Flatten Fold Permute PixelShuffle",
            "PixelUnshuffle",
            "Reshape Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d",
        )
    ).split()
)
"""The classes that have no tensors of their own, and containers whose names are the same everywhere."""

OTHERS = ("mlx", "keras")


def classes() -> list[Any]:
    found = [getattr(nn, name) for name in nn.__all__]
    return [each for each in found if inspect.isclass(each) and issubclass(each, nn.Module)]


def omission(layer: type[Any]) -> str:
    """Returns what is to be done about a class of layers that has no layouts, or two; "" if there is nothing."""
    listed, row = layer.__name__ in WITHOUT_TENSORS, layouts_of(layer)
    if row is None and not listed:
        return (
            f"nn.{layer.__name__} has no layouts. If it has parameters or buffers of its own, add its rows for mlx.nn "
            f"and keras.layers to TABLE of emberharmony/nn/layouts/table.py (SAME if there is no such layer), and a "
            f"case to tests/nn/layout_cases.py; else name it in WITHOUT_TENSORS of tests/nn/layouts/test_layouts.py"
        )
    if row is not None and listed:
        return (
            f"nn.{layer.__name__} is both in TABLE of emberharmony/nn/layouts/table.py and in WITHOUT_TENSORS of "
            f"tests/nn/layouts/test_layouts.py: remove it from one of them"
        )
    return ""


def test_each_layer_is_in_the_table_or_in_the_list_of_those_without_tensors() -> None:
    omissions = [found for each in classes() if (found := omission(each))]
    assert not omissions, "\n".join(omissions)
    names = {each.__name__ for each in classes()} | {"Loss"}
    assert names >= set(TABLE)
    assert names >= set(WITHOUT_TENSORS)
    assert {case.name for case in CASES} >= set(TABLE) - {
        *("Loss", "TransformerEncoder", "TransformerDecoder"),  # the last two are parts of Transformer
        *("QuantizedLinear", "QuantizedEmbedding"),  # test_quantized.py loads them into those of mlx.nn
    }


def test_an_omission_says_what_to_do() -> None:
    class Gain(nn.Module):
        """Has no row."""

    assert omission(Gain).startswith("nn.Gain has no layouts. If it has parameters")
    assert "emberharmony/nn/layouts/table.py" in omission(Gain)
    assert omission(nn.Linear) == omission(nn.ReLU) == ""
    both = type("ReLU", (nn.Linear,), {})
    assert omission(both).startswith("nn.ReLU is both in TABLE of")


def test_tensors_come_back_from_each_layout(backend: str) -> None:
    for case in CASES if backend == "numpy" else CASES[::9]:  # all backends run the same conversions
        require_round_trip(case)


def require_round_trip(case: Case) -> None:
    """Checks that a layer that reads what another one has written has its tensors, and computes the same."""
    layer = case.made()
    before, x = layer.state_dict(host=True), case.inputs()
    right = output(layer, x) if not last(case) else None
    for layout in OTHERS:
        there = layer.state_dict(layout=layout)
        read = case.fresh()
        loaded = read.load_state_dict(there, layout=layout)
        assert not loaded.missing
        assert not loaded.unexpected
        assert loaded.loaded == list(before)
        found = read.state_dict(host=True)
        for name, value in before.items():
            first = name.replace("bias_hh", "bias_ih")
            if "bias_ih" in first and first != name.replace("bias_ih", "bias_hh"):
                second = first.replace("bias_ih", "bias_hh")  # the others have only the sum
                assert np.allclose(found[first] + found[second], before[first] + before[second])
            elif not name.endswith("num_batches_tracked"):
                assert np.array_equal(found[name], value), (layout, name)
        if right is not None:
            require_close(output(read, x), right, f"{case}, {layout}")
        again = read.state_dict(host=True, layout=layout)
        assert list(again) == list(there)
        assert all(np.array_equal(again[name], ops.to_numpy(there[name])) for name in there)


def test_each_way_to_a_layout_gives_the_same(backend: str) -> None:
    net = nn.ModuleDict({f"{place}": case.made() for place, case in enumerate(CASES[::6])})
    direct = {layout: net.state_dict(layout=layout) for layout in ("torch", *OTHERS)}
    for source in OTHERS:
        for layout in OTHERS:
            found = net.convert_state_dict(direct[source], source=source, layout=layout)
            assert list(found) == list(direct[layout])
            for name, x in found.items():
                if "bias" in name and layout != "mlx":
                    continue  # in MLX two biases are one
                close = np.allclose if layout == "mlx" else np.array_equal
                assert close(ops.to_numpy(x), ops.to_numpy(direct[layout][name])), (source, layout, name)


def test_weights_move_to_mlx_without_a_file() -> None:
    layers: Any = pytest.importorskip("mlx.nn")
    with ops.use_backend("mlx"):
        layer, theirs = nn.Conv1d(3, 4, 2, data_format="channels_last"), layers.Conv1d(3, 4, 2)
        theirs.load_weights(list(layer.state_dict(layout="mlx").items()), strict=True)
        x = ops.ones((1, 5, 3))
        require_close(ops.to_numpy(layer(x)), ops.to_numpy(theirs(x)), "Conv1d")


@pytest.mark.parametrize("case", [case for case in CASES if case.mlx is not None], ids=str)
def test_layers_of_mlx_load_and_save_the_same_layer(tmp_path: Path, case: Case) -> None:
    layers: Any = pytest.importorskip("mlx.nn")
    import mlx.core as mx

    assert case.mlx is not None
    path, x = str(tmp_path / "weights.safetensors"), case.inputs()
    with ops.use_backend("numpy"):
        layer = case.made(**last(case))
        io.save(layer, path, layout="mlx")
        theirs = case.mlx(layers).eval()
        theirs.load_weights(path, strict=True)
        given = [mx.array(each[:, None] if case.alone else each) for each in x]
        masks = {"TransformerEncoderLayer": 1, "TransformerDecoderLayer": 2, "Transformer": 3}.get(case.name, 0)
        found = theirs(*given, *[None] * masks)
        right = np.array(found[0] if isinstance(found, tuple) else found)
        right = right[:, 0] if case.alone else right
        require_close(output(layer, x), right, str(case))
        theirs.save_weights(path)
        read = case.made(**last(case))
        for parameter in read.parameters():
            parameter.value = ops.zeros_like(parameter.value)
        io.load_model(read, path, layout="mlx")
        require_close(output(read, x), right, str(case))


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("case", [case for case in CASES if case.torch], ids=str)
def test_layers_of_torch_load_files_that_were_in_another_layout(tmp_path: Path, case: Case) -> None:
    torch: Any = pytest.importorskip("torch")
    path, x = tmp_path / "weights.safetensors", case.inputs()
    with ops.use_backend("numpy"):
        layer = case.made(**last(case))
        right = output(layer, x)
    theirs = getattr(torch.nn, case.name)(*case.args, **case.kwargs).eval()
    channels = last(case) and len(case.shapes[0]) > 2
    given = [torch.tensor(np.moveaxis(each, -1, 1) if channels else each) for each in x]
    for layout in ("torch", *OTHERS):
        io.save(layer, path, layout=layout)
        io.convert(path, path, layout="torch", model=layer)
        theirs.load_state_dict(io.load(path, backend="torch"), strict=True)
        with torch.no_grad():
            found = theirs(*given)
        found = (found[0] if isinstance(found, tuple) else found).numpy()
        require_close(np.moveaxis(found, 1, -1) if channels else found, right, f"{case}, {layout}")


RECORDED = json.loads(keras_layers.RECORD.read_text(encoding="utf-8"))


def test_layers_compute_what_layers_of_keras_computed() -> None:
    assert list(RECORDED) == [str(case) for case in keras_layers.WITH_KERAS]
    with ops.use_backend("numpy"):
        for case in keras_layers.WITH_KERAS:
            layer, held = case.made(**last(case)), RECORDED[str(case)]
            there = layer.state_dict(layout="keras")
            assert {name: list(x.shape) for name, x in there.items()} == held["weights"], str(case)
            found = output(layer, case.inputs())
            assert list(found.shape) == held["shape"], str(case)
            right = np.array(held["elements"])
            assert np.abs(keras_layers.elements(found) - right).max() <= 1e-5 * np.abs(found).max(), str(case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Keras 3.15 on NumPy 2.4
@pytest.mark.parametrize("case", keras_layers.WITH_KERAS, ids=str)
def test_layers_of_keras_compute_the_same(case: Case) -> None:
    pytest.importorskip("keras")
    with ops.use_backend("numpy"):
        _, right = keras_layers.computed(case)
        require_close(output(case.made(**last(case)), case.inputs()), right, str(case))
