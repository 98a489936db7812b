"""`io.load` of folders, indexes of shards, archives of NumPy and files of PyTorch, whole and damaged."""

import json
import os
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops
from emberharmony.backend.discovery import is_installed
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    EmberError,
    StateDictError,
    WeightFileError,
)
from tests.io.files import packed


def model() -> dict[str, Any]:
    shared = ops.full((10, 10), 2.0)
    return {f"layer{i}": ops.full((10, 10), float(i)) for i in range(5)} | {"tie": shared, "tied": shared}


def lists(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: x.tolist() for name, x in tensors.items()}


@pytest.mark.parametrize("place", ["a.safetensors", "a.safetensors.index.json", "."])
def test_shards_give_the_tensors_that_were_saved(backend: str, tmp_path: Path, place: str) -> None:
    path = tmp_path / "a.safetensors"
    written = io.save(model(), path, metadata={"a": "b"}, max_shard_size="1KB")
    assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, written))
    assert len(written) > 3
    found = io.load(tmp_path / place)
    assert lists(found) == lists(model())
    assert found["tie"] is found["tied"]
    assert list(io.load(tmp_path / place, names=["layer3", "tied"])) == ["layer3", "tied"]
    index = json.loads((tmp_path / "a.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(x.size * 4 for x in [*ops.to_numpy(ops.zeros((6, 10, 10)))])
    assert io.check(tmp_path).ok


def test_each_save_removes_the_files_that_it_replaces(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    (tmp_path / "other.txt").write_text("stays")
    for limit, count in ((None, 1), ("1KB", 4), ("2KB", 3), (None, 1)):
        io.save(model(), path, max_shard_size=limit)
        assert len(os.listdir(tmp_path)) == count + 1, os.listdir(tmp_path)
        assert lists(io.load(tmp_path)) == lists(model())


def test_names_dtype_and_backend_of_load(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    io.save({"w": ops.array([1.5]), "n": ops.array([2])}, path)
    found = io.load(path, dtype="float16")
    assert [ops.dtype(x).name for x in found.values()] == ["int64", "float16"]
    assert list(io.load(path, names=["w"])) == ["w"]
    with pytest.raises(StateDictError, match="did you mean 'w'"):
        io.load(path, names=["W"])
    with pytest.raises(TypeError, match="list of names"):
        io.load(path, names="w")


def test_dtypes_that_no_backend_has_are_read_as_bytes(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    eight = {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}
    path.write_bytes(packed({"a": eight, "b": {"dtype": "U8", "shape": [1], "data_offsets": [2, 3]}}, b"\x01\x02\x03"))
    with pytest.raises(WeightFileError, match="F8_E4M3") as caught:
        io.load(path)
    assert (caught.value.kind, caught.value.tensor) == ("dtype", "a")
    assert io.load(path, names=["b"])["b"].tolist() == [3]
    with io.open(path) as file:
        assert file.raw("a").tolist() == [1, 2]
        assert file.info("a").dtype == "F8_E4M3"
    assert "F8_E4M3" in str(io.check(path))


Damage = Callable[[Path, dict[str, Any]], object]


def _linked(folder: Path, index: dict[str, Any]) -> None:
    outside = folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    first = folder / index["weight_map"]["layer0"]
    first.rename(outside / first.name)
    first.symlink_to(outside / first.name)


def _moved(name: str) -> Damage:
    return lambda folder, index: index["weight_map"].update(layer0=name)


INDEXES: dict[str, Damage] = {
    "..": _moved("../a.safetensors"),
    "absolute": _moved("/etc/passwd"),
    "absolute with the ending": _moved("/tmp/a.safetensors"),
    "a folder": _moved("x/a.safetensors"),
    "a folder of Windows": _moved("..\\a.safetensors"),
    "a drive": _moved("C:a.safetensors"),
    "a stream": _moved("a.safetensors:x.safetensors"),
    "a null character": _moved("a\0.safetensors"),
    "a file of another kind": _moved("a.bin"),
    "no name": _moved(""),
    "a number": lambda folder, index: index["weight_map"].update(layer0=1),
    "null": lambda folder, index: index["weight_map"].update(layer0=None),
    "a link out of the folder": _linked,
    "a tensor too many": lambda folder, index: index["weight_map"].update(more=index["weight_map"]["layer0"]),
    "a tensor too few": lambda folder, index: index["weight_map"].pop("tied"),
    "a tensor in another file": lambda folder, index: index["weight_map"].update(layer0=index["weight_map"]["layer4"]),
    "no map": lambda folder, index: index.pop("weight_map"),
    "a map of another kind": lambda folder, index: index.update(weight_map=[]),
    "metadata of another kind": lambda folder, index: index.update(metadata=[]),
    "another size": lambda folder, index: index["metadata"].update(total_size=1),
    "a size of another kind": lambda folder, index: index["metadata"].update(total_size="2400"),
    "missing": lambda folder, index: (folder / index["weight_map"]["layer0"]).unlink(),
    "truncated": lambda folder, index: os.truncate(folder / index["weight_map"]["layer0"], 100),
}


@pytest.mark.parametrize("damage", INDEXES)
def test_a_damaged_index_is_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    with ops.use_backend("numpy"):
        io.save(model(), folder / "a.safetensors", max_shard_size="1KB")
        path = folder / "a.safetensors.index.json"
        index = json.loads(path.read_text())
        INDEXES[damage](folder, index)
        path.write_text(json.dumps(index))
        with pytest.raises(WeightFileError) as caught:
            io.load(folder)
    assert caught.value.kind == {"missing": "missing", "truncated": "header_size"}.get(damage, "index")
    assert io.check(folder).error is not None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"weight_map":{"a":"b","a":"b"}}']
)
def test_an_index_that_is_no_index(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.safetensors.index.json"
    path.write_bytes(content)
    with pytest.raises(WeightFileError):
        io.load(path)


def test_a_cache_of_links_is_read(tmp_path: Path, backend: str) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    io.save(model(), blobs / "a.safetensors", max_shard_size="1KB")
    for file in os.listdir(blobs):
        (snapshot / file).symlink_to(blobs / file)
    assert lists(io.load(snapshot)) == lists(model())


def test_a_folder_must_leave_no_choice(tmp_path: Path, backend: str) -> None:
    with pytest.raises(WeightFileError, match="has no file"):
        io.load(tmp_path)
    io.save(model(), tmp_path / "a.safetensors")
    assert lists(io.load(tmp_path)) == lists(model())
    io.save(model(), tmp_path / "b.safetensors")
    with pytest.raises(WeightFileError, match="name one"):
        io.load(tmp_path)


def test_shards_that_a_killed_save_has_left_are_no_choice(tmp_path: Path, backend: str) -> None:
    io.save(model(), tmp_path / "a.safetensors")
    (tmp_path / "a-0123abcd-00001-of-00002.safetensors").write_bytes(b"")
    assert lists(io.load(tmp_path)) == lists(model())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_of_numpy_are_read(backend: str, tmp_path: Path, save: Any) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3).astype("float32"), "f": np.asfortranarray(np.arange(6).reshape(2, 3))}
    arrays |= {"scalar": np.array(True), "empty": np.zeros((0, 2), "float32"), "big": np.arange(3, dtype=">i4")}
    arrays |= {"zeros": np.zeros(10**6, "int8")}
    save(tmp_path / "a.npz", **arrays)
    found = io.load(tmp_path / "a.npz")
    assert {name: x.tolist() for name, x in found.items()} == {name: x.tolist() for name, x in arrays.items()}
    assert list(io.load(tmp_path / "a.npz", names=["a"])) == ["a"]


def _npz(path: Path, content: bytes, name: str = "a.npy") -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)


def _npy(shape: str, data: bytes, descr: str = "'<f4'") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"text", _npy("(2,)", b"1234"), _npy("(1,)", b"12345"), _npy("(-1,)", b"")),
        _npy(f"({2**62},)", b"1234"),
        *(_npy("(2,)", b"12345678", "'|O'"), _npy("(1,)", b"1234", "[('a', '<f4')]"), _npy("(1,)", b"", "'V0'")),
        *(_npy("'x'", b""), _npy("(", b""), _npy("(1,)", b"1234")[:9], b"\x93NUMPY\x09\0" + bytes(20)),
    ],
)  # fmt: skip
def test_a_damaged_array_in_an_archive(tmp_path: Path, content: bytes) -> None:
    _npz(tmp_path / "a.npz", content)
    with ops.use_backend("numpy"), pytest.raises(WeightFileError) as caught:
        io.load(tmp_path / "a.npz")
    assert (caught.value.kind, caught.value.tensor) == ("npz", "a")


