"""Bitwise ops on every integer dtype, and shifts by negative counts or by more than the width."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import DTypeError, RangeError

law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@st.composite
def bits(draw: st.DrawFn) -> tuple[str, list[int], list[int]]:
    dtype = draw(st.sampled_from(INTEGERS))
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    number = st.sampled_from([low, 0, 1, high - 1, high]) | st.integers(low, high)
    return dtype, draw(st.lists(number, min_size=6, max_size=6)), draw(st.lists(number, min_size=6, max_size=6))


@law
@given(bits())
def test_bitwise_ops_agree_with_python(backend: str, drawn: tuple[str, list[int], list[int]]) -> None:
    dtype, a, b = drawn
    x, y = np.array(a, dtype), np.array(b, dtype)
    assert ops.bitwise_and(x, y).tolist() == [m & n for m, n in zip(a, b, strict=True)]
    assert ops.bitwise_or(x, y).tolist() == [m | n for m, n in zip(a, b, strict=True)]
    assert ops.bitwise_xor(x, y).tolist() == [m ^ n for m, n in zip(a, b, strict=True)]
    assert ops.bitwise_not(x).tolist() == np.bitwise_not(x).tolist()
    assert ops.dtype(ops.bitwise_not(x)) == dtype


@law
@given(bits(), st.lists(st.integers(-3, 70), min_size=6, max_size=6))
def test_shifts_by_any_count_agree_with_python(
    backend: str, drawn: tuple[str, list[int], list[int]], counts: list[int]
) -> None:
    dtype, a, _ = drawn
    width, signed = np.dtype(dtype).itemsize * 8, dtype[0] == "i"
    counts = [abs(n) if not signed else n for n in counts]
    x, n = np.array(a, dtype), np.array(counts, dtype)

    def left(value: int, count: int) -> int:
        moved = (value << count) % (1 << width) if 0 <= count < width else 0
        return moved - (1 << width) if signed and moved >> (width - 1) else moved

    def right(value: int, count: int) -> int:
        return value >> (count if 0 <= count < width else width)

    assert ops.bitwise_left_shift(x, n).tolist() == [left(v, c) for v, c in zip(a, counts, strict=True)]
    assert ops.bitwise_right_shift(x, n).tolist() == [right(v, c) for v, c in zip(a, counts, strict=True)]


def test_shifts_accept_python_numbers(backend: str) -> None:
    assert ops.bitwise_left_shift([1, 2], 3).tolist() == [8, 16]
    assert ops.bitwise_left_shift(1, [3, 64]).tolist() == [8, 0]
    assert ops.right_shift([-8], 100).tolist() == [-1]
    with pytest.raises(RangeError):
        ops.left_shift(np.uint8([1]), 256)


def test_bitwise_ops_on_booleans_are_logical_and_shifts_are_refused(backend: str) -> None:
    a, b = [True, True, False], [True, False, False]
    assert ops.bitwise_and(a, b).tolist() == [True, False, False]
    assert ops.bitwise_or(a, b).tolist() == [True, True, False]
    assert ops.bitwise_xor(a, b).tolist() == [False, True, False]
    assert ops.bitwise_not(a).tolist() == [False, False, True]
    with pytest.raises(DTypeError, match="bool"):
        ops.left_shift(a, b)


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_floats_and_complex_numbers_are_refused(op: str, backend: str) -> None:
    for pair in (([1.0], [2.0]), ([1], [2.0]), ([1], 2.0), ([1j], [1])):
        with pytest.raises(DTypeError):
            getattr(ops, op)(*pair)
    with pytest.raises(DTypeError):
        ops.bitwise_not([1.0])
