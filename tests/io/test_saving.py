"""What `io.save` writes is what `io.load` and the `safetensors` package read, or the old file stays."""

import builtins
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, io, nn, ops, optim
from emberharmony.core.state import files as atomic
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    EmberError,
    MissingFileError,
    WeightFileError,
)
from tests.together import together

DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16")
DTYPES += ("float32", "float64", "complex64")


def all_dtypes() -> dict[str, Any]:
    return {f"of.{name}": ops.cast(ops.reshape(ops.arange(6), (2, 3)), name) for name in DTYPES}


def bits(tensor: Any) -> tuple[Any, str, tuple[int, ...]]:
    name = ops.dtype(tensor).name
    host = ops.to_numpy(ops.view(tensor, "uint16") if name == "bfloat16" else tensor)
    return host.tobytes(), name, host.shape


def equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert sorted(one) == sorted(other)
    for name, tensor in one.items():
        assert bits(tensor) == bits(other[name]), name


@pytest.mark.parametrize("mmap", [True, False])
def test_every_dtype_comes_back(backend: str, tmp_path: Path, mmap: bool) -> None:
    tensors = all_dtypes() | {
        "scalar": ops.array(2.5),
        "empty": ops.zeros((0, 3)),
        "special": ops.array([float("nan"), float("inf"), -0.0]),
        "transposed": ops.transpose(ops.reshape(ops.arange(6), (2, 3))),
        "strided": ops.arange(10)[::3],
        "größe": ops.array([1.0]),
    }
    path = tmp_path / "a.safetensors"
    assert io.save(tensors, path, metadata={"a": "b"}) == [str(path)]
    with io.open(path, mmap=mmap) as file:
        assert file.metadata == {"a": "b"}
        equal(tensors, dict(file))
    equal(tensors, io.load(path))
    assert io.check(path).ok
    assert not io.check(path).warnings
    raw = path.read_bytes()
    assert (8 + int.from_bytes(raw[:8], "little")) % 8 == 0


