"""Ops about dtypes: promotion, limits, kinds, and the info of the array API namespace."""

import enum

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, DTypeError
from emberharmony.core.registry import OPS
from tests.backend.fast_paths.comparing import general


def test_result_type_of_a_numpy_scalar_is_that_of_its_dtype(backend: str) -> None:
    assert ops.result_type("float32", np.float64(1.0)) == "float64"
    assert ops.result_type("float32", np.complex128(1.0)) == "complex128"
    assert ops.result_type("int8", np.int16(1), True) == "int16"
    assert ops.result_type("int8", enum.IntEnum("E", "ONE").ONE) == "int8"


def test_result_type_promotes_tensors_dtypes_and_numbers(backend: str) -> None:
    x = ops.convert_to_tensor([1], dtype="int8")
    assert ops.result_type(x, "float16") == "float16"
    assert ops.result_type(x, 2.5) == "float32"
    assert ops.result_type(1, 2.5) == "float32"
    with pytest.raises(ArgumentError):
        ops.result_type()


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo_agrees_with_numpy(name: str) -> None:
    ours, numpys = ops.finfo(name), np.finfo(name)
    assert ours.bits == numpys.bits
    assert (ours.eps, ours.max, ours.min, ours.smallest_normal) == tuple(
        float(v) for v in (numpys.eps, numpys.max, numpys.min, numpys.smallest_normal)
    )


@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "uint64"])
def test_iinfo_agrees_with_numpy(name: str) -> None:
    ours, numpys = ops.iinfo(name), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min) == (numpys.bits, numpys.max, numpys.min)


def test_finfo_refuses_integers_and_iinfo_refuses_floats() -> None:
    with pytest.raises(DTypeError, match="iinfo"):
        ops.finfo("int8")
    with pytest.raises(DTypeError, match="finfo"):
        ops.iinfo("float32")
    assert ops.finfo("complex64").dtype == "float32"


@pytest.mark.parametrize(
    ("dtype", "kind", "wanted"),
    [
        ("int8", "integral", True),
        ("bool", "numeric", False),
        ("bool", "bool", True),
        ("float32", ("bool", "real floating"), True),
        ("float32", "float64", False),
        ("complex64", "complex floating", True),
        ("uint8", "unsigned integer", True),
    ],
)
def test_isdtype_tells_the_kind_of_a_dtype(dtype: str, kind: object, wanted: bool) -> None:
    assert ops.isdtype(dtype, kind) is wanted


def test_isdtype_refuses_unknown_kinds() -> None:
    with pytest.raises(ArgumentError, match="expected kind to be"):
        ops.isdtype("int8", "whole")


def test_can_cast_follows_promotion(backend: str) -> None:
    assert ops.can_cast("int8", "int32")
    assert not ops.can_cast("float32", "int32")
    assert ops.can_cast(ops.convert_to_tensor([1.0]), "float64")


def test_finfo_and_iinfo_accept_tensors(backend: str) -> None:
    assert ops.finfo(ops.zeros(2, dtype="float16")).bits == 16
    assert ops.iinfo(ops.convert_to_tensor([1])).max == 2**63 - 1


def test_the_namespace_info_is_that_of_the_standard(backend: str) -> None:
    assert ops.__array_api_version__ == "2025.12"
    info = ops.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert set(info.capabilities()) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    defaults = info.default_dtypes()
    assert defaults["real floating"] == ops.dtype([1.5])
    assert defaults["complex floating"] == ops.dtype([1.5j])
    assert defaults["integral"] == ops.dtype([1])
    assert defaults["indexing"] == ops.dtype(ops.argmax([1.0, 2.0]))
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    assert set(info.dtypes(kind=("bool", "complex floating"))) - {"complex128"} == {"bool", "complex64"}
    assert ("complex128" in info.dtypes()) == (backend != "mlx")
    assert not {"float16", "bfloat16"} & set(info.dtypes())
    assert isinstance(info.devices(), tuple)
    with pytest.raises(ArgumentError, match="kind is one of"):
        info.dtypes(kind="whole")


def test_native_dtype_is_that_of_the_tensors(backend: str) -> None:
    for name in ("bool", "int8", "uint64", "float16", "float32", "bfloat16", "complex64"):
        native = ops.native_dtype(name)
        assert native == ops.zeros(1, name).dtype
        assert ops.native_dtype(native) == native
    assert ops.native_dtype(float) == ops.zeros(1).dtype
    with pytest.raises(DTypeError, match="native_dtype"):
        ops.native_dtype("float12")
    if backend == "mlx":
        with pytest.raises(DTypeError):
            ops.native_dtype("complex128")


@pytest.mark.parametrize("name", [name for name, spec in OPS.items() if any(p.cast for p in spec.parameters)])
def test_numbers_of_the_host_are_converted_once(name: str, backend: str) -> None:
    values = [
        ("float64", 0.1),
        ("float64", 2**24 + 1),
        ("int64", 2**53 + 1),
        ("uint64", 2**64 - 1),
        ("float16", 2049.0),
    ]
    for dtype, value in values:
        for given in (value, [value], [[value], [value]]):
            for call in (OPS[name].function, general(name)):
                found = ops.to_numpy(call(given, dtype))
                wanted = np.asarray(given, dtype)
                assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())
