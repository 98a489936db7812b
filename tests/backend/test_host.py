"""Tests how Python numbers, and lists of them, become tensors: their dtype, their bits and their errors."""

import array
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import host
from emberharmony.backend.host import numbers_to_host, to_host
from emberharmony.core import dtypes
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.errors import ArgumentTypeError, DTypeError, RangeError, ShapeError
from tests.together import together

HALFWAY = [2**24 + 1, 2**24 + 3, 2**53 + 1, 2**60 + 2**36 + 1, 2**62 + 2**38 - 1, -(2**62) - 2**38 - 1, 2**63 - 1]
"""Integers that float32 or float64 round, some of them otherwise if they are rounded twice."""
LISTS: dict[str, tuple[Any, str]] = {
    "integers": ([3, -1, 2], "int64"),
    "a tuple of integers": ((3, -1), "int64"),
    "integers of 64 bits": ([-(2**63), 2**63 - 1], "int64"),
    "wider integers": ([0, 2**63], "uint64"),
    "rows of integers": ([[1, 2], [3, 4]], "int64"),
    "rows of both kinds": ([(1, 2), [3, 4]], "int64"),
    "floats": ([0.1, 1e-46, 3.5], "default"),
    "floats that are not finite": ([float("inf"), -float("inf"), float("nan")], "default"),
    "rows of floats": ([[0.1], [0.7]], "default"),
    "booleans": ([True, False], "bool"),
    "booleans and integers": ([True, 5], "int64"),
    "integers and floats": ([1, 0.5], "default"),
    "booleans and floats": ([True, 0.5], "default"),
    "nothing": ([], "default"),
    "empty rows": ([[], []], "default"),
    "an integer": (7, "int64"),
    "a float": (0.1, "default"),
    "a boolean": (True, "bool"),
}


@pytest.mark.parametrize("floating", ["float32", "float64"])
@together("name", LISTS)
def test_numbers_have_the_dtype_of_their_kind(backend: str, name: str, floating: str) -> None:
    value, wanted = LISTS[name]
    before = ops.default_float()
    try:
        ops.set_default_float(floating)
        for convert in (ops.array, ops.asarray):
            found = ops.to_numpy(convert(value))
            dtype = floating if wanted == "default" else wanted
            assert found.dtype == dtype
            assert found.tobytes() == np.asarray(value, dtype).tobytes()
            assert found.shape == np.shape(value)
    finally:
        ops.set_default_float(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_integers_are_rounded_once(backend: str, dtype: str) -> None:
    found = ops.to_numpy(ops.array(HALFWAY, dtype))
    assert found.tobytes() == np.array(HALFWAY, "int64").astype(dtype).tobytes()
    assert found.tolist() == [ops.to_numpy(ops.array(number, dtype)).item() for number in HALFWAY]


@pytest.mark.parametrize("dtype", [dtype.name for dtype in dtypes.INTEGERS])
def test_integers_must_fit_their_dtype(backend: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    ends = [int(limits.min), int(limits.max)]
    assert ops.to_numpy(ops.array(ends, dtype)).tolist() == ends
    assert ops.to_numpy(ops.array([ends], dtype)).dtype == dtype
    for beyond in (ends[0] - 1, ends[1] + 1):
        for value in (beyond, [beyond], [[0, beyond]]):
            with pytest.raises(RangeError, match=r"does not fit"):
                ops.array(value, dtype)


@pytest.mark.parametrize("dtype", [None, "int32", "float32"])
def test_an_integer_beyond_64_bits_is_refused(backend: str, dtype: str | None) -> None:
    for value in (2**64, [2**64], [1, -(2**70)]):
        with pytest.raises(RangeError, match="fit"):
            ops.array(value, dtype)
    with pytest.raises(DTypeError, match="no backend has"):
        ops.array([2**70, 0.5], dtype)


@pytest.mark.parametrize("dtype", [None, "int64", "uint64"])
def test_integers_that_no_integer_dtype_holds_together_are_refused(backend: str, dtype: str | None) -> None:
    with pytest.raises(RangeError, match=r"fit|holds all"):
        ops.array([-1, 2**63], dtype)
    assert ops.to_numpy(ops.array([-1, 2**63], "float32")).tolist() == [-1.0, 2.0**63]


@pytest.mark.parametrize("dtype", [None, "int32", "float32", "bool"])
@pytest.mark.parametrize("value", [[[1, 2], [3]], [[], [1]], [[1.5], [1.5, 2.5]], [[[1], [2]], [[1]]]])
def test_ragged_lists_are_refused(backend: str, value: Any, dtype: str | None) -> None:
    with pytest.raises(ShapeError, match="rectangular"):
        ops.array(value, dtype)


@pytest.mark.parametrize("value", [[1.7, -1.7], [True, False], [0, 2], [0.0, 0.5, 1]])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "bool", "complex64"])
def test_numbers_take_a_dtype_as_they_do_in_numpy(backend: str, value: Any, dtype: str) -> None:
    found = ops.to_numpy(ops.array(value, dtype))
    assert found.dtype == dtype
    assert found.tolist() == np.asarray(value).astype(dtype).tolist()