def test_a_file_of_one_backend_opens_on_all(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "a.safetensors"
    tensors = all_dtypes()
    io.save(tensors, path)
    for other in ("numpy", "torch", "mlx"):
        pytest.importorskip({"mlx": "mlx.core"}.get(other, other))
        found = io.load(path, backend=other)
        with ops.use_backend(other):
            assert {name: bits(x) for name, x in found.items()} == {
                name: (content, dtype, shape)
                for name, x in io.load(path).items()
                for content, dtype, shape in [bits(x)]
            }
    assert ops.get_backend() == backend


def test_a_slice_is_that_of_the_tensor(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    x = ops.reshape(ops.arange(60), (3, 4, 5))
    io.save({"x": x, "half": ops.cast(x, "bfloat16")}, path)
    with io.open(path) as file:
        part = file.slice("x")
        assert part.shape == (3, 4, 5)
        assert part[1].tolist() == x[1].tolist()
        assert part[0:2, ..., ::2].tolist() == x[0:2, ..., ::2].tolist()
        assert part[2, 3, 4].tolist() == 59
        assert ops.cast(file.slice("half")[1, 1:], "float32").tolist() == ops.cast(x[1, 1:], "float32").tolist()


def test_tensors_outlive_the_file_and_do_not_change_it(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    io.save({"x": ops.arange(1000)}, path)
    content = path.read_bytes()
    with io.open(path) as file:
        x = file["x"]
    if backend != "mlx":
        x[0] = 7
    assert int(x[999]) == 999
    assert path.read_bytes() == content
    with pytest.raises(WeightFileError, match="is closed"):
        file["x"]


def test_opening_shares_memory_with_numpy_and_torch(tmp_path: Path, backend: str) -> None:
    if backend == "mlx":
        pytest.skip("MLX 0.32 copies arrays of the host")
    path = tmp_path / "a.safetensors"
    io.save({"x": ops.arange(1000), "half": ops.cast(ops.arange(8), "bfloat16")}, path)
    with io.open(path) as file:
        for name in file:
            one, other = file[name], file[name]
            one[0] = 5
            assert float(other[0]) == 5


def test_tied_tensors_are_stored_once(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    weight = Parameter(ops.ones((100, 100), "float32"))
    other = ops.ones((100, 100), "float32")
    io.save({"embed": weight, "head": weight, "again": weight.value, "other": other}, path)
    assert path.stat().st_size < 81_000
    found = io.load(path)
    assert sorted(found) == ["again", "embed", "head", "other"]
    assert found["embed"] is found["head"]
    assert found["other"] is not found["head"]
    assert io.check(path).ok


def test_views_of_one_memory_are_ties_only_if_equal(tmp_path: Path) -> None:
    x = np.arange(6.0)
    path = tmp_path / "a.safetensors"
    with ops.use_backend("numpy"):
        io.save({"x": x, "same": x[:], "part": x[:3], "bits": x.view("int64"), "turned": x[::-1]}, path)
        with io.open(path) as file:
            assert json.loads(file.metadata["emberharmony.tied"]) == {"same": "x"}
            assert file["turned"].tolist() == x[::-1].tolist()


def test_a_tensor_and_its_transpose_are_two(backend: str, tmp_path: Path) -> None:
    square = ops.reshape(ops.arange(9), (3, 3))
    tensors = {"square": square, "again": square, "transposed": square.T, "row": square[0], "flipped": ops.flip(square)}
    io.save(tensors, tmp_path / "a.safetensors")
    equal(tensors, io.load(tmp_path / "a.safetensors"))
    with io.open(tmp_path / "a.safetensors") as file:
        assert file.has_ties
        assert json.loads(file.metadata["emberharmony.tied"]) == {"again": "square"}


def test_arrays_in_the_other_byte_order(tmp_path: Path) -> None:
    with ops.use_backend("numpy"):
        io.save({"x": np.arange(3, dtype=">f4")}, tmp_path / "a.safetensors")
        assert io.load(tmp_path / "a.safetensors")["x"].tolist() == [0, 1, 2]


def test_wrong_arguments_are_named(backend: str, tmp_path: Path) -> None:
    x = ops.array([1.0])
    path = tmp_path / "a.safetensors"
    wrong: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (ArgumentTypeError, "dict from names", [x], {}),
        (ArgumentTypeError, "'a' is", {"a": [1.0]}, {}),
        (ArgumentTypeError, "a training is saved by io.save", {"epoch": 3, "a": x}, {}),
        (ArgumentTypeError, "a training is saved by io.save", {"model": {"a": x}}, {}),
        (ArgumentError, "no name", {1: x}, {}),
        (ArgumentError, "no name", {"__metadata__": x}, {}),
        (ArgumentError, "no text", {"\ud800": x}, {}),
        (ArgumentTypeError, "holds strings", {"a": x}, {"metadata": {"epoch": 1}}),
        (ArgumentError, "by save itself", {"a": x}, {"metadata": {"emberharmony.tied": "{}"}}),
        (ArgumentError, "max_shard_size", {"a": x}, {"max_shard_size": 0}),
        (ArgumentError, "max_shard_size", {"a": x}, {"max_shard_size": "many"}),
    ]
    for kind, message, tensors, options in wrong:
        with pytest.raises(kind, match=message):
            io.save(tensors, path, **options)
    with pytest.raises(ArgumentError, match="end in"):
        io.save({"a": x}, tmp_path / "a.npz")
    if backend != "mlx":
        with pytest.raises(DTypeError, match="complex128"):
            io.save({"a": ops.cast(x, "complex128")}, path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("limit", [None, 1000])
def test_a_failing_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    path = tmp_path / "a.safetensors"
    with ops.use_backend("numpy"):
        old = {"x": np.arange(1000.0), "y": np.arange(500.0)}
        new = {"x": np.zeros(1000), "y": np.zeros(500)}
        io.save(old, path, max_shard_size=limit)
        before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
        for error in (OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()):
            for at in range(3 if limit else 1):
                left = [at]

                def failing(
                    stream: Any,
                    left: list[int] = left,
                    error: BaseException = error,
                    finish: Any = atomic._sync_and_close,
                ) -> None:
                    if not left[0]:
                        raise error
                    left[0] -= 1
                    finish(stream)

                with monkeypatch.context() as patch:
                    patch.setattr(atomic, "_sync_and_close", failing)
                    with pytest.raises(WeightFileError if isinstance(error, OSError) else KeyboardInterrupt):
                        io.save(new, path, max_shard_size=limit)
                assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
        equal(old, io.load(path))


def test_a_folder_that_is_missing(tmp_path: Path, backend: str) -> None:
    with pytest.raises(WeightFileError, match="its folder does not exist") as caught:
        io.save({"x": ops.array([1.0])}, tmp_path / "none" / "a.safetensors")
    assert caught.value.kind == "unwritable"


KILLED = """
import sys, itertools
import numpy as np
from emberharmony import io, ops
ops.set_backend("numpy")
for i in itertools.count():
    limit = (None, 60_000)[i % 2]
    io.save({str(k): np.full(5000, i, "int64") for k in range(4)}, sys.argv[1], max_shard_size=limit)
    if not i: print("begun", flush=True)
"""


@pytest.mark.fresh_process
@pytest.mark.slow
def test_a_killed_save_leaves_one_whole_model(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for i in range(50):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.0007 * i)
            process.send_signal(signal.SIGKILL)
        with ops.use_backend("numpy"):
            for place in (path, tmp_path):
                found = io.load(place)
                assert len({int(value) for x in found.values() for value in x}) == 1
                assert len(found) == 4


def test_the_package_safetensors_reads_and_writes_the_same(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    with ops.use_backend("numpy"):
        tensors = {name: x for name, x in all_dtypes().items() if "bfloat16" not in name}
        tensors |= {"scalar": np.array(2.5), "empty": np.zeros((0, 3))}
        io.save(tensors, ours, metadata={"a": "b"})
        equal(tensors, package.load_file(ours))
        package.save_file(tensors, theirs, {"a": "b"})
        equal(tensors, io.load(theirs))


def test_the_package_safetensors_of_torch_reads_and_writes_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    with ops.use_backend("torch"):
        tensors = all_dtypes()
        io.save(tensors, ours)
        equal(tensors, package.load_file(ours))
        package.save_file(tensors, theirs)
        equal(tensors, io.load(theirs))


def test_no_file_is_opened_for_writing_beside_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with ops.use_backend("numpy"):
        io.save({"x": np.arange(3.0)}, path)
        with builtins.open(path, "rb") as before:
            io.save({"x": np.zeros(3)}, path)
            assert before.read().endswith(np.arange(3.0).tobytes())
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_one_call_saves_tensors_models_and_checkpoints(tmp_path: Path, backend: str) -> None:
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net, lr=0.5, momentum=0.9)
    path = tmp_path / "a.safetensors"
    before = ops.to_numpy(net.weight.value).tolist()
    assert io.save(net, path) == [str(path)]
    assert set(io.load(path)) == set(net.state_dict())
    (folder,) = io.save({"model": net, "optimizer": optimizer, "step": 7, "extra": {"loss": 0.5}}, tmp_path / "run")
    assert Path(folder).parent == tmp_path / "run"
    net.weight.value = ops.zeros((1, 2))
    assert io.Checkpoint(tmp_path / "run").restore(net, optimizer) == 7
    assert ops.to_numpy(net.weight.value).tolist() == before


@together(
    "call, message",
    [
        (lambda net, path: io.save(path, net), r"the path comes second, as in io\.save\(model, "),
        (lambda net, path: io.save(net, net.state_dict()), "path is .* expected the name of a file"),
        (lambda net, path: io.save(optim.SGD(net, lr=0.1), path), "pass its parts by name, as {'optimizer': sgd}"),
        (lambda net, path: io.save({"model": net, "epoch": 3}, path), "'epoch' is no part of a checkpoint"),
        (lambda net, path: io.save({"model": net}, path, layout="mlx"), "for files of tensors"),
        (lambda net, path: io.save(net, path.with_suffix(".pt")), r"use '.*a\.safetensors'"),
        (lambda net, path: io.save(net, path.parent / "runs" / "a.safetensors"), r"os\.makedirs\('.*runs'"),
        (lambda net, path: io.Checkpoint(path).restore(net), "ask latest"),
    ],
)
def test_what_cannot_be_saved_has_a_way_out(
    tmp_path: Path, call: Callable[[nn.Module, Path], object], message: str
) -> None:
    with pytest.raises(EmberError, match=message):
        call(nn.Linear(2, 1), tmp_path / "a.safetensors")


def test_a_missing_file_is_a_file_not_found_error(tmp_path: Path) -> None:
    io.save({"w": ops.ones(2)}, tmp_path / "net.safetensors")
    with pytest.raises(FileNotFoundError, match=r"did you mean 'net\.safetensors'") as caught:
        io.load(tmp_path / "nte.safetensors")
    assert isinstance(caught.value, WeightFileError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(MissingFileError, match="there is no folder"):
        io.load(tmp_path / "none" / "a.safetensors")
