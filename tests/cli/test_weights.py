"""`emberharmony weights`: its tables, JSON and exit status, on every kind of file; an interruption leaves nothing."""

import json
import math
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from emberharmony import io, ops
from emberharmony.backend.discovery import is_installed
from emberharmony.cli.main import command
from emberharmony.io import sources
from tests.io.files import HOSTILE, packed

pytestmark = pytest.mark.usefixtures("on_numpy")
ODD = {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}


@pytest.fixture
def on_numpy() -> Iterator[None]:
    with ops.use_backend("numpy"):
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    shared = ops.array([[1.0, -2.0], [3.5, 0.25]])
    tensors = {"enc.w": shared, "dec.w": shared, "enc.b": ops.array([0.5, math.nan, math.inf], dtype="bfloat16")}
    tensors |= {"steps": ops.array(3), "mask": ops.array([True, False]), "none": ops.zeros((0, 3))}
    tensors |= {"z": ops.array([1 + 1j, 3 - 1j], dtype="complex64")}
    path = tmp_path / "a.safetensors"
    io.save(tensors, path, metadata={"epoch": "7"})
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, ["weights", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json")[1])


def test_ls_lists_the_tensors_and_counts_tied_ones_once(file: Path) -> None:
    status, output, _ = run("ls", file)
    assert status == 0
    lines = [line.split() for line in output.splitlines()]
    assert lines[0] == ["name", "dtype", "shape", "size"]
    assert ["enc.b", "bfloat16", "(3,)", "6", "B"] in lines
    assert output.endswith("metadata epoch: 7\n7 tensors, 48 B\n")
    found = as_json("ls", file, "--match", "*.w")
    assert found["total"] == {"tensors": 2, "nbytes": 16}
    assert found["tensors"][0] == {"name": "enc.w", "dtype": "float32", "shape": [2, 2], "nbytes": 16} | {
        "name": found["tensors"][0]["name"]
    }


def test_statistics_are_those_of_the_finite_elements(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 3)
    found = {row["name"]: row["statistics"] for row in as_json("ls", file, "--stats")["tensors"]}
    values = np.array([1.0, -2.0, 3.5, 0.25])
    assert found["enc.w"]["mean"] == pytest.approx(values.mean())
    assert found["enc.w"]["std"] == pytest.approx(values.std())
    assert (found["dec.w"]["minimum"], found["dec.w"]["maximum"]) == (-2.0, 3.5)
    assert (found["enc.b"]["nans"], found["enc.b"]["infinities"], found["enc.b"]["mean"]) == (1, 1, 0.5)
    assert (found["mask"]["minimum"], found["mask"]["maximum"], found["mask"]["mean"]) == (False, True, 0.5)
    assert found["none"]["minimum"] is None
    assert (found["z"]["mean"], found["z"]["std"]) == ("(2+0j)", pytest.approx(math.sqrt(2)))
    assert "1 NaN and 1 infinite" in run("ls", file, "--stats")[1]


def test_statistics_of_large_numbers_and_integers(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, huge=np.array([1e300, -1e300, 1e300]), wide=np.array([2**63 - 1, -(2**63)]), text=np.array(["a"]))
    found = {row["name"]: row["statistics"] for row in as_json("ls", path, "--stats")["tensors"]}
    assert found["huge"]["std"] == pytest.approx(1e300 * math.sqrt(8 / 9))
    assert (found["wide"]["minimum"], found["wide"]["maximum"]) == (-(2**63), 2**63 - 1)
    assert found["text"] is None


def test_statistics_take_the_memory_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(packed({"a": {"dtype": "F32", "shape": [10**6], "data_offsets": [0, 4 * 10**6]}}, b""))
    os.truncate(path, path.stat().st_size + 4 * 10**6)
    monkeypatch.setattr(sources, "BLOCK", 1 << 12)
    run("ls", path, "--stats")
    tracemalloc.start()
    for arguments in (("ls", path, "--stats"), ("diff", path, path), ("convert", path, tmp_path / "b.safetensors")):
        tracemalloc.reset_peak()
        assert run(*arguments)[0] == 0
        assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_names_of_strangers_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    io.save({"\x1b[2Jw": ops.array([1.0])}, path, metadata={"\x07": "\r"})
    _, output, _ = run("ls", path)
    assert "\\x1b[2Jw" in output
    assert output.replace("\n", "").isprintable()


def test_check_names_every_fault(tmp_path: Path, file: Path) -> None:
    bad = tmp_path / "bad.safetensors"
    entry = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}
    bad.write_bytes(packed({"a": entry | {"dtype": "F3"}, "b": entry, "c": entry | {"shape": [3]}}, bytes(2)))
    gaps = tmp_path / "gaps.safetensors"
    gaps.write_bytes(packed({"a": entry | {"data_offsets": [1, 3]}, "b": entry | {"data_offsets": [2, 4]}}, bytes(9)))
    status, output, _ = run("check", file, bad, gaps, tmp_path / "none.safetensors")
    assert status == 1
    lines = output.splitlines()
    assert lines[0] == f"{file}: 7 tensors, 48 B, correct"
    assert [line.startswith("FAIL ") for line in lines] == [False] + [True] * 6
    assert ["dtype 'F3'" in lines[1], "[3]" in lines[2], "hole" in lines[3], "overlap" in lines[4]] == [True] * 4
    found = as_json("check", bad, gaps)
    assert [fault["kind"] for fault in found[0]["faults"]] == ["dtype", "offsets"]
    assert [fault["tensor"] for fault in found[1]["faults"]] == ["a", "b", None]
    assert run("check", file)[0] == 0