def test_a_list_gives_a_tensor_of_its_own(backend: str) -> None:
    value = [[1, 2]]
    found = ops.array(value, "int32")
    value[0][0] = 5
    assert found.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "value", ["text", None, object(), np.ones(2), [np.float32(1)], [[1], [np.ones(1)]], 1 + 0 * np.int64(1)]
)
def test_only_numbers_of_python_and_their_lists_are_numbers(value: Any) -> None:
    assert numbers_to_host(value) is None


def test_numbers_of_subclasses_convert_as_others_do() -> None:
    class Count(int):
        """An integer of a class of its own."""

    assert numbers_to_host(Count(3)) is None
    assert to_host(Count(3)).dtype == "int64"
    assert to_host([Count(3)], dtypes.int8).dtype == "int8"


@pytest.mark.parametrize("value", [True, 3, 2.5, 1j, [1, 2], [[1.5, 2.0]], (1, True), []])
def test_numbers_of_python_take_the_short_way(value: Any) -> None:
    short = numbers_to_host(value)
    assert short is not None
    assert short.tolist() == np.asarray(value).tolist()


def test_an_array_that_was_pickled_becomes_a_tensor_with_the_dtype_object_of_numpy() -> None:
    array = pickle.loads(pickle.dumps(np.ones(3, np.float32)))
    with ops.use_backend("numpy") as backend:
        tensor = backend.unpack(HostBits(array, "float32"))
        assert tensor.dtype is np.ones(1, np.float32).dtype
        other = backend.unpack(HostBits(array.astype(">f4"), "float32"))
        assert (other.dtype, other.tolist()) == (np.float32, [1.0] * 3)


class Column:
    """A column as pandas has them.

    Args:
        dtype: the name of its dtype.
        values: its array.
    """

    def __init__(self, dtype: str, values: Any) -> None:
        self.dtype, self._values = dtype, values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._values

    def unique(self) -> Any:
        return np.unique(self._values)


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        ("sum", "it is one text: is it in the place of another argument"),
        (["a", 1.0], r"it holds text and numbers: convert the text by float\(item\)"),
        ([np.str_("a"), np.float64(1.0)], r"it holds text and numbers: convert the text by float\(item\)"),
        (["a", b"b"], "gives class ids of text"),
        ([np.array(["a"]), np.array(["b"])], "gives class ids of text"),
        (np.array(["a"]), "gives class ids of text"),
        ({1, 2}, r"a set has no order: pass list\(x\)"),
        ({"a": 1.0}, r"a dict has no order: pass list\(x.values\(\)\)"),
        ((i for i in range(3)), r"it is an iterator: list\(x\)"),
        ([1.0, None], r"it holds None: write float\('nan'\)"),
        (print, "it is a function or layer: call it"),
        (dict, "it is a class: make an object of it"),
        (np.array([{}]), r"x.astype\('float32'\)"),
        (Column("category", np.array(["a"], object)), r"x.cat.codes has an integer"),
        (Column("datetime64[ns]", np.array(["2026-11-30"], "datetime64[ns]")), r"x.astype\('int64'\) counts"),
        (Column("object", np.array(["a", "b"], object)), "gives class ids of text"),
    ],
)
def test_what_is_no_number_is_refused_with_the_way_out(value: Any, way_out: str) -> None:
    with pytest.raises(DTypeError, match=way_out):
        to_host(value)


class Broken:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("it has no numbers")


@pytest.mark.parametrize("value", [Broken(), [Broken()], [[1.0], [Broken()]]])
def test_what_makes_no_array_is_refused_with_its_own_error(backend: str, value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{type(value).__name__} does not convert to a tensor: it has no"):
        ops.asarray(value)


def test_buffers_take_a_dtype_as_lists_do(backend: str) -> None:
    for values in ([], [1, 100]):
        for dtype in ("int8", "int32", "int64", "float32", "bool"):
            found = ops.asarray(array.array("i", values), dtype)
            assert (ops.dtype(found), found.tolist()) == (dtype, np.array(values, dtype).tolist())
    with pytest.raises(RangeError, match="200"):
        ops.asarray(array.array("i", [200]), "int8")


def test_empty_lists_beside_empty_arrays_have_no_dtype_of_their_own(backend: str) -> None:
    found = ops.asarray([[], np.zeros(0, "int16")])
    assert (ops.dtype(found), tuple(found.shape)) == (ops.default_float(), (2, 0))
    assert ops.dtype(ops.asarray([[], np.zeros(0, "int16")], "int64")) == "int64"


def test_integers_become_floats_without_a_look_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_check_dtype", lambda *arguments, **options: pytest.fail("the integers were looked at"))
    array = numbers_to_host([1, 2], dtypes.float32)
    assert array is not None
    assert (array.dtype, array.tolist()) == (np.float32, [1.0, 2.0])
