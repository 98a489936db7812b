"""A neutral dtype equals its name and the native dtypes of the same kind and width."""

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core import dtypes
from emberharmony.core.errors import DTypeError


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_dtype_equals_the_native_one_of_each_backend(dtype: dtypes.DType, backend: str) -> None:
    table = current().dtypes
    if dtype not in table.natives:
        pytest.skip(f"{backend} lacks {dtype.name}")
    native = table[dtype]
    assert dtype == native
    assert (dtype != native) is False
    assert all(other != native for other in dtypes.ALL if other is not dtype)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.name != "bfloat16"], ids=str)
def test_a_dtype_equals_the_numpy_dtype_in_both_orders(dtype: dtypes.DType) -> None:
    assert np.dtype(dtype.name) == dtype
    assert dtype == np.dtype(dtype.name)
    assert dtype == np.dtype(dtype.name).type


def test_a_dtype_equals_the_torch_dtype_in_both_orders() -> None:
    torch = pytest.importorskip("torch")
    assert ops.float32 == torch.float32
    assert torch.float32 == ops.float32
    assert ops.float32 != torch.float64
    assert torch.int32 != ops.float32


def test_a_dtype_equals_the_mlx_dtype_on_its_left_only() -> None:
    mx = pytest.importorskip("mlx.core")
    assert ops.float32 == mx.float32
    assert ops.float32 != mx.float16
    # MLX 0.32 answers False instead of NotImplemented; when this fails, remove the row from docs/semantics.md.
    assert (mx.float32 == ops.float32) is False
    assert mx.float32.__eq__(ops.float32) is False


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_dtype_is_a_hashable_and_picklable_singleton(dtype: dtypes.DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert {dtype: 1}[dtype.name] == 1
    assert str(dtype) == dtype.name == f"{dtype}"


def test_a_dtype_differs_from_other_objects() -> None:
    assert ops.float32 != "float64"
    assert ops.float32 != 32
    assert ops.float32 != None  # noqa: E711
    assert ops.float32 != object()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("double", "float64"),
        (float, "float32"),
        (int, "int64"),
        (bool, "bool"),
        (complex, "complex64"),
        (np.int8, "int8"),
    ],
)
def test_as_dtype_reads_names_and_python_and_numpy_types(given: object, wanted: str) -> None:
    assert dtypes.as_dtype(given).name == wanted


@pytest.mark.parametrize("given", ["flaot32", 3, None, object])
def test_as_dtype_refuses_objects_that_are_not_dtypes(given: object) -> None:
    with pytest.raises(DTypeError, match="is not a dtype"):
        dtypes.as_dtype(given)


def test_as_dtype_suggests_the_nearest_name() -> None:
    with pytest.raises(DTypeError, match="did you mean 'float32'"):
        dtypes.as_dtype("flaot32")


def test_the_default_float_is_the_dtype_of_python_floats(backend: str) -> None:
    ops.set_default_float("float64")
    try:
        assert ops.dtype(ops.convert_to_tensor([1.5])) == "float64"
        assert ops.dtype(ops.sin(ops.convert_to_tensor([1, 2]))) == "float64"
        assert ops.dtype(ops.add(ops.convert_to_tensor([1, 2]), 0.5)) == "float64"
        assert dtypes.as_dtype(float) is dtypes.float64
        assert dtypes.default_complex() is dtypes.complex128
    finally:
        ops.set_default_float("float32")
    assert ops.dtype(ops.convert_to_tensor([1.5])) == "float32"


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_what_follows_from_the_default_float(name: str, backend: str) -> None:
    integers = ops.array([1, 2], dtype="int32")
    half = ops.array([1.0], dtype="float16")
    calls = (
        lambda: ops.zeros(2, dtype=float),
        lambda: ops.cast(integers, float),
        lambda: ops.sin(integers),
        lambda: ops.divide(integers, integers),
        lambda: ops.multiply(integers, 0.5),
        lambda: ops.mean(integers),
        lambda: ops.ones(2),
        lambda: ops.one_hot(integers, 3),
    )
    for call in calls:  # so that what a call remembers is of the usual default
        call()
    ops.set_default_float(name)
    try:
        assert [ops.dtype(call()).name for call in calls] == [name] * len(calls)
        assert ops.dtype(ops.multiply(half, 0.5)) == "float16"
        assert dtypes.default_complex() == ("complex128" if name == "float64" else "complex64")
    finally:
        ops.set_default_float("float32")
    assert [ops.dtype(call()).name for call in calls] == ["float32"] * len(calls)


