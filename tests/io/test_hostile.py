"""Damaged and hostile files are refused with a typed error that says what is wrong, on every backend."""

import os
import pickle
import random
import sys
from pathlib import Path

import pytest

from emberharmony import io, ops
from emberharmony.errors import EmberError, WeightFileError
from emberharmony.io.header import hint_of_other_format
from tests.io.files import FOREIGN, HOSTILE, VALID


@pytest.mark.parametrize("mmap", [True, False])
def test_valid_files_are_read(backend: str, tmp_path: Path, mmap: bool) -> None:
    for name, content in VALID.items():
        path = tmp_path / "a.safetensors"
        path.write_bytes(content)
        with io.open(path, mmap=mmap) as file:
            for tensor, value in file.items():
                assert tuple(value.shape) == file.info(tensor).shape, name
                assert ops.dtype(value) == file.info(tensor).dtype, name
    assert len(VALID) > 20


def test_every_damaged_file_has_an_error_of_its_kind(backend: str, tmp_path: Path) -> None:
    wrong = []
    for name, (content, kind) in HOSTILE.items():
        path = tmp_path / "a.safetensors"
        path.write_bytes(content)
        try:
            io.open(path).close()
        except WeightFileError as error:
            if error.kind != kind or str(path) not in str(error) or len(str(error)) > 600:
                wrong.append((name, kind, str(error)[:200]))
        else:
            wrong.append((name, kind, "was read"))
    assert not wrong
    assert len(HOSTILE) > 150


def test_other_kinds_of_files_are_named(tmp_path: Path) -> None:
    for name, (content, word) in FOREIGN.items():
        path = tmp_path / "a.safetensors"
        path.write_bytes(content)
        with pytest.raises(WeightFileError) as caught:
            io.open(path)
        assert word in caught.value.hint, name


def test_a_deep_header_is_refused_with_any_limit_of_recursion(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(next(content for name, (content, _) in HOSTILE.items() if name == "nested: 1"))
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        with pytest.raises(WeightFileError, match=r"nested|brackets"):
            io.open(path)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path, "file"),
        (tmp_path / "pipe", "file"),
        (tmp_path / "none", "missing"),
        ("\0", "unreadable"),
    ):
        with pytest.raises(WeightFileError) as caught:
            io.open(path)
        assert caught.value.kind == kind


def test_an_error_survives_a_pickle() -> None:
    error = WeightFileError("hole", "a.safetensors", "has a hole", "weight", "save it again")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a.safetensors, tensor 'weight': has a hole; save it again"
    assert (again.kind, again.tensor) == ("hole", "weight")


def test_only_files_of_a_known_kind_are_named() -> None:
    for start in (b"", b"\1\2\3", b"\x80\x07", b"\0\0{"):
        assert hint_of_other_format(start) == ""
    for start, kind in ((b"\0\0", "zeros"), (b"\x80\x02", "pickle"), (b"\x80\x05", "pickle"), (b" <HTML", "HTML")):
        assert kind.lower() in hint_of_other_format(start).lower()


def mutated(content: bytes, source: random.Random) -> bytes:
    """Returns a file with some bytes changed, removed, repeated, or exchanged for digits and marks of JSON."""
    made = bytearray(content)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        head = min(len(made), 8 + int.from_bytes(made[:8], "little")) or 1
        at = source.randrange(head) if source.random() < 0.9 else source.randrange(len(made) or 1)
        match source.randrange(6):
            case 0:
                made[at : at + 1] = bytes([source.randrange(256)])
            case 1:
                made[at : at + 1] = source.choice(
                    (b"0", b"9", b"[", b"]", b"{", b"}", b'"', b",", b":", b"-", b"\\", b".")
                )
            case 2:
                del made[at : at + source.randrange(1, 9)]
            case 3:
                made[at:at] = made[at : at + source.randrange(1, 40)]
            case 4:
                made[at:at] = source.choice(
                    (b"999999999999999999999", b"[[[[", b'"a":', b"\xff\xfe", b"1e9", b"null", b"0")
                )
            case _:
                del made[source.randrange(len(made) or 1) :]
    if source.random() < 0.5:  # so that the header ends where the data begin
        length = max(0, len(made) - 8 - (len(content) - 8 - int.from_bytes(content[:8], "little")))
        made[:8] = length.to_bytes(8, "little")
    return bytes(made)


def judge(path: Path, seed: int, rounds: int) -> int:
    """Reads so many mutated files and returns how many were valid."""
    source = random.Random(seed)
    files = [*VALID.values()]
    valid = 0
    for i in range(rounds):
        content = mutated(source.choice(files), source)
        path.write_bytes(content)
        try:
            with io.open(path, mmap=i % 2 == 0) as file:
                for name in file:
                    assert file.info(name).nbytes <= len(content)
                    try:
                        file[name]
                    except EmberError:
                        file.raw(name)
            valid += 1
        except EmberError:
            pass
        except Exception as error:
            raise AssertionError(f"{error!r} for {content!r}") from error
    return valid


def test_mutated_files_raise_typed_errors_only(backend: str, tmp_path: Path) -> None:
    assert judge(tmp_path / "a.safetensors", 1, 700) > 20


@pytest.mark.slow
def test_a_hundred_thousand_mutated_files(backend: str, tmp_path: Path) -> None:
    assert judge(tmp_path / "a.safetensors", 2, 100_000) > 2000
