"""Conversion to and from tensors: copies, refusals, exchange with other libraries, evaluation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import errors

INSTALLED = [name for name in BUILTIN if is_installed(name)]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_tensor_of_the_dtype_is_returned_itself(backend: str) -> None:
    x = ops.convert_to_tensor(X)
    assert ops.convert_to_tensor(x) is x
    assert ops.convert_to_tensor(x, "float32") is x
    assert ops.cast(x, "float32") is x
    assert ops.asarray(x, copy=False) is x
    assert ops.asarray(x, device="cpu", dtype=ops.float32) is not None


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_copies_share_no_memory(backend: str, dtype: str) -> None:
    source = X.astype(dtype)
    x = ops.convert_to_tensor(source)
    copies = [ops.array(x), ops.copy(x), ops.asarray(x, copy=True), ops.astype(x, dtype), ops.astype(x, "float32")]
    for copied in copies:
        assert copied is not x
        assert not np.shares_memory(ops.to_numpy(copied), ops.to_numpy(x))


@pytest.mark.parametrize("dtype", [None, "float32", "int32", "bool"])
@pytest.mark.parametrize("kind", ["float32", "int64", "complex64"])
def test_an_array_of_elements_is_that_of_their_tensor(backend: str, kind: str, dtype: str | None) -> None:
    x = ops.convert_to_tensor(np.array([1.5, 0, 3]).astype(kind))
    for elements in ([x[0], x[1], x[2]], list(ops.to_numpy(x))):
        made, wanted = ops.array(elements, dtype), x if dtype is None else ops.cast(x, dtype)
        assert ops.dtype(made) == ops.dtype(wanted)
        assert ops.to_numpy(made).tolist() == ops.to_numpy(wanted).tolist()
        assert not np.shares_memory(ops.to_numpy(made), ops.to_numpy(x))


LISTS: list[list[Any]] = [
    *([1, 2], [[1.5, True], [2, -3]], [True], [[]], [(1, 2), [3, 4]], [300], [-1], [1e40], [0.1, 1 + 2j]),
    *([2**63], [2**70], [-(2**63), 2**63], [[1], [1, 2]], [1, [2]], [None], [1, "a"], [range(2)]),
]


@pytest.mark.parametrize("dtype", [None, "int32", "uint8", "uint64", "float16", "bfloat16", "float64", "bool"])
def test_an_array_of_numbers_is_what_the_complete_conversion_gives(dtype: Any, backend: str) -> None:
    def outcome(convert: Callable[..., Any], x: Any) -> Any:
        try:
            made = convert(x, dtype)
        except errors.EmberError as error:
            return type(error), str(error).partition("()")[2]
        return ops.dtype(made), tuple(made.shape), str(ops.to_numpy(ops.cast(made, "complex64")))

    for x in LISTS:
        assert outcome(ops.array, x) == outcome(ops.convert_to_tensor, x), x


def test_a_compiled_function_makes_arrays_of_numbers(backend: str) -> None:
    add = ops.compile(lambda x: ops.add(x, ops.array([1.0, 2.0])))
    for shift in 0.0, 1.0:
        assert add(ops.full((2,), shift)).tolist() == [1.0 + shift, 2.0 + shift]


def test_an_array_of_elements_of_several_dtypes_has_their_common_dtype(backend: str) -> None:
    elements = [np.float32(1.5), np.int32(2)]
    assert ops.dtype(ops.array([ops.convert_to_tensor(element) for element in elements])) == ops.float32
    assert ops.to_numpy(ops.array(elements, "float32")).tolist() == [1.5, 2.0]
    with pytest.raises(errors.ShapeError):
        ops.array([ops.zeros(2), ops.zeros(3)])
    assert ops.array([]).dtype == ops.zeros(0).dtype


def test_copy_false_raises_when_the_dtype_differs(backend: str) -> None:
    x = ops.convert_to_tensor(X)
    with pytest.raises(errors.ArgumentError, match="copy=False"):
        ops.asarray(x, dtype="float64", copy=False)


@pytest.mark.parametrize("value", [[1.0, 2.0], 1.0, True, [], np.float32(1), [X, X], X.astype(">f4")])
def test_copy_false_refuses_lists_numbers_and_swapped_arrays(value: object, backend: str) -> None:
    refused = rf"\(\) on backend '{backend}': .* copy=False refuses"
    with pytest.raises(errors.ArgumentError, match=rf"convert_to_tensor{refused}"):
        ops.asarray(value, copy=False)
    if not isinstance(value, np.ndarray) or backend != "numpy":
        with pytest.raises(errors.ArgumentError, match=rf"reshape{refused}"):
            ops.reshape(value, (-1,), copy=False)
    assert ops.asarray(value) is not None
    assert ops.astype(value, "float32", copy=False) is not None


def test_copy_false_shares_the_memory_of_host_arrays_or_raises(backend: str) -> None:
    source = X.copy()
    constant = X.copy()
    constant.flags.writeable = False
    for array, shared in ((source, ("numpy", "torch")), (source[::-1], ("numpy",)), (constant, ("numpy",))):
        for take in (ops.asarray, ops.from_dlpack, lambda x, copy: ops.reshape(x, x.shape, copy=copy)):
            if backend in shared:
                assert np.shares_memory(ops.to_numpy(take(array, copy=False)), array)
            else:
                with pytest.raises(errors.ArgumentError, match="copy=False refuses"):
                    take(array, copy=False)
            assert not np.shares_memory(ops.to_numpy(take(array, copy=True)), array)
    assert ops.shape(ops.asarray(X[:0], copy=False)) == (0, 3)


def test_copy_false_refuses_a_shape_that_needs_a_copy(backend: str) -> None:
    x = ops.transpose(ops.convert_to_tensor(X))
    if backend in ("mlx", "jax", "dask"):  # their tensors are immutable, so a copy has no visible effect
        assert ops.shape(ops.reshape(x, (6,), copy=False)) == (6,)
    else:
        with pytest.raises(errors.ArgumentError, match="this shape needs a copy, which copy=False refuses"):
            ops.reshape(x, (6,), copy=False)


def test_astype_without_copy_returns_the_tensor(backend: str) -> None:
    x = ops.convert_to_tensor(X)
    assert ops.astype(x, "float32", copy=False) is x


def test_float64_and_bfloat16_keep_their_precision(backend: str) -> None:
    assert float(ops.to_numpy(ops.convert_to_tensor(np.float64(1 / 3)))) == 1 / 3
    halves = ops.cast(ops.convert_to_tensor(X), "bfloat16")
    assert ops.to_numpy(halves).dtype.name == "bfloat16"
    assert ops.dtype(ops.convert_to_tensor(ops.to_numpy(halves))) == "bfloat16"


def test_host_arrays_of_any_strides_are_accepted(backend: str) -> None:
    for array in (X.T, X[::-1, ::-2], np.broadcast_to(X[0], (2, 3)), X.astype(">f4")):
        assert ops.to_numpy(ops.convert_to_tensor(array)).tolist() == array.tolist()


@pytest.mark.parametrize("source", ["numpy", "torch", "mlx"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64"])
def test_from_dlpack_keeps_values_and_dtype(backend: str, source: str, dtype: str) -> None:
    if not is_installed(source):
        pytest.skip(f"{source} is not installed")
    with ops.use_backend(source):
        foreign = ops.cast(ops.convert_to_tensor(X), dtype)
    if dtype == "bfloat16" and (source == "numpy" or backend in ("numpy", "dask")):
        with pytest.raises(errors.EmberError, match=r"from_dlpack\(\) on backend"):
            ops.from_dlpack(foreign)
        return
    taken = ops.from_dlpack(foreign)
    assert ops.is_tensor(taken)
    assert ops.dtype(taken) == dtype
    assert ops.to_numpy(ops.cast(taken, "float32")).tolist() == X.astype(bool if dtype == "bool" else "f4").tolist()


def test_from_dlpack_accepts_reversed_arrays(backend: str) -> None:
    assert ops.to_numpy(ops.from_dlpack(X[::-1, ::-1])).tolist() == X[::-1, ::-1].tolist()


def test_from_dlpack_refuses_objects_without_dlpack(backend: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="does not support DLPack"):
        ops.from_dlpack([1.0])
    with pytest.raises(errors.ArgumentTypeError, match="would lose its mask"):
        ops.from_dlpack(np.ma.masked_array([1.0], [True]))
    for array in (np.array(["a"]), np.array([object()])):
        with pytest.raises(errors.DTypeError, match="which no backend has"):
            ops.from_dlpack(array)


def test_what_is_no_array_is_refused_with_the_way_to_one(backend: str) -> None:
    with pytest.raises(errors.DTypeError, match="return the result of __call__"):
        ops.convert_to_tensor(None)
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(np.eye(2))
    with pytest.raises(errors.DTypeError, match=r"x\.toarray\(\) gives the array of a sparse matrix"):
        ops.convert_to_tensor(sparse)
    assert ops.to_numpy(ops.convert_to_tensor(sparse.toarray().astype("float32"))).tolist() == np.eye(2).tolist()


def test_a_tensor_that_torch_cannot_export_is_refused(backend: str) -> None:
    torch = pytest.importorskip("torch")
    tracked = torch.ones(2, requires_grad=True)
    if backend == "torch":
        assert ops.from_dlpack(tracked) is tracked
    else:
        with pytest.raises(errors.ArgumentError, match="require gradient"):
            ops.from_dlpack(tracked)


def test_from_dlpack_converts_the_other_byte_order(backend: str) -> None:
    for copy in (None, True):
        x = ops.from_dlpack(X.astype(">f4"), copy=copy)
        assert ops.dtype(x) == "float32"
        assert ops.to_numpy(x).dtype.isnative
        assert x.tolist() == X.tolist()
    with pytest.raises(errors.ArgumentError, match="copy=False refuses"):
        ops.from_dlpack(X.astype(">f4"), copy=False)


def test_view_reads_bits_in_the_byte_order_of_the_machine(backend: str) -> None:
    swapped = np.array([1, -2], ">i4")
    assert ops.view(swapped, "uint8").tolist() == np.array([1, -2], "i4").view("u1").tolist()
    assert ops.view(-swapped, "uint16").tolist() == np.array([-1, 2], "i4").view("u2").tolist()
    assert ops.dtype(swapped) == "int32"
    assert ops.dtype(ops.zeros(2, swapped.dtype)) == "int32"
    assert ops.result_type(swapped, np.ones(1, ">f4")) == "float32"


@pytest.mark.parametrize("masked", [np.ma.masked_array(X, X > 2), [np.ma.masked_array(X)], [1.0, np.ma.masked]])
def test_masked_arrays_are_refused(masked: object, backend: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: ops.asarray(masked),
        lambda: ops.add(1.0, masked),
        lambda: ops.where(True, masked, 0.0),
        lambda: ops.take([1.0, 2.0], masked),
        lambda: ops.get_item(ops.ones(3), masked),
    ]
    for call in calls:
        with pytest.raises(errors.EmberError, match=rf"^\w+\(\) on backend '{backend}'") as caught:
            call()
        assert isinstance(caught.value, TypeError)
    for indices in (np.ma.masked_array([0, 1], [False, True]), np.ma.masked_array([True, False], True)):
        for key in (indices, (slice(None), indices), (0, [indices])):
            with pytest.raises(errors.ArgumentTypeError, match="would lose its mask"):
                ops.get_item(ops.ones((2, 2, 2)), key)
    with pytest.raises(errors.ArgumentTypeError, match=r"pass x\.filled\(value\), or x\.data and the mask x\.mask"):
        ops.sum(masked)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "float32", "bool"])
def test_numpy_gets_its_own_dtype_not_one_that_equals_it(dtype: str, backend: str) -> None:
    array = ops.to_numpy(ops.ones((2,), dtype=dtype))
    assert array.dtype.num == np.dtype(dtype).num  # compiled code compares these numbers


def test_a_numpy_matrix_is_treated_as_an_array(backend: str) -> None:
    matrix = X[:, :2].view(np.matrix)
    assert ops.to_numpy(ops.multiply(matrix, matrix)).tolist() == (X[:, :2] ** 2).tolist()
    assert ops.shape(ops.sum(matrix, axis=0)) == (2,)
    assert type(ops.to_numpy(ops.asarray(matrix))) is np.ndarray
    assert ops.shape(ops.stack([matrix, matrix])) == (2, 2, 2)


def test_comparisons_of_strings_are_refused(backend: str) -> None:
    words = np.array(["a", "b"])
    for op in (ops.equal, ops.not_equal, ops.isin, ops.less, ops.maximum, ops.isclose, ops.array_equal):
        for first, second in (
            (words, words),
            (words, words[:1]),
            (["a"], ["a"]),
            ("a", "a"),
            (words.astype(object),) * 2,
        ):
            with pytest.raises(errors.DTypeError, match=rf"\(\) on backend '{backend}': .*no backend has"):
                op(first, second)


@pytest.mark.parametrize(("shape", "dtype", "wanted"), [((3,), "int16", "int32"), ((), "float32", "int16")])
def test_view_refuses_a_last_axis_that_does_not_divide(
    backend: str, shape: tuple[int, ...], dtype: str, wanted: str
) -> None:
    with pytest.raises(errors.ShapeError, match=r"view\(\) on backend"):
        ops.view(ops.zeros(shape, dtype), wanted)


def test_two_views_restore_the_tensor(backend: str) -> None:
    x = ops.convert_to_tensor(X)
    assert ops.to_numpy(ops.view(ops.view(x, "uint8"), "float32")).tolist() == X.tolist()
    assert ops.shape(ops.view(ops.transpose(x), "uint8")) == (3, 8)


def test_eval_returns_none_for_any_tree(backend: str) -> None:
    x = ops.zeros(3)
    assert ops.eval() is None
    assert ops.eval(x, {"a": [x, 1, None]}, "text") is None


def test_is_tensor_accepts_only_tensors_of_the_backend(backend: str) -> None:
    assert ops.is_tensor(ops.zeros(()))
    assert not ops.is_tensor(1.0)
    assert not ops.is_tensor([1.0])
    assert ops.is_tensor(X) == (backend == "numpy")


@pytest.mark.parametrize("convert", [ops.asarray, ops.array, ops.cast, ops.astype], ids=lambda f: f.__name__)
def test_numbers_are_read_in_the_given_dtype(backend: str, convert: Callable[..., Any]) -> None:
    assert convert([0.1, 2], "float64").tolist() == [0.1, 2.0]
    assert float(convert(0.1, ops.float64)) == 0.1
    assert convert([2**53 + 1], "int64").tolist() == [2**53 + 1]
    assert convert([2**64 - 1], "uint64").tolist() == [2**64 - 1]
    assert convert([1.7, -1.7], int).tolist() == [1, -1]
    assert convert([1 + 2j], "float32").tolist() == [1.0]
    assert convert([0.0, 0.5], bool).tolist() == [False, True]
    assert convert([], "int8").shape == (0,)
    assert convert(np.float32([0.1]), "float64").tolist() == [float(np.float32(0.1))]
    for beyond, dtype in (([1, 300], "int8"), (-1, "uint8"), ([2**63], int)):
        with pytest.raises(errors.RangeError, match=r"\(\) on backend '\w+': the integer -?\d+ does not fit"):
            convert(beyond, dtype)


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([object()]), np.array(["2020"], "datetime64[D]")])
def test_arrays_without_numbers_are_refused(backend: str, array: np.ndarray[Any, Any]) -> None:
    for convert in (ops.convert_to_tensor, ops.array):
        with pytest.raises(errors.DTypeError, match=rf"\(\) on backend '{backend}'"):
            convert(array)


def test_tensors_have_the_byte_order_of_the_machine(backend: str) -> None:
    for kind in (">i4", ">f8", ">u2"):
        x = ops.convert_to_tensor(np.array([1, 2], kind))
        assert ops.dtype(x).name == np.dtype(kind).name
        assert x.tolist() == [1, 2]
        assert ops.to_numpy(x).dtype.isnative


def test_nested_lists_may_contain_tensors(backend: str) -> None:
    x = ops.convert_to_tensor(np.float32(3.0))
    for nested in ([[x, 1.0], [2.0, x]], [(x, 1), [2, x]]):
        tensor = ops.convert_to_tensor(nested)
        assert ops.dtype(tensor) == "float32"
        assert tensor.tolist() == [[3.0, 1.0], [2.0, 3.0]]
    gradient = ops.grad(lambda x: ops.sum(ops.convert_to_tensor([[x, 1.0], [2.0, ops.multiply(x, x)]])))(x)
    assert float(gradient) == 7.0


def test_an_object_that_is_not_a_dtype_is_refused(backend: str) -> None:
    x = ops.convert_to_tensor(X)
    for call in (ops.cast, ops.astype, ops.view):
        for dtype in (None, "float7", object):
            with pytest.raises(errors.DTypeError, match="is not a dtype"):
                call(x, dtype)


def test_view_accepts_tensors_without_elements(backend: str) -> None:
    for dtype, wanted in (("bool", "int32"), ("float64", "uint8"), ("int16", "uint16")):
        x = ops.zeros((2, 0), dtype)
        assert ops.shape(ops.view(x, wanted)) == (2, 0)
        assert ops.dtype(ops.view(x, wanted)) == wanted


@pytest.mark.parametrize("name", INSTALLED)
@given(data=st.data())
def test_views_never_change_the_bits(name: str, data: st.DataObject) -> None:
    kinds = st.sampled_from(["uint8", "int16", "uint32", "int64", "float32", "uint64"])
    first, second = data.draw(kinds), data.draw(kinds)
    shape = data.draw(st.lists(st.integers(0, 2), max_size=2).map(lambda lengths: (*lengths, 8)))
    bits = np.arange(int(np.prod(shape)), dtype=np.uint8).reshape(shape)
    with ops.use_backend(name):
        viewed = ops.view(ops.view(bits, first), second)
        assert ops.dtype(viewed) == second
        assert ops.to_numpy(ops.view(viewed, "uint8")).tolist() == bits.tolist()


@pytest.mark.parametrize("name", INSTALLED)
@given(values=st.lists(st.integers(-100, 100), max_size=5), data=st.data())
def test_small_integers_survive_every_cast(name: str, values: list[int], data: st.DataObject) -> None:
    kinds = st.sampled_from(["int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
    with ops.use_backend(name):
        x = ops.convert_to_tensor(np.array(values, np.int64))
        for dtype in data.draw(st.lists(kinds, max_size=3)):
            x = ops.cast(x, dtype)
            assert ops.dtype(x) == dtype
        assert ops.cast(x, "int64").tolist() == values
