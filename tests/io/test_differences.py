"""The differences between two files of tensors, element by element, in exact numbers."""

from contextlib import closing

import numpy as np
import pytest

from emberharmony import io, ops
from emberharmony.io.differences import differences
from emberharmony.io.sources import source

LARGEST = 2**64 - 1


def compared(tmp_path, x, y):
    """Returns the difference of two arrays that are saved under one name."""
    with ops.use_backend("numpy"):
        io.save({"t": x}, tmp_path / "a.safetensors")
        io.save({"t": y}, tmp_path / "b.safetensors")
    with closing(source(tmp_path / "a.safetensors")) as a, closing(source(tmp_path / "b.safetensors")) as b:
        (found,) = differences(a, b, ["t"], lambda size: None)
    return found


@pytest.mark.parametrize(
    "dtype, x, y, absolute",
    [
        ("uint64", [0, 5], [LARGEST, 5], LARGEST),
        ("uint64", [LARGEST, 5], [0, 5], LARGEST),
        ("int64", [-(2**63), 1], [2**63 - 1, 1], LARGEST),
        ("int64", [2**63 - 1], [-(2**63)], LARGEST),
        ("int64", [2**53], [2**53 + 1], 1),
        ("int8", [-128, 3], [127, 4], 255),
        ("uint8", [1], [2], 1),
        ("bool", [True, False], [False, False], 1),
        ("float32", [1.0, 2.0], [1.5, 4.0], 2.0),
        ("float16", [1.0, np.inf], [1.0, 1.0], np.inf),
        ("complex64", [3 + 4j], [0], 5.0),
    ],
)
def test_the_largest_difference(tmp_path, dtype, x, y, absolute):
    a, b = np.array(x, dtype), np.array(y, dtype)
    found = compared(tmp_path, a, b)
    assert (found.kind, found.elements, found.absolute) == ("values", int(np.count_nonzero(a != b)), absolute)
    assert compared(tmp_path, a, a.copy())[:1] + compared(tmp_path, a, a.copy())[4:] == ("t", 0, 0, 0.0, 0)


def test_nan_on_one_side_is_counted(tmp_path):
    x = np.array([np.nan, np.nan, 1.0, 2.0], "float32")
    y = np.array([np.nan, 1.0, np.nan, 2.0], "float32")
    found = compared(tmp_path, x, y)
    assert (found.kind, found.elements, found.nans, found.absolute) == ("values", 2, 2, 0.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_zeros_of_both_signs_differ_in_their_bits(tmp_path, dtype):
    found = compared(tmp_path, np.array([0.0, -0.0, 1.0], dtype), np.array([-0.0, -0.0, 1.0], dtype))
    assert (found.kind, found.elements, found.absolute) == ("values", 1, 0.0)


def test_the_relative_difference_is_that_to_the_larger(tmp_path):
    found = compared(tmp_path, np.array([1.0, 100.0]), np.array([2.0, 101.0]))
    assert (found.absolute, found.relative) == (1.0, 0.5)


def test_another_dtype_and_another_shape(tmp_path):
    found = compared(tmp_path, np.array([1.0, 2.0], "float32"), np.array([1.0, 2.5], "float64"))
    assert (found.kind, found.elements, found.absolute) == ("dtype", 1, 0.5)
    assert compared(tmp_path, np.zeros((2, 3)), np.zeros((3, 2))).kind == "shape"
