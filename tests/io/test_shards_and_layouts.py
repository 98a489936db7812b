"""How tensors lie in files: in shards of a size, aligned, in the order of the machine, and booleans as 0 and 1."""

import json
import os
import zipfile
from contextlib import closing

import numpy as np
import pytest

from emberharmony import io, ops
from emberharmony.errors import WeightFileError
from emberharmony.io.parsing import LARGEST_ENTRY
from emberharmony.io.rewriting import rewrite
from emberharmony.io.sources import source
from tests.io.files import packed


def sizes(files):
    """Returns the bytes of the tensors in each shard."""
    return [io.check(file).nbytes for file in files if file.endswith(".safetensors")]


@pytest.mark.parametrize(
    "limit, wanted",
    [
        (599, [600] * 5),
        (600, [600] * 5),
        (1199, [600] * 5),
        (1200, [1200, 1200, 600]),
        ("1KB", [600] * 5),
        ("1.2 kb", [1200, 1200, 600]),
        ("1800", [1800, 1200]),
        ("0.002MB", [1800, 1200]),
        ("0.000003GB", [3000]),
        ("0.000000002TB", [1800, 1200]),
    ],
)
def test_shards_are_as_full_as_the_limit_allows(tmp_path, limit, wanted):
    with ops.use_backend("numpy"):
        tensors = {name: ops.full(150, float(i), dtype="float32") for i, name in enumerate("abcde")}
        files = io.save(tensors, tmp_path / "a.safetensors", max_shard_size=limit)
        assert sizes(files) == wanted
        assert [float(x[0]) for x in io.load(tmp_path).values()] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_tensors_come_in_the_order_in_which_they_are_asked_for(backend, tmp_path):
    tensors = {name: ops.full(10, float(i)) for i, name in enumerate("abcd")}
    io.save(tensors, tmp_path / "whole.safetensors")
    io.save(tensors, tmp_path / "a.safetensors", max_shard_size=40)
    for file in ("whole.safetensors", "a.safetensors"):
        found = io.load(tmp_path / file, names=["d", "a", "c"])
        assert [(name, float(x[0])) for name, x in found.items()] == [("d", 3.0), ("a", 0.0), ("c", 2.0)]


def test_metadata_do_not_replace_the_size_in_an_index(backend, tmp_path):
    path = tmp_path / "a.safetensors"
    io.save({"a": ops.ones(10), "b": ops.ones(10)}, path, metadata={"total_size": "7", "x": "y"}, max_shard_size=40)
    index = json.loads((tmp_path / "a.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 80, "x": "y"}
    assert io.check(path).ok


def test_shards_with_other_names_stay(backend, tmp_path):
    path = tmp_path / "a.safetensors"
    io.save({"a": ops.ones(10), "b": ops.ones(10)}, tmp_path / "b.safetensors", max_shard_size=40)
    os.rename(tmp_path / "b.safetensors.index.json", tmp_path / "a.safetensors.index.json")
    before = sorted(name for name in os.listdir(tmp_path) if name.startswith("b-"))
    assert len(before) == 2
    io.save({"a": ops.ones(10)}, path)
    assert sorted(name for name in os.listdir(tmp_path) if name.startswith("b-")) == before


def test_booleans_are_written_as_0_and_1(tmp_path):
    with ops.use_backend("numpy"):
        odd = np.array([0, 1, 2, 255], np.uint8).view(bool)
        io.save({"x": odd}, tmp_path / "a.safetensors")
        assert (tmp_path / "a.safetensors").read_bytes()[-4:] == b"\0\1\1\1"


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", ["float64", "int32", "bfloat16", "complex64", "bool"])
def test_tensors_that_are_not_aligned_in_the_file_are_so_in_memory(backend, tmp_path, mmap, name):
    tag = {"float64": "F64", "int32": "I32", "bfloat16": "BF16", "complex64": "C64", "bool": "BOOL"}[name]
    bits = np.array([0, 1, 1], "uint16" if name == "bfloat16" else name)
    fields = {"a": {"dtype": tag, "shape": [3], "data_offsets": [0, bits.nbytes]}}
    for spaces in range(8):
        whole = packed(fields, bits.tobytes())
        length = int.from_bytes(whole[:8], "little") + spaces
        path = tmp_path / f"{spaces}.safetensors"
        path.write_bytes(length.to_bytes(8, "little") + whole[8 : 8 + length - spaces] + b" " * spaces + bits.tobytes())
        with io.open(path, mmap=mmap) as file:
            found = file["a"]
        assert ops.dtype(found) == name
        if backend == "numpy":
            assert found.flags.aligned
        host = ops.to_numpy(ops.view(found, "uint16") if name == "bfloat16" else found)
        np.testing.assert_array_equal(host, bits)


def test_a_name_that_ends_in_a_backslash_before_a_header_of_many_pieces(tmp_path):
    names = ["first\\", *(f"{'n' * 200}{i}" for i in range(6000))]
    fields = {name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, name in enumerate(names)}
    path = tmp_path / "a.safetensors"
    path.write_bytes(packed(fields, bytes(i % 256 for i in range(len(names)))))
    assert int.from_bytes(path.read_bytes()[:8], "little") > LARGEST_ENTRY
    with io.open(path) as file:
        assert list(file) == names
        assert [int(file.raw(names[i])[0]) for i in (0, 255, 6000)] == [0, 255, 6000 % 256]


@pytest.mark.parametrize("order", ["<", ">"])
def test_arrays_of_an_archive_in_either_byte_order(backend, tmp_path, order):
    np.savez(tmp_path / "a.npz", x=np.array([1.5, -2.0], f"{order}f4"), n=np.array([258, -1], f"{order}i8"))
    assert {name: x.tolist() for name, x in io.load(tmp_path / "a.npz").items()} == {"x": [1.5, -2.0], "n": [258, -1]}
    for target in ("b.safetensors", "b.npz"):
        with closing(source(tmp_path / "a.npz")) as held:
            rewrite(held, str(tmp_path / target), {"x": "x", "n": "n"})
        found = io.load(tmp_path / target)
        assert {name: x.tolist() for name, x in found.items()} == {"x": [1.5, -2.0], "n": [258, -1]}


def test_an_archive_with_two_arrays_of_one_name_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(2))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("x.npy", "y.npy", "x"):
            archive.write(tmp_path / "x.npy", name)
    with pytest.raises(WeightFileError, match="'x': occurs twice") as caught:
        io.load(tmp_path / "a.npz")
    assert caught.value.kind == "duplicate"
