"""The verdict of the package `safetensors` on each file of `tests/io/files.py`, and where `io` decides otherwise."""

from pathlib import Path

import pytest

from emberharmony import io
from emberharmony.io.header import BITS
from tests.io.files import HOSTILE, VALID, packed

ACCEPTED = {"unknown field with a long number"}
"""What the package refuses: it makes every number a float64, also in fields that nobody reads."""

REFUSED = {
    *("begins with ' '", "begins with '\\n'"),  # the format demands "{"
    *("a tensor twice", "a tensor twice, once escaped", "a tensor twice, in two pieces"),  # the format forbids both
    *("a name of metadata twice", "an unknown field twice"),
    'entry is ["F32",[2],[0,8]]',  # an object with fields by name
    *("an entry of more than 1 MB", "an entry of many values", "metadata of many values"),  # these bound the memory
    *(name for name in HOSTILE if name.startswith("tied: ")),  # metadata of `io.save` itself
}
"""What the package reads; the docstring of `emberharmony/io/header.py` lists what is refused beside."""


def test_the_package_decides_as_we_do_except_where_it_is_listed(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    wrong = []
    for name, content in {**VALID, **{name: content for name, (content, _) in HOSTILE.items()}}.items():
        path.write_bytes(content)
        try:
            with safetensors.safe_open(path, "numpy") as file:
                read = file.keys() is not None
        except safetensors.SafetensorError:
            read = False
        if read == ((name in HOSTILE) != (name in (REFUSED | ACCEPTED))):
            wrong.append(name)
    assert not wrong
    assert {*HOSTILE} >= REFUSED


def test_the_package_knows_the_same_dtypes(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    for tag, bits in {**BITS, "C128": 128, "F8_E3M4": 8, "I4": 4, "U4": 4, "F8": 8}.items():
        path.write_bytes(packed({"a": {"dtype": tag, "shape": [8], "data_offsets": [0, bits]}}, bytes(bits)))
        try:
            with safetensors.safe_open(path, "numpy") as file:
                read = file.keys() == ["a"]
        except safetensors.SafetensorError:
            read = False
        assert read == io.check(path).ok == (tag in BITS), tag
