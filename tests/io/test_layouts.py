"""Files of models in the layouts of PyTorch, MLX and Keras: their tags, conversion, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    ShapeError,
    StateDictError,
    UninitializedParameterError,
    WeightFileError,
)

LAYOUTS = ("torch", "mlx", "keras")


def model() -> nn.Sequential:
    """Returns a model whose matrices are square, so that no shape says in which layout they are."""
    return nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(4, 4))


def state(net: nn.Module) -> dict[str, Any]:
    return net.state_dict(host=True)


def require_same(one: nn.Module, other: nn.Module) -> None:
    first, second = state(one), state(other)
    assert list(first) == list(second)
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(("layout", "shards"), [("torch", None), ("mlx", 100), ("keras", None)])
def test_a_model_is_read_in_the_layout_that_its_file_names(
    backend: str, tmp_path: Path, layout: str, shards: int | None
) -> None:
    net, read = model(), model()
    written = io.save(net, tmp_path / "a.safetensors", layout=layout, metadata={"epoch": "3"}, max_shard_size=shards)
    assert (len(written) > 1) is (shards is not None)
    with io.open(written[-1]) as file:
        assert file.metadata["layout"] == layout
        assert file.metadata["epoch"] == "3"
        assert file.metadata.get("format") == {"torch": "pt", "mlx": "mlx"}.get(layout)
    loaded = io.load_model(read, tmp_path)
    assert loaded.loaded == list(state(net))
    require_same(net, read)
    assert io.load(tmp_path, layout=layout).keys() == net.state_dict(layout=layout).keys()
    for other in LAYOUTS:
        if other != layout:
            with pytest.raises(WeightFileError, match=f"tag of the layout '{layout}', expected '{other}'") as caught:
                io.load_model(read, tmp_path, layout=other)
            assert caught.value.kind == "layout"
            assert caught.value.path.startswith(str(tmp_path))
            with pytest.raises(WeightFileError, match="tag of the layout"):
                io.load(tmp_path, layout=other)


@pytest.mark.parametrize("layout", ["mlx", "keras"])
def test_converting_twice_is_converting_once(backend: str, tmp_path: Path, layout: str) -> None:
    net = model()
    first, second, back = (tmp_path / f"{name}.safetensors" for name in "abc")
    io.save(net, first, metadata={"epoch": "3"})
    homes = [cell.tensor_and_home()[1] for cell in net.parameters()]
    io.convert(first, second, layout=layout, model=net)
    once = second.read_bytes()
    io.convert(second, second, layout=layout, model=net)
    assert second.read_bytes() == once
    io.convert(second, second, layout=layout)  # by the tag, without a model
    assert second.read_bytes() == once
    io.convert(second, back, layout="torch", model=net)
    assert back.read_bytes() == first.read_bytes()
    assert [cell.tensor_and_home()[1] for cell in net.parameters()] == homes, "the model has moved"


def test_conversion_renames_casts_and_shards(tmp_path: Path) -> None:
    net = model()
    path, target = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    io.save({f"net.{name}": tensor for name, tensor in net.state_dict().items()}, path)
    written = io.convert(
        path,
        target,
        layout="keras",
        model=net,
        rename=lambda name: name.removeprefix("net."),
        dtype="float16",
        max_shard_size=50,
    )
    assert len(written) > 2
    tensors = io.load(target, backend="numpy")
    assert {str(x.dtype) for x in tensors.values()} == {"float16"}
    assert tensors["layers.0.kernel"].shape == (3, 3, 3, 3)
    plain = io.convert(path, tmp_path / "c.safetensors", layout="torch", rename=lambda name: name[4:])
    assert sorted(io.load(plain[0])) == sorted(state(net))
    with pytest.raises(StateDictError, match="two tensors the name 'x'"):
        io.convert(path, target, layout="torch", rename=lambda name: "x")
    bad: Any = lambda name: 3
    with pytest.raises(ArgumentTypeError, match="must return the new name, got 3"):
        io.convert(path, target, layout="torch", rename=bad)


def test_bfloat16_and_other_archives_are_converted(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    net = nn.LSTM(2, 3)
    with ops.use_backend("numpy"):
        net.to(dtype="bfloat16")
        io.save(net, tmp_path / "a.safetensors")
    io.convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors", layout="mlx", model=net)
    with io.open(tmp_path / "b.safetensors") as file:
        assert {name: file.info(name).dtype for name in file} == dict.fromkeys(("Wh", "Wx", "bias"), "bfloat16")
    np.savez(tmp_path / "a.npz", kernel=np.ones((2, 4), "float32"), bias=np.zeros(4, "float32"))
    io.convert(tmp_path / "a.npz", tmp_path / "c.safetensors", source="keras", layout="torch", model=nn.Linear(2, 4))
    assert io.load(tmp_path / "c.safetensors")["weight"].shape == (4, 2)


def test_the_tag_decides_and_not_the_shape(tmp_path: Path) -> None:
    layer, read = nn.Linear(4, 4), nn.Linear(4, 4)
    path = tmp_path / "a.safetensors"
    given = {"weight": layer.weight, "bias": layer.bias}
    io.save(given, path)  # without a tag it is PyTorch's
    io.load_model(read, path)
    require_same(layer, read)
    kernel = np.arange(16.0, dtype="float32").reshape(4, 4)
    io.save({"kernel": ops.array(kernel), "bias": ops.zeros(4)}, path)
    io.load_model(read, path, layout="keras")
    assert np.array_equal(state(read)["weight"], kernel.T)
    io.save({"kernel": ops.array(kernel), "bias": ops.zeros(4)}, path, layout="keras")
    io.load_model(read, path)
    assert np.array_equal(state(read)["weight"], kernel.T)
    conv = nn.Conv1d(3, 3, 3)
    mlx = conv.state_dict(layout="mlx")
    io.save(mlx, path, metadata={"format": "mlx"})  # the word of mlx-lm
    for given in (None, "mlx"):
        other = nn.Conv1d(3, 3, 3)
        io.load_model(other, path, layout=given)
        require_same(conv, other)
    io.save(mlx, path, metadata={"format": "pt"})  # who says the layout knows it better than that word
    io.load_model(other, path, layout="mlx")
    require_same(conv, other)


def test_unknown_and_contradicting_tags_raise(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    layer = nn.Linear(2, 2)
    with pytest.raises(ArgumentError, match="metadata has the layout 'mlx', but layout is 'keras'"):
        io.save(layer.state_dict(), path, metadata={"layout": "mlx"}, layout="keras")
    for call in (
        lambda: io.save(layer.state_dict(), path, layout="keas"),
        lambda: io.save(layer, path, layout="keas"),
        lambda: io.convert(path, path, layout="keas"),
        lambda: layer.state_dict(layout="keas"),
        lambda: layer.load_state_dict({}, layout="keas"),
        lambda: layer.convert_state_dict({}, layout="keas"),
        lambda: layer.convert_state_dict({}, source="keas"),
    ):
        with pytest.raises(ArgumentError, match=r"must be one of 'torch', 'mlx', 'keras', got 'keas'; did you mean"):
            call()
    io.save(layer.state_dict(), path, metadata={"layout": "NHWC"})
    with pytest.raises(WeightFileError, match="tag of the layout 'NHWC', known are 'torch', 'mlx', 'keras'; say which"):
        io.load_model(layer, path)
    io.load_model(layer, path, layout="torch")
    shards = io.save(layer.state_dict(), path, max_shard_size=8, layout="torch")
    first = Path(shards[1])
    first.write_bytes(first.read_bytes().replace(b'"layout":"torch"', b'"layout":"keras"'))
    with pytest.raises(WeightFileError, match="shards of different layouts: 'keras', 'torch'"):
        io.load_model(layer, path)


def test_a_conversion_needs_a_model(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    io.save(nn.Linear(2, 2), path)
    with pytest.raises(ArgumentError, match=r"only the layers of a model say how .* those of 'mlx': pass model="):
        io.convert(path, path, layout="mlx")
    torch: Any = pytest.importorskip("torch")
    for call in (io.save, io.load_model):
        with pytest.raises(ArgumentTypeError, match=r"a module of emberharmony\.nn, .*Linear"):
            call(torch.nn.Linear(2, 2), path)


def test_errors_name_file_tensor_layer_and_the_layout_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    net = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 5)), nn.Linear(4, 2))
    before = state(net)
    io.save(net.state_dict(layout="mlx"), path)
    with pytest.raises(StateDictError) as caught:
        io.load_model(net, path)
    text = str(caught.value)
    assert text.startswith(f"{path}: load_state_dict() of Sequential changed nothing")
    assert "unexpected: layers.0.layers.0.weight" in text
    assert text.endswith("all names and shapes are those of the layout 'mlx': pass layout='mlx'")
    with pytest.raises(StateDictError, match=r"(?s)a\.safetensors: convert_state_dict.*pass source='mlx'"):
        io.convert(path, path, layout="keras", model=net)
    conv = nn.Conv2d(3, 4, 5)
    for layout, other in (("torch", "mlx"), ("mlx", "torch")):
        with pytest.raises(StateDictError, match=f"(?s)wrong: weight: .*those of the layout '{layout}'"):
            conv.load_state_dict(conv.state_dict(layout=layout), layout=other)
    wrong = net.state_dict() | {"0.0.weight": ops.zeros((4, 5, 5, 3)), "1.weight": ops.zeros((9, 9))}
    with pytest.raises(StateDictError, match=r"0\.0\.weight: has shape \(4, 5, 5, 3\), expected \(4, 3, 5, 5\)"):
        net.load_state_dict(wrong)
    mixed = {"weight": ops.zeros((4, 5, 5, 3)), "bias": ops.zeros(9)}
    with pytest.raises(StateDictError, match=r"\n  weight: it fits the layout 'mlx'$"):
        conv.load_state_dict(mixed)
    tensors = net.state_dict(layout="keras") | {"layers.1.kernel": ops.zeros((2, 4))}
    with pytest.raises(
        StateDictError, match=r"wrong: layers\.1\.kernel: has shape \(2, 4\), expected \(4, 2\) .* for Linear at 1$"
    ):
        net.load_state_dict(tensors, layout="keras")
    del tensors["layers.1.kernel"]
    with pytest.raises(StateDictError, match=r"missing: layers\.1\.kernel of Linear at 1"):
        net.load_state_dict(tensors | {"1.weight": ops.zeros((2, 4))}, layout="keras")
    assert all(np.array_equal(value, before[name]) for name, value in state(net).items())


def test_without_strict_the_rest_is_loaded(backend: str) -> None:
    net, read = (nn.Sequential(nn.MultiheadAttention(8, 2), nn.Linear(8, 8)) for _ in range(2))
    tensors = net.state_dict(layout="mlx")
    del tensors["layers.0.key_proj.weight"]
    loaded = read.load_state_dict(tensors | {"1.weight": ops.zeros((8, 8))}, strict=False, layout="mlx")
    assert loaded.missing == ["0.in_proj_weight"]
    assert loaded.unexpected == ["1.weight"]
    assert np.array_equal(state(read)["1.weight"], state(net)["1.weight"])


class Tied(nn.Module):
    """A table that is the matrix of the last layer too, and parameters of a user."""

    def __init__(self) -> None:
        self.table, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight
        self.blocks = [nn.Conv1d(3, 3, 2), nn.Sequential(nn.Linear(3, 3))]
        self.same = self.blocks[0]
        self.scale = nn.Parameter(ops.ones((2, 3)))
        self.scratch = nn.Buffer(ops.zeros(3), persistent=False)


@pytest.mark.parametrize("layout", ["mlx", "keras"])
def test_tied_parameters_shared_modules_and_own_parameters(tmp_path: Path, layout: str) -> None:
    net, read = Tied(), Tied()
    path = tmp_path / "a.safetensors"
    io.save(net, path, layout=layout)
    io.load_model(read, path)
    require_same(net, read)
    with io.open(path) as file:
        assert "scale" in file
        assert "scratch" not in file
        ties = json.loads(file.metadata["emberharmony.tied"])
        assert ties["same.weight" if layout == "mlx" else "same.kernel"].startswith("blocks.0.")
    one = {name: x for name, x in net.state_dict(layout=layout).items() if not name.startswith(("head", "same"))}
    read = Tied()
    assert read.load_state_dict(one, layout=layout).missing == []  # one name of a tied parameter is enough
    require_same(net, read)
    assert list(net.convert_state_dict(one, source=layout)) == list(state(net))


def test_computed_parameters_and_names_that_meet() -> None:
    layer = nn.parametrize.weight_norm(nn.Linear(2, 3))
    there = layer.state_dict(layout="keras")
    assert sorted(there) == sorted(layer.state_dict())
    assert layer.load_state_dict(there, layout="keras").missing == []
    own = nn.Linear(2, 3)
    own.kernel = nn.Parameter(ops.zeros(1))  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match=r"one name, 'kernel', for 'weight' and 'kernel' of Linear"):
        own.state_dict(layout="keras")
    with pytest.raises(StateDictError, match=r"missing: weight; did you mean 'weigth'\?"):  # and no error of the hint
        own.load_state_dict({"weigth": ops.zeros((3, 2))})
    own = nn.Linear(2, 3)
    own.weight = nn.Parameter(ops.zeros((2, 3, 4)))
    with pytest.raises(ShapeError, match=r"'0\.kernel' of Linear at 0, made of 0\.weight: .*\(2, 3, 4\)"):
        nn.ModuleList([own]).state_dict(layout="keras")


def test_a_model_without_shapes_is_refused() -> None:
    net = nn.Sequential(nn.Linear(None, 2))
    for call in (
        lambda: net.state_dict(layout="mlx"),
        lambda: net.load_state_dict({}, layout="mlx"),
        lambda: net.convert_state_dict({}, layout="mlx"),
    ):
        with pytest.raises(UninitializedParameterError, match=r"0\.weight of Sequential has no shape yet"):
            call()
    with pytest.raises(StateDictError, match=r"missing: 0\.weight"):
        net.load_state_dict({})


def test_values_that_are_no_tensors_are_refused() -> None:
    layer = nn.Linear(2, 1)
    bad: Any = 3
    with pytest.raises(ArgumentTypeError, match="takes a dict"):
        layer.convert_state_dict(bad)
    with pytest.raises(StateDictError, match="kernel: expected a tensor"):
        layer.convert_state_dict({"kernel": "x", "bias": [0.0]}, source="keras")
