"""`ops` or its namespaces have every name of Keras's ops and of the array API standard 2025.12."""

import csv
import types
from pathlib import Path
from typing import Any

import pytest

from emberharmony import ops

NAMES = list(csv.DictReader((Path(__file__).parent / "vocabulary.csv").read_text(encoding="utf-8").splitlines()))
SPACES = [ops, ops.fft, ops.image, ops.linalg, ops.nn, ops.random, ops.__array_namespace_info__()]
FLAT_ONLY = dict.fromkeys(
    ("cdist", "dot", "einsum", "inner", "kron", "logdet", "normalize", "vdot"),
    "neither standard has it in a namespace of linear algebra",
)


def _found(name: str) -> list[Any]:
    """Returns the objects of a name in all namespaces, except for modules."""
    found = [getattr(space, name) for space in SPACES if hasattr(space, name)]
    return [value for value in found if not isinstance(value, types.ModuleType)]


def test_every_name_of_the_vocabulary_exists() -> None:
    assert len(NAMES) == 423
    assert {row["name"] for row in NAMES if not _found(row["name"])} == set()


@pytest.mark.parametrize("family", ["fft", "image", "linalg", "nn", "random"])
def test_a_namespace_has_the_names_of_its_family(family: str) -> None:
    names = {row["name"] for row in NAMES if row["family"] == family} - FLAT_ONLY.keys()
    assert len(names) > 10
    assert {name for name in names if not callable(getattr(getattr(ops, family), name, None))} == set()


def test_image_ops_are_also_in_ops() -> None:
    for row in NAMES:
        if row["family"] == "image":
            assert getattr(ops, row["name"]) is getattr(ops.image, row["name"])


def test_capabilities_and_default_dtypes_agree_with_the_namespace_info() -> None:
    info = ops.__array_namespace_info__()
    assert ops.capabilities() == info.capabilities()
    assert ops.default_dtypes() == info.default_dtypes()
    assert ops.default_dtypes()["indexing"] == ops.dtype(ops.argmax([1.0, 2.0]))
    assert ops.default_dtypes()["real floating"] == ops.dtype(ops.zeros(2))
    assert ops.default_dtypes()["integral"] == ops.dtype(ops.arange(2))
