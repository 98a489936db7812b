"""Segment reductions and multi-hot classes: empty segments, ids out of range, NaN, half precision."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import errors

INSTALLED = [name for name in BUILTIN if is_installed(name)]
REDUCTIONS = ["segment_sum", "segment_prod", "segment_max", "segment_min"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("ids", [[0, 3], [-1, 0], np.array([0, 10**12])])
def test_an_id_on_the_host_that_is_out_of_range_is_refused(backend: str, name: str, ids: object) -> None:
    with pytest.raises(errors.IndexOutOfBoundsError, match=rf"{name}\(\) on backend '{backend}'"):
        getattr(ops, name)([1.0, 2.0], ids, 3)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_an_id_out_of_range_in_a_tensor_is_refused_except_on_mlx(backend: str, name: str) -> None:
    ids = ops.convert_to_tensor(np.array([0, -1, 5, 1]))
    call: Callable[[], object] = lambda: getattr(ops, name)([1.0, 2.0, 3.0, 4.0], ids, 2)
    if backend == "mlx":
        assert getattr(ops, name)([1.0, 2.0, 3.0, 4.0], ids, 2).tolist() == [1.0, 4.0]
    else:
        with pytest.raises(errors.IndexOutOfBoundsError):
            ops.eval(call())  # Dask raises when a block is computed


@pytest.mark.parametrize(
    ("data", "ids"), [([1.0, 2.0], [0]), ([1.0], [[0]]), (1.0, [0]), ([[1.0, 2.0]], [0, 1]), ([1.0, 2.0], [[0]])]
)
def test_ids_whose_shape_does_not_fit_are_refused(backend: str, data: object, ids: object) -> None:
    with pytest.raises(errors.ShapeError, match=r"segment_sum\(\) on backend"):
        ops.segment_sum(data, ids)
    tensors = ops.convert_to_tensor(data, "float32"), ops.convert_to_tensor(ids)
    with pytest.raises(errors.ShapeError, match=r"segment_sum\(\) on backend"):
        ops.segment_sum(*tensors, 1)


def test_an_empty_segment_has_the_neutral_element(backend: str) -> None:
    ids = [1]
    assert ops.segment_sum([5], ids, 3).tolist() == [0, 5, 0]
    assert ops.segment_prod([5], ids, 3).tolist() == [1, 5, 1]
    assert ops.segment_max([5.0], ids, 3).tolist() == [-np.inf, 5.0, -np.inf]
    assert ops.segment_min([5.0], ids, 2).tolist() == [np.inf, 5.0]
    for dtype in ("int8", "uint64", "int64"):
        info = np.iinfo(dtype)
        assert ops.segment_max(np.array([5], dtype), ids, 2).tolist() == [info.min, 5]
        assert ops.segment_min(np.array([5], dtype), ids, 2).tolist() == [info.max, 5]
    assert ops.segment_max([True], ids, 2).tolist() == [False, True]
    assert ops.segment_min([False], ids, 2).tolist() == [True, False]


def test_sums_keep_their_dtype_and_half_precision_is_summed_in_float32(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        total = ops.segment_sum(ops.full((4096,), 1.0, dtype), np.zeros(4096, np.int64))
        assert ops.dtype(total) == dtype
        assert ops.cast(total, "float32").tolist() == [4096.0]
    assert ops.dtype(ops.segment_sum(np.uint16([1, 2]), [0, 0])) == "uint16"


def test_segment_reductions_propagate_nan(backend: str) -> None:
    data, ids = np.float32([np.nan, 1.0, 2.0]), [0, 0, 1]
    for name in REDUCTIONS:
        got = ops.to_numpy(getattr(ops, name)(data, ids))
        assert np.isnan(got[0])
        assert got[1] == 2.0


def test_segment_max_refuses_complex_numbers(backend: str) -> None:
    assert ops.segment_prod(np.complex64([1j, 1j]), [0, 0]).tolist() == [-1 + 0j]
    with pytest.raises(errors.DTypeError, match="no order"):
        ops.segment_max(np.complex64([1j]), [0])


@pytest.mark.parametrize("name", INSTALLED)
@given(ids=st.lists(st.integers(0, 5), max_size=8), wide=st.integers(1, 3), dtype=st.sampled_from(["int64", "uint32"]))
def test_segment_sum_adds_the_elements_of_each_segment(name: str, ids: list[int], wide: int, dtype: str) -> None:
    data = np.arange(len(ids) * wide).reshape(len(ids), wide).astype(dtype)
    wanted = [data[np.asarray(ids) == i].sum(axis=0).tolist() if ids else [0] * wide for i in range(6)]
    with ops.use_backend(name):
        for given_ids in (np.array(ids, np.int64), ops.convert_to_tensor(np.array(ids, np.int32))):
            assert ops.segment_sum(data, given_ids, 6).tolist() == wanted


def test_multi_hot_ignores_classes_out_of_range_and_repeated_ones(backend: str) -> None:
    assert ops.multi_hot([0, 2, 2, 9], 3).tolist() == [1.0, 0.0, 1.0]
    assert ops.multi_hot([[0], [1]], 2, dtype="int32").tolist() == [[1, 0], [0, 1]]
    assert ops.dtype(ops.multi_hot([0], 2)) == "float32"
    assert ops.shape(ops.multi_hot(ops.zeros((2, 0), "int64"), 3)) == (2, 3)


@pytest.mark.parametrize("factors", [[2.0, 3.0, 4.0, 5.0], [0.0, 3.0, 4.0, 5.0], [0.0, 3.0, 0.0, 5.0]])
def test_segment_prod_has_gradients_on_mlx_even_with_zeros(factors: list[float]) -> None:
    mx = pytest.importorskip("mlx.core")
    ids = [0, 1, 0, 0]
    weights = mx.array([1.0, 10.0])
    with ops.use_backend("mlx"):
        first = mx.grad(lambda x: (ops.segment_prod(x, ids) * weights).sum())(mx.array(factors))
        second = mx.grad(lambda x: mx.grad(lambda y: ops.segment_prod(y, ids)[0])(x)[0])(mx.array(factors))
    others = [np.prod([f for j, f in enumerate(factors) if j != i and ids[j] == ids[i]]) for i in range(4)]
    assert first.tolist() == pytest.approx([others[0], 10.0 * others[1], others[2], others[3]])
    if factors.count(0.0) < 2:
        assert second.tolist() == pytest.approx([0.0, 0.0, factors[3], factors[2]])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_number_of_segments_must_be_a_natural_number(backend: str, name: str) -> None:
    op = getattr(ops, name)
    for ids in (np.zeros(0, np.int64), ops.zeros((0,), "int64"), []):
        assert ops.shape(op(ops.zeros((0, 2)), ids)) == (0, 2)
        assert ops.shape(op(ops.zeros((0, 2)), ids, 3)) == (3, 2)
    for ids in ([0], ops.zeros((1,), "int64")):
        with pytest.raises(errors.ShapeError):
            op([1.0], ids, -1)
        with pytest.raises(errors.ArgumentTypeError):
            op([1.0], ids, 2.0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint64", "int32"])
def test_ids_may_have_every_integer_dtype(backend: str, dtype: str) -> None:
    ids = np.array([2, 0, 2], dtype)
    for given_ids in (ids, ops.convert_to_tensor(ids)):
        assert ops.segment_sum([1.0, 2.0, 4.0], given_ids).tolist() == [2.0, 0.0, 5.0]
        assert ops.segment_max([1.0, 2.0, 4.0], given_ids, 3).tolist()[::2] == [2.0, 4.0]
    with pytest.raises(errors.ArgumentTypeError):
        ops.segment_sum([1.0], ops.zeros((1,)))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32"])
def test_reductions_of_wide_rows_equal_those_of_their_columns(backend: str, name: str, dtype: str) -> None:
    data = (np.sin(np.arange(300 * 20)) * 3).astype("int8").astype(dtype).reshape(300, 20)
    ids = np.abs(np.cos(np.arange(300)) * 7).astype(np.int64) * 2
    got = ops.to_numpy(ops.cast(getattr(ops, name)(data, ids, 20), "float64"))
    columns = [ops.to_numpy(ops.cast(getattr(ops, name)(data[:, i], ids, 20), "float64")) for i in range(20)]
    assert np.array_equal(got, np.stack(columns, 1))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("ids", [[0, 1], [2, 2]])
def test_slices_without_elements_give_empty_segments(backend: str, name: str, ids: list[int]) -> None:
    for given_ids in (ids, ops.convert_to_tensor(ids)):
        assert tuple(getattr(ops, name)(ops.ones((2, 0)), given_ids, 3).shape) == (3, 0)
        assert tuple(getattr(ops, name)(ops.ones((2, 4, 0)), given_ids, 3).shape) == (3, 4, 0)
    gradient = ops.grad(lambda x: ops.sum(getattr(ops, name)(x, ids, 3)))(ops.ones((2, 0)))
    assert tuple(gradient.shape) == (2, 0)


def test_small_integers_wrap_where_products_leave_the_range(backend: str) -> None:
    products = ops.segment_prod(np.full(5, 255, np.int16), [0, 0, 0, 0, 1], 2)
    assert products.tolist() == [-1023, 255]
