"""The memory that a header takes, whoever wrote it: its bytes, what it describes, and a constant."""

import json
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from emberharmony import io, ops
from emberharmony.errors import EmberError
from emberharmony.io import parsing
from tests.io.files import VALID, packed
from tests.io.test_hostile import mutated

CONSTANT = 4_000_000
"""More than one piece of 64 KB of JSON, the worst kind, takes."""


def peak(path: Path) -> tuple[int, str]:
    """Returns the bytes that are allocated to read a header, and what is said about the file."""
    tracemalloc.start()
    try:
        io.open(path).close()
        said = "correct"
    except EmberError as error:
        said = str(error)
    finally:
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return found, said


def filled(head: str, unit: str, tail: str, size: int) -> bytes:
    return packed(head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail, b"")


NONSENSE = {
    "lists": ('{"a":[', "[],", "[]]}"),
    "lists in a field": ('{"a":{"x":[', "[],", "[]]}}"),
    "objects behind an object": ('{"a":{"x":{},"y":[', "{},", "{}]}}"),
    "strings in a field": ('{"a":{"x":[', '"ab",', '""]}}'),
    "a long shape": ('{"a":{"dtype":"F32","shape":[', "1,", "1]}}"),
    "a long number": ('{"a":{"dtype":"F32","shape":[', "9", "]}}"),
    "lists in metadata": ('{"__metadata__":{"a":[', "[],", "[]]}}"),
    "pairs in metadata": ('{"__metadata__":{', '"ab":"",', '"":""}}'),
    "brackets": ("{", "[", "}"),
    "ends of entries": ("{", "},", "}"),
    "ends in a string": ('{"', "},", "}"),
    "quotes": ("{", '"', "}"),
    "backslashes": ('{"', "\\", "}"),
    "spaces": ("{", " ", "x}"),
    "letters": ("{", "x", "}"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_long_header_of_nonsense_is_refused_before_it_is_parsed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(filled(*NONSENSE[name], size=8_000_000))
    found, said = peak(path)
    assert said != "correct"
    copies = 3 if "metadata" in name else 1  # metadata may be one long text, so the whole of it is examined
    assert found < copies * path.stat().st_size + CONSTANT


@pytest.mark.slow
@pytest.mark.parametrize("name", NONSENSE)
def test_a_header_of_100_mb_of_nonsense(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(filled(*NONSENSE[name], size=99_999_999))
    found, said = peak(path)
    path.unlink()
    assert said != "correct"
    assert found < (3 if "metadata" in name else 1) * 100_000_000 + CONSTANT


def test_a_size_that_the_file_does_not_have_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for size in (2**64 - 1, 100_000_001, 100_000_000, 1_000_000):
        path.write_bytes(struct.pack("<Q", size) + b"{}")
        assert peak(path)[0] < 100_000


def test_a_header_of_the_smallest_entries_takes_a_few_times_its_size(tmp_path: Path) -> None:
    entry = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    path = tmp_path / "a.safetensors"
    text = json.dumps({f"{i:x}": entry for i in range(20_000)}, separators=(",", ":"))
    path.write_bytes(packed(text, b""))
    found, said = peak(path)
    assert said == "correct"
    assert found < 8 * len(text) + CONSTANT


def test_a_long_text_in_metadata_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    text = '{"a": [1, 2]}, ' * 100_000
    path.write_bytes(packed({"__metadata__": {"x": text}}, b""))
    assert io.check(path).metadata["x"] == text
    assert peak(path)[0] < 8 * len(text) + CONSTANT


def judge(path: Path, seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads so many mutated files; each must take little memory, and each byte of it be examined a few times only."""
    source, outline, examined = random.Random(seed), parsing._outline, 0

    def counted(raw: bytes, *arguments: Any, **options: Any) -> Any:
        nonlocal examined
        examined += len(raw)
        return outline(raw, *arguments, **options)

    monkeypatch.setattr(parsing, "_outline", counted)
    files = [*VALID.values()]
    tracemalloc.start()
    try:
        for i in range(rounds):
            content = mutated(source.choice(files), source)
            path.write_bytes(content)
            tracemalloc.reset_peak()
            before, examined = tracemalloc.get_traced_memory()[0], 0
            try:
                with io.open(path, mmap=i % 2 == 0) as file:
                    for name in file:
                        file.raw(name)
            except EmberError:
                pass
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken < 2 * len(content) + CONSTANT, content
            assert examined <= 3 * len(content) + 1, content  # otherwise some header would take minutes
    finally:
        tracemalloc.stop()


def test_mutated_files_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ops.use_backend("numpy"):
        judge(tmp_path / "a.safetensors", 5, 300, monkeypatch)


@pytest.mark.slow
def test_a_hundred_thousand_mutated_files_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ops.use_backend("numpy"):
        judge(tmp_path / "a.safetensors", 6, 100_000, monkeypatch)
