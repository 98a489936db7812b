"""Comparisons: across dtypes, of NaN, and of complex numbers, which have no order."""

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import DTypeError, RangeError

law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ORDERS: dict[str, Callable[[object, object], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
EQUALITIES: dict[str, Callable[[object, object], bool]] = {"equal": operator.eq, "not_equal": operator.ne}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@law
@given(st.sampled_from(INTEGERS), st.data())
def test_integers_compare_exactly(backend: str, dtype: str, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    edge = st.sampled_from([info.min, 0, 1, int(info.max) // 2 + 1, int(info.max) - 1, int(info.max)])
    number = edge | st.integers(int(info.min), int(info.max))
    a, b = (data.draw(st.lists(number, min_size=6, max_size=6)) for _ in range(2))
    for op, exact in {**ORDERS, **EQUALITIES}.items():
        got = getattr(ops, op)(np.array(a, dtype), np.array(b, dtype)).tolist()
        assert got == [exact(x, y) for x, y in zip(a, b, strict=True)], op


@pytest.mark.parametrize("op", sorted({**ORDERS, **EQUALITIES}))
def test_nan_is_unequal_to_everything(op: str, backend: str) -> None:
    x = np.float32([np.nan, np.nan, 1.0])
    assert getattr(ops, op)(x, np.float32([np.nan, 1.0, np.nan])).tolist() == [op == "not_equal"] * 3


@pytest.mark.parametrize("op", sorted(ORDERS))
def test_complex_numbers_have_no_order(op: str, backend: str) -> None:
    z, x = np.complex64([1j]), np.float32([2.0])
    for pair in ((z, z), (z, x), (x, z), (z, 1.0), (x, 1j)):
        with pytest.raises(DTypeError, match=rf"{op}\(\) on backend '{backend}'"):
            getattr(ops, op)(*pair)


def test_operands_are_promoted_before_they_are_compared(backend: str) -> None:
    assert ops.less(np.int8([-1]), np.uint8([255])).tolist() == [True]
    assert ops.equal(np.int32([1]), np.float32([1.0])).tolist() == [True]
    assert ops.less([1, 2], 1.5).tolist() == [True, False]
    assert ops.greater(2, [1, 3]).tolist() == [True, False]
    with pytest.raises(RangeError):
        ops.less(np.uint8([1]), 256)


def test_logical_ops_treat_nan_as_true_and_negative_zero_as_false(backend: str) -> None:
    a, b = [0.0, 2.0, np.nan, -0.0], [0.0, 0.0, 1.0, 3.0]
    assert ops.logical_and(a, b).tolist() == [False, False, True, False]
    assert ops.logical_or(a, b).tolist() == [False, True, True, True]
    assert ops.logical_xor(a, b).tolist() == [False, True, False, True]
    assert ops.logical_not(a).tolist() == [True, False, False, True]
    assert ops.logical_not(np.uint64([0, 2**63])).tolist() == [True, False]
    assert ops.logical_and([True, False], True).tolist() == [True, False]


def test_tests_for_nan_and_infinities_accept_every_dtype(backend: str) -> None:
    x = np.float32([np.nan, np.inf, -np.inf, 1.0])
    assert ops.isposinf(x).tolist() == [False, True, False, False]
    assert ops.isneginf(x).tolist() == [False, False, True, False]
    for op, wanted in (("isnan", False), ("isinf", False), ("isfinite", True)):
        assert getattr(ops, op)(np.int64([2**62])).tolist() == [wanted]
        assert getattr(ops, op)([True]).tolist() == [wanted]


def test_isclose_handles_large_integers_infinities_and_nan(backend: str) -> None:
    far = 2**40
    assert ops.isclose(np.int64([far]), np.int64([far + 1]), rtol=0.0, atol=0.5).tolist() == [False]
    assert ops.isclose([np.inf, -np.inf, np.nan], [np.inf, np.inf, np.nan]).tolist() == [True, False, False]
    assert ops.isclose([np.nan], [np.nan], equal_nan=True).tolist() == [True]
    assert ops.isclose(np.float32([1.0]), np.float64([1.0 + 1e-7])).tolist() == [True]
    assert bool(ops.allclose(np.zeros((0, 3)), np.zeros((0, 3))))
    assert not bool(ops.allclose([1.0, 2.0], 1.0))


def test_array_equal_compares_shapes_and_elements(backend: str) -> None:
    same = ops.array_equal([1, 2], [1.0, 2.0])
    assert bool(same)
    assert tuple(same.shape) == ()
    assert ops.dtype(same) == "bool"
    assert not bool(ops.array_equal([1, 2], [[1, 2]]))
    assert not bool(ops.array_equal([1.0], [np.nan]))
    assert bool(ops.array_equal(np.zeros((0, 2)), np.zeros((0, 2))))
    assert not bool(ops.array_equal(np.zeros((0, 2)), np.zeros((2, 0))))
    for equal_nan in (True, False):
        assert bool(ops.array_equal(np.zeros((0, 2)), np.zeros((0, 2)), equal_nan))
        assert bool(ops.array_equal([1, 2], np.uint16([1, 2]), equal_nan=equal_nan))
        assert bool(ops.array_equal([1.0, np.nan], np.float16([1.0, np.nan]), equal_nan=equal_nan)) is equal_nan
        assert not bool(ops.array_equal([np.nan], [[np.nan]], equal_nan=equal_nan))
    parts = np.complex64([complex(1, np.nan)]), np.complex64([complex(np.nan, 2)])
    assert bool(ops.array_equal(*parts, equal_nan=True))


def test_an_infinite_complex_number_is_close_only_to_itself(backend: str) -> None:
    inf, nan = float("inf"), float("nan")
    numbers = [1 + 1j, complex(inf, 1), complex(-inf, 1), complex(inf, inf), complex(nan, 0), complex(1, nan), 0j, 1e30]
    z = np.array([*numbers, complex(1 + 1e-6, 1)], np.complex64)
    a, b = (part.ravel() for part in np.meshgrid(z, z))
    for equal_nan in (False, True):
        with np.errstate(all="ignore"):
            wanted = np.isclose(a, b, equal_nan=equal_nan)
            assert np.array_equal(ops.to_numpy(ops.isclose(a, b, equal_nan=equal_nan)), wanted)
    assert not bool(ops.allclose(z[:1], z[1:2]))