def test_one_damaged_file_of_several_decides_the_status(tmp_path: Path, file: Path) -> None:
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"{}")
    assert [run("check", *paths)[0] for paths in ((bad, file), (file, bad), (file, file))] == [1, 1, 0]


@pytest.mark.parametrize("number, words", [(math.inf, "1 infinite"), (-math.inf, "1 infinite"), (math.nan, "1 NaN")])
def test_check_of_values_refuses_what_is_not_finite(tmp_path: Path, number: float, words: str) -> None:
    path = tmp_path / "a.safetensors"
    io.save({"x": ops.array([1.0, number]), "n": ops.array([1, 2])}, path)
    status, output, _ = run("check", path, "--values")
    assert status == 1
    assert f"has elements that are {words}" in output
    assert run("check", path)[0] == 0


def test_check_names_every_fault_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    files = io.save({name: ops.ones(100) for name in "abc"}, path, max_shard_size=500)
    report = io.check(path)
    assert (report.ok, len(report.tensors), report.nbytes) == (True, 3, 1200)
    os.unlink(files[1])
    Path(files[3]).write_bytes(b"{}")
    report = io.check(tmp_path)
    assert [error.kind for error in report.errors] == ["missing", "header_size"]
    assert "(and 1 more faults)" in str(report)


def test_check_ends_after_a_thousand_faults(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(packed(dict.fromkeys(map(str, range(2000)), 1), b""))
    assert len(io.check(path).errors) == 1001


def test_check_of_values(file: Path, tmp_path: Path) -> None:
    status, output, _ = run("check", "--values", file)
    assert status == 1
    assert "tensor 'enc.b': has elements that are 1 NaN and 1 infinite" in output
    np.savez(tmp_path / "b.npz", a=np.ones(2), n=np.arange(2))
    assert run("check", "--values", tmp_path / "b.npz")[0] == 0


def test_every_damaged_file_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for name, (content, kind) in HOSTILE.items():
        path.write_bytes(content)
        report = io.check(path)
        assert kind in {error.kind for error in report.errors}, name


def test_diff_tells_how_tensors_differ(file: Path, tmp_path: Path) -> None:
    assert run("diff", file, file) == (0, "7 tensors are equal to the bit\n", "")
    other = tmp_path / "b.safetensors"
    tensors = dict(io.load(file))
    tensors["dec.w"] = ops.array([[1.0, -2.0], [3.0, 0.25]])
    tensors["enc.b"] = ops.array([0.5, 1.0, math.inf], dtype="bfloat16")
    tensors["steps"] = ops.array([3])
    tensors["mask"] = ops.array([1, 0])
    tensors["new"] = tensors.pop("none")
    tensors["enc.w"] = ops.array([[1.0, -2.0], [3.5, 0.25]])
    io.save(tensors, other)
    status, output, _ = run("diff", file, other)
    assert status == 1
    assert "6 of 8 tensors differ" in output
    found = {row["name"]: row for row in as_json("diff", file, other, "--all")["tensors"]}
    kinds = {name: row["kind"] for name, row in found.items()}
    changed = {"dec.w": "values", "enc.b": "values", "steps": "shape", "mask": "dtype", "none": "missing"}
    assert kinds == {"enc.w": "equal", "z": "equal", "new": "extra", **changed}
    assert (found["dec.w"]["elements"], found["dec.w"]["absolute"]) == (1, 0.5)
    assert found["dec.w"]["relative"] == pytest.approx(0.5 / 3.5)
    assert (found["enc.b"]["elements"], found["enc.b"]["nans"], found["enc.b"]["absolute"]) == (1, 1, 0)
    assert (found["mask"]["elements"], found["mask"]["absolute"]) == (0, 0)


@pytest.mark.parametrize(
    ("a", "b", "elements", "absolute", "relative"),
    [
        ([0.0], [-0.0], 1, 0, 0.0),
        ([math.inf, 1.0], [-math.inf, 1.0], 1, "inf", "inf"),
        ([2**63 - 1], [-(2**63)], 1, 2**64 - 1, 2.0),
        ([True], [False], 1, 1.0, 1.0),
        ([3 + 4j], [0j], 1, 5.0, 1.0),
    ],
)
def test_diff_of_numbers(tmp_path: Path, a: Any, b: Any, elements: int, absolute: Any, relative: Any) -> None:
    for name, value in (("a.npz", a), ("b.npz", b)):
        np.savez(tmp_path / name, x=np.array(value))
    (row,) = as_json("diff", tmp_path / "a.npz", tmp_path / "b.npz")["tensors"]
    assert (row["kind"], row["elements"], row["absolute"], row["relative"]) == ("values", elements, absolute, relative)


def test_convert_changes_names_dtype_and_format(file: Path, tmp_path: Path) -> None:
    made = tmp_path / "b.npz"
    status, output, errors = run(
        *("convert", file, made, "--dtype", "float32", "--rename", r"^(\w+)\.", r"model.\1."),
        *("--match", "[de]*", "--rename", "model.enc", "e"),
    )
    assert (status, output) == (0, f"{made}\n3 tensors, 44 B\n")
    assert "no place for metadata, 1 texts are lost" in errors
    with np.load(made) as arrays:
        assert set(arrays) == {"e.w", "e.b", "model.dec.w"}
        assert arrays["e.b"].dtype == np.float32
        np.testing.assert_array_equal(arrays["e.w"], [[1.0, -2.0], [3.5, 0.25]])
    back = tmp_path / "c.safetensors"
    assert run("convert", made, back, "--metadata", "format=pt", "--dtype", "bfloat16")[0] == 0
    assert io.check(back).metadata == {"format": "pt"}
    assert {x.dtype for x in io.check(back).tensors.values()} == {"bfloat16"}


def test_convert_keeps_ties_metadata_and_dtypes_that_no_backend_has(file: Path, tmp_path: Path) -> None:
    made = tmp_path / "b.safetensors"
    assert run("convert", file, made, "--max-shard-size", "20")[0] == 0
    assert len(os.listdir(tmp_path)) > 3
    assert as_json("diff", file, made)["equal"]
    found = io.load(made)
    assert found["enc.w"] is found["dec.w"]
    assert io.check(made).nbytes == 48
    file.write_bytes(packed({"a": ODD}, b"\x01\x02"))
    assert run("convert", file, tmp_path / "c.safetensors", "--dtype", "float16")[0] == 0
    assert run("diff", file, tmp_path / "c.safetensors")[0] == 0
    with io.open(tmp_path / "c.safetensors") as held:
        assert held.raw("a").tolist() == [1, 2]
    status, _, errors = run("convert", file, tmp_path / "c.npz")
    assert (status, "F8_E4M3" in errors) == (2, True)


def test_convert_says_what_became_infinite(tmp_path: Path) -> None:
    io.save({"w": ops.array([1.0, 1e6, math.inf])}, tmp_path / "a.safetensors")
    status, _, errors = run("convert", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--dtype", "float16")
    assert status == 0
    assert "1 elements of w are too large for float16 and now infinite" in errors


@pytest.mark.skipif(not is_installed("torch"), reason="needs PyTorch")
def test_files_of_torch(tmp_path: Path) -> None:
    import torch

    shared = torch.arange(6.0).reshape(2, 3)
    tensors = {"a": shared, "b": shared, "t": shared.T, "h": torch.ones(2, dtype=torch.bfloat16)}
    torch.save(tensors, tmp_path / "a.pth")
    torch.save(tensors, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for path in (tmp_path / "a.pth", tmp_path / "old.pt"):
        assert as_json("ls", path)["total"] == {"tensors": 4, "nbytes": 52}
        assert run("check", path, "--values")[0] == 0
        made = tmp_path / "b.safetensors"
        assert run("convert", path, made, "--force")[0] == 0
        assert run("diff", path, made)[0] == 0
        found = io.load(made)
        assert found["a"] is found["b"]
        assert found["t"].tolist() == shared.T.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ls", "none.safetensors"), "does not exist"),
        (("ls", "{a}", "--match", "enc.x"), "did you mean 'enc."),
        (("check",), "Missing argument 'PATHS...'"),
        (("diff", "{a}", "none.npz"), "does not exist"),
        (("convert", "{a}", "{a}"), "give --force"),
        (("convert", "{a}", "x.bin"), "must end in .safetensors or .npz"),
        (("convert", "{a}", "x.safetensors", "--dtype", "int8"), "must be a floating one"),
        (("convert", "{a}", "x.safetensors", "--dtype", "float23"), "float23"),
        (("convert", "{a}", "x.safetensors", "--rename", "(", ""), "is no regular expression"),
        (("convert", "{a}", "x.safetensors", "--rename", "w", r"\1"), "does not fit"),
        (("convert", "{a}", "x.safetensors", "--rename", "^.+", "x"), "would both be named 'x'"),
        (("convert", "{a}", "x.safetensors", "--max-shard-size", "many"), "max_shard_size"),
        (("convert", "{a}", "x.npz"), "cast it to float32"),
        (("convert", "{a}", "x.npz", "--max-shard-size", "1KB", "--dtype", "float32"), "only .safetensors"),
        (("convert", "{a}", "x.safetensors", "--metadata", "x"), "NAME=TEXT"),
        (("convert", "{a}", "no/folder/x.safetensors"), "its folder does not exist"),
    ],
)
def test_a_wrong_argument_exits_with_status_2(
    file: Path, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    before = os.listdir(file.parent)
    status, _, errors = run(*(text.replace("{a}", str(file)) for text in arguments))
    assert status == 2
    assert message in " ".join(errors.split())
    assert os.listdir(file.parent) == before


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_ctrl_c_leaves_nothing_behind(file: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sources._Shards.blocks

    def interrupted(self: Any, name: str) -> Iterator[Any]:
        yield from real(self, name)
        if name == "enc.b":
            raise KeyboardInterrupt

    monkeypatch.setattr(sources._Shards, "blocks", interrupted)
    before = sorted(os.listdir(file.parent))
    for options in ((), ("--max-shard-size", "16")) if ending == "safetensors" else (("--dtype", "float32"),):
        status, _, errors = run("convert", file, file.parent / f"b.{ending}", *options)
        assert (status, errors) == (130, "Interrupted.\n")
        assert sorted(os.listdir(file.parent)) == before