def _judge(path: Path, content: bytes, rounds: int) -> None:
    source = random.Random(3)
    for _ in range(rounds):
        made = bytearray(content)
        for _ in range(source.choice((1, 2, 8))):
            made[source.randrange(len(made))] = source.randrange(256)
        path.write_bytes(made[: source.choice((len(made), source.randrange(len(made))))])
        try:
            io.load(path)
        except EmberError:
            pass
        except Exception as error:
            raise AssertionError(f"{error!r} for {bytes(made)!r}") from error


def test_mutated_archives_raise_typed_errors_only(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with ops.use_backend("numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.savez_compressed(path, a=np.arange(3.0), b=np.arange(4))
        _judge(path, path.read_bytes(), 500)


def test_state_dicts_of_torch_are_read_without_running_them(backend: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.pth"
    torch.save({"w": torch.arange(3.0), "half": torch.ones(2, dtype=torch.bfloat16)}, path)
    found = io.load(path, names=["w", "half"])
    assert found["w"].tolist() == [0.0, 1.0, 2.0]
    assert ops.dtype(found["half"]).name == "bfloat16"
    assert all(ops.is_tensor(x) for x in found.values())
    torch.save({"w": torch.ones(1), "step": 3}, path)
    with pytest.raises(WeightFileError, match="flat dict"):
        io.load(path)

    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "trapped"),)

    torch.save({"w": Trap()}, path)
    with pytest.raises(WeightFileError, match=r"safely: it holds (posix|nt)\.mkdir"):
        io.load(path)
    assert not (tmp_path / "trapped").exists()
    with pytest.raises(WeightFileError) as caught:
        io.load(tmp_path / "none.pth")
    assert caught.value.kind == "missing"


def test_the_way_out_of_a_file_with_a_module_and_of_a_short_file_is_named(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(2, 1), tmp_path / "a.pt")
    with pytest.raises(WeightFileError, match=r"torch\.save\(torch\.load\(path, weights_only=False\)\.state_dict\(\)"):
        io.load(tmp_path / "a.pt")
    for content in (b"hello", b"\x99" * 30):
        (tmp_path / "a.safetensors").write_bytes(content)
        with pytest.raises(WeightFileError, match="download or save it again"):
            io.load(tmp_path / "a.safetensors")


def test_an_entry_of_a_checkpoint_is_read(backend: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.pt"
    torch.save({"step": 3, "model": {"w": torch.arange(3.0)}, "optimizer": {"groups": [1]}}, path)
    assert io.load(path, entry="model")["w"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(WeightFileError, match=r"give load\(\) one of entry=\['model', 'optimizer'\]"):
        io.load(path)
    with pytest.raises(WeightFileError, match=r"has no entry 'net'; it has \['step', 'model', 'optimizer'\]"):
        io.load(path, entry="net")
    with pytest.raises(WeightFileError, match="holds a int"):
        io.load(path, entry="step")
    with pytest.raises(WeightFileError, match="flat dict"):
        io.load(path, entry="optimizer")
    torch.save([1], path)
    with pytest.raises(WeightFileError, match=r"has no entry 'model'$"):
        io.load(path, entry="model")
    io.save({"w": ops.ones(1)}, tmp_path / "a.safetensors")
    with pytest.raises(ArgumentError, match="only files of PyTorch have entries"):
        io.load(tmp_path / "a.safetensors", entry="model")


@pytest.mark.skipif(not is_installed("torch"), reason="needs PyTorch")
def test_mutated_files_of_torch_raise_typed_errors_only(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "a.pt"
    torch.save({"w": torch.arange(3.0)}, path)
    with ops.use_backend("numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _judge(path, path.read_bytes(), 60)


def test_a_path_that_leads_nowhere_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layer = nn.Linear(2, 1)
    io.save({"model": layer, "step": 3}, "training")
    io.save(layer, "net.safetensors")
    for path, way_out in (
        ("training", r"it has checkpoints: io.Checkpoint\(folder\).restore"),
        ("net", "did you mean 'net.safetensors'"),
        ("~/net.safetensors", r"use os.path.expanduser\(path\)"),
        ("https://a.b/net.safetensors", "it is an address: download the file first"),
        ("xyz", f"the folder is {re.escape(str(tmp_path))}, and has net.safetensors, training"),
    ):
        with pytest.raises(WeightFileError, match=way_out):
            io.load(path)
    with pytest.raises(ArgumentTypeError, match="expected the path of a file"):
        io.load(None)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match=r"is a file, and not the folder of checkpoints; io.load_model"):
        io.Checkpoint("net.safetensors").restore(layer)
    with pytest.raises(ArgumentError, match=r"the order is save\(step, model, optimizer\)"):
        io.Checkpoint("training").save(layer)  # type: ignore[arg-type]
    with pytest.raises(WeightFileError, match=r"use os.path.expanduser\(path\)"):
        io.save(layer, "~/no/net.safetensors")
    for what, hint in (
        (layer.parameters(), "a dict with a name for each tensor"),
        (ops.ones(2), r"io.save\(\{'x': x\}, path\)"),
        (layer.state_dict, "call it, with parentheses"),
        (nn.Linear, "call it, with parentheses"),
    ):
        with pytest.raises(ArgumentTypeError, match=hint):
            io.save(what, "net.safetensors")