def test_an_array_in_either_byte_order_has_the_dtype_of_its_numbers(backend: str) -> None:
    for order in ("<", ">"):
        for code, name in (("f4", "float32"), ("i2", "int16"), ("u8", "uint64")):
            assert dtypes.as_dtype(np.dtype(order + code)) == name
            array = np.array([1, 258], order + code)
            assert ops.dtype(array) == name
            assert ops.to_numpy(ops.convert_to_tensor(array)).tolist() == [1, 258]


def test_the_default_float_must_be_a_floating_dtype() -> None:
    with pytest.raises(DTypeError, match="not a floating dtype"):
        ops.set_default_float("int32")


def test_an_error_names_the_dtype_that_the_backend_lacks(backend: str) -> None:
    if "complex128" in current().dtypes.available:
        assert ops.dtype(ops.convert_to_tensor([1.0], dtype="complex128")) == "complex128"
    else:
        with pytest.raises(DTypeError, match="has no dtype 'complex128'"):
            ops.convert_to_tensor([1.0], dtype="complex128")


def test_native_dtypes_of_a_third_party_are_known_once_its_table_exists() -> None:
    class Single:
        """A native dtype without a name."""

    native = Single()
    assert dtypes.native_name(native) is None
    table = dtypes.NativeDTypes("other", {dtypes.float32: native})
    assert dtypes.as_dtype(native) is dtypes.float32
    assert ops.float32 == native
    assert ops.float64 != native
    assert table["float32"] is native
    assert dtypes.native_name(Single()) is None


@pytest.mark.parametrize(
    "array",
    [
        np.ones(2, object),
        np.array(["a"]),
        np.array(["2020-01-01"], "M8[D]"),
        np.ones(2, np.longdouble),
        np.longdouble(1),
        np.datetime64("2020-01-01"),
    ],
)
def test_an_array_or_scalar_of_a_dtype_that_no_backend_has_is_refused(array: Any, backend: str) -> None:
    with pytest.raises(DTypeError):
        ops.sin(array)
    with pytest.raises(DTypeError):
        current().convert(array)


def test_two_threads_may_look_up_a_dtype_for_the_first_time() -> None:
    """The second one must not go on before the first has the native dtype."""
    begun, go = threading.Event(), threading.Event()
    native = np.dtype("V2")

    def made() -> np.dtype:
        begun.set()
        go.wait(10)
        return native

    table = dtypes.NativeDTypes("other", {dtypes.bfloat16: None}, on_first_use={dtypes.bfloat16: made})
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(table["bfloat16"])) for _ in range(2)]
    threads[0].start()
    begun.wait(10)
    threads[1].start()
    threads[1].join(0.1)
    go.set()
    for thread in threads:
        thread.join()
    assert found == [native, native]


def test_a_tensor_or_a_shape_in_the_place_of_a_dtype_has_a_hint(backend: str) -> None:
    with pytest.raises(DTypeError, match=r"the dtype comes after the tensor, as in ops.cast\(x, 'float32'\)"):
        dtypes.as_dtype(ops.ones((2, 3)))
    for shape in ((3, 2), [3, 2]):
        with pytest.raises(DTypeError, match=r"ops.reshape\(x, shape\) gives a tensor another shape"):
            dtypes.as_dtype(shape)
