"""The promotion table equals JAX's lattice with 64-bit types, and the ops of every backend follow it."""

import csv
from itertools import combinations_with_replacement, permutations
from pathlib import Path

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core.dtypes import ALL, INTEGERS, DType, as_dtype, complex64, float64, int64
from emberharmony.core.errors import DTypeError, RangeError
from emberharmony.core.numeric.promotion import TABLE, as_inexact, check_fits, promote, promote_weak
from tests.together import together

with (Path(__file__).parent / "jax_promotion.csv").open() as file:
    JAX = {(as_dtype(row["a"]), as_dtype(row["b"])): as_dtype(row["jax"]) for row in csv.DictReader(file)}


def test_the_table_equals_the_lattice_of_jax() -> None:
    assert len(JAX) == 225
    assert TABLE == JAX


def test_the_order_of_two_dtypes_does_not_matter() -> None:
    assert all(TABLE[a, b] is TABLE[b, a] for a, b in TABLE)


def test_promote_accepts_any_number_of_dtypes() -> None:
    assert promote(as_dtype("int8"), as_dtype("uint8"), as_dtype("float16")) == "float16"
    # The integers alone would give float64, which would widen the float.
    for order in permutations(map(as_dtype, ("int64", "uint64", "float32"))):
        assert promote(*order) == "float32"
    assert promote(as_dtype("int64"), as_dtype("uint64"), as_dtype("bool")) == "float64"


WEAK = {  # by dtype, the dtypes of its combination with a Python boolean, integer, float and complex number
    "bool": ("bool", "int64", "float32", "complex64"),
    "int8": ("int8", "int8", "float32", "complex64"),
    "uint64": ("uint64", "uint64", "float32", "complex64"),
    "float16": ("float16", "float16", "float16", "complex64"),
    "bfloat16": ("bfloat16", "bfloat16", "bfloat16", "complex64"),
    "float32": ("float32", "float32", "float32", "complex64"),
    "float64": ("float64", "float64", "float64", "complex128"),
    "complex64": ("complex64",) * 4,
    "complex128": ("complex128",) * 4,
}


@pytest.mark.parametrize("name", WEAK)
def test_python_numbers_are_weak(name: str) -> None:
    assert tuple(promote_weak(as_dtype(name), kind) for kind in (bool, int, float, complex)) == WEAK[name]


@together("pair", list(combinations_with_replacement(ALL, 2)))
def test_add_returns_the_dtype_of_the_table(pair: tuple[DType, DType], backend: str) -> None:
    available = current().dtypes.available
    if not set(pair) <= set(available):
        pytest.skip(f"{backend} lacks one of the two dtypes")
    x1, x2 = (ops.convert_to_tensor([1, 0], dtype=d) for d in pair)
    if TABLE[pair] not in available:
        with pytest.raises(DTypeError, match="promote to"):
            ops.add(x1, x2)
        return
    for result in (ops.add(x1, x2), ops.add(x2, x1)):
        assert ops.dtype(result) == TABLE[pair]
        assert ops.to_numpy(ops.cast(result, "float32")).tolist() == [1.0 if pair[0] == pair[1] == "bool" else 2.0, 0.0]


@pytest.mark.parametrize("number", [True, 2, 2.5, 1j], ids=str)
@together("dtype", ALL)
def test_a_python_number_does_not_widen_a_tensor_of_its_kind(dtype: DType, number: complex, backend: str) -> None:
    available = current().dtypes.available
    if dtype not in available:
        pytest.skip(f"{backend} lacks {dtype.name}")
    wanted = promote_weak(dtype, type(number))
    x = ops.convert_to_tensor([1, 0], dtype=dtype)
    if wanted not in available:
        with pytest.raises(DTypeError):
            ops.add(x, number)
        return
    assert ops.dtype(ops.add(x, number)) == wanted
    assert ops.dtype(ops.add(number, x)) == wanted
    assert np.asarray(ops.to_numpy(ops.cast(ops.add(x, number), wanted))).shape == (2,)


def test_a_0d_tensor_promotes_like_any_other_tensor(backend: str) -> None:
    wide = ops.convert_to_tensor(1.0, dtype="float64")
    narrow = ops.convert_to_tensor([1.0, 2.0], dtype="float32")
    assert ops.dtype(ops.add(wide, narrow)) == float64
    assert ops.dtype(ops.add(narrow, wide)) == float64
    assert ops.dtype(ops.add(ops.convert_to_tensor([1], dtype="int8"), ops.convert_to_tensor(1))) == int64


@pytest.mark.parametrize(("dtype", "number"), [("int8", 300), ("uint8", -1), ("int64", 2**70), ("int32", -(2**31) - 1)])
def test_an_integer_outside_the_range_of_the_dtype_raises(dtype: str, number: int, backend: str) -> None:
    x = ops.convert_to_tensor([1, 2], dtype=dtype)
    with pytest.raises(RangeError, match=rf"add\(\) on backend '{backend}': the integer {number} does not fit {dtype}"):
        ops.add(x, number)


@pytest.mark.parametrize(("dtype", "number"), [("int8", 127), ("int8", -128), ("uint8", 255), ("int64", -(2**63))])
def test_the_least_and_the_greatest_integer_of_a_dtype_fit(dtype: str, number: int, backend: str) -> None:
    x = ops.convert_to_tensor([0], dtype=dtype)
    assert ops.to_numpy(ops.add(x, number)).tolist() == [number]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("number", [2**63, 2**64, -(2**70)])
def test_a_floating_tensor_accepts_integers_beyond_64_bits(dtype: str, number: int, backend: str) -> None:
    x = ops.cast([1.0, 0.0], dtype)
    known = ops.cast(ops.convert_to_tensor(float(number), dtype="float64"), dtype)
    for result in (ops.multiply(x, number), ops.where([True, False], number, x), ops.add(number, ops.multiply(x, 0))):
        assert ops.dtype(result) == dtype
        assert ops.to_numpy(result)[0] == ops.to_numpy(known)
    if dtype != "complex64":
        assert ops.less(x, number).tolist() == [number > 0] * 2
        assert ops.to_numpy(ops.clip(x, -abs(number), abs(number))).tolist() == [1.0, 0.0]


def test_an_integer_beyond_the_range_of_floats_raises(backend: str) -> None:
    for dtype in ("float32", "float64", "bfloat16"):
        with pytest.raises(RangeError, match=rf"add\(\) on backend '{backend}'"):
            ops.add(ops.cast([1.0], dtype), 10**400)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_integers_beside_the_range_do_not_fit(dtype: DType) -> None:
    limits = np.iinfo(dtype.name)
    for number in (limits.min, limits.max):
        check_fits(int(number), dtype)
    holds = f"{dtype}, which holds {limits.min} to {limits.max}"
    for number in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(RangeError, match=f"{number} does not fit {holds}"):
            check_fits(number, dtype)


def test_check_fits_ignores_floats_and_floating_dtypes() -> None:
    check_fits(3.5, as_dtype("int8"))
    check_fits(10**30, as_dtype("float32"))


def test_as_inexact_turns_integers_into_float32_and_keeps_complex() -> None:
    assert as_inexact(as_dtype("int8")) == "float32"
    assert as_inexact(complex64) is complex64
