"""Arithmetic where the libraries differ: division by zero and -1, unsigned integers, powers, Python numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import DTypeError, RangeError

WIDTHS = {"int8": 8, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def wrapped(value: int, dtype: str) -> int:
    """Returns an integer wrapped to the width of a dtype, as in the arithmetic of the processor."""
    bits = WIDTHS[dtype]
    value %= 1 << bits
    return value if dtype[0] == "u" or value < 1 << (bits - 1) else value - (1 << bits)


def truncated(a: int, b: int) -> int:
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "floor_divide": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "fmod": lambda a, b: truncated(a, b) if b else 0,
}


@st.composite
def integers(draw: st.DrawFn) -> tuple[str, list[int], list[int]]:
    dtype = draw(st.sampled_from(sorted(WIDTHS)))
    low, high = (
        (0, (1 << WIDTHS[dtype]) - 1) if dtype[0] == "u" else (-(1 << WIDTHS[dtype] - 1), (1 << WIDTHS[dtype] - 1) - 1)
    )
    edges = [n for n in (low, low + 1, -1, 0, 1, 2, 3, high // 2 + 1, high - 1, high) if n >= low]
    number = st.sampled_from(edges) | st.integers(low, high)
    return dtype, draw(st.lists(number, min_size=5, max_size=5)), draw(st.lists(number, min_size=5, max_size=5))


@law
@given(integers())
def test_integer_division_and_remainders_agree_with_python(
    backend: str, drawn: tuple[str, list[int], list[int]]
) -> None:
    dtype, a, b = drawn
    for op, exact in DIVISIONS.items():
        got = getattr(ops, op)(np.array(a, dtype), np.array(b, dtype))
        assert ops.dtype(got) == dtype
        assert got.tolist() == [wrapped(exact(x, y), dtype) for x, y in zip(a, b, strict=True)], op


@law
@given(integers())
def test_gcd_agrees_with_python(backend: str, drawn: tuple[str, list[int], list[int]]) -> None:
    dtype, a, b = drawn
    got = ops.gcd(np.array(a, dtype), np.array(b, dtype)).tolist()
    assert got == [wrapped(math.gcd(x, y), dtype) for x, y in zip(a, b, strict=True)]


@law
@given(integers())
def test_integer_powers_wrap(backend: str, drawn: tuple[str, list[int], list[int]]) -> None:
    dtype, a, exponents = drawn
    b = [abs(n) % 200 for n in exponents]
    if dtype == "int8":
        b = [n % 100 for n in b]
    got = ops.power(np.array(a, dtype), np.array(b, dtype)).tolist()
    assert got == [wrapped(x**y, dtype) for x, y in zip(a, b, strict=True)]


def test_powers_of_uint64_wrap(backend: str) -> None:
    got = ops.power(np.array([3, 2, 1], np.uint64), np.array([2**64 - 1, 2**63, 2**63], np.uint64)).tolist()
    assert got == [pow(3, 2**64 - 1, 2**64), 0, 1]


def test_a_square_of_an_imaginary_number_is_real(backend: str) -> None:
    x = np.array([3j, -1.7j, 1 - 2j])
    if backend == "mlx":
        x = x.astype(np.complex64)
    assert ops.to_numpy(ops.power(x, 2)).tolist() == (x * x).tolist()


def test_a_complex_power_has_a_derivative_by_an_exponent_of_zero(backend: str) -> None:
    base, exponents = np.array(2 + 1j, np.complex64), (0, 1, 2)
    for exponent in exponents:
        gradient = ops.grad(lambda w: ops.real(ops.power(base, w)))(
            ops.convert_to_tensor(np.array(exponent, np.complex64))
        )
        assert np.allclose(ops.to_numpy(gradient), np.conj(base**exponent * np.log(base)), rtol=1e-5)


def test_negative_powers_of_integers_are_truncated_to_zero_or_one(backend: str) -> None:
    assert ops.power([2, 1, -1, -1, 0, -3], [-1, -2, -3, -4, -1, -1]).tolist() == [0, 1, -1, 1, 0, 0]
    assert ops.power([2, 1], -1).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floor_divide_is_the_floor_of_the_quotient_where_an_operand_is_infinite(dtype: str, backend: str) -> None:
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, np.nan], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        wanted = np.where(np.isinf(a) | np.isinf(b), np.floor(np.divide(a, b)), np.floor_divide(a, b))
        found = ops.to_numpy(ops.floor_divide(a, b))
        by_number = ops.to_numpy(ops.floor_divide(ops.convert_to_tensor(values), 2.0))
        by_infinity = ops.to_numpy(ops.floor_divide(ops.convert_to_tensor(values), -np.inf))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
    np.testing.assert_array_equal(by_number, [np.inf, -np.inf, 0, 0, 0, -2, np.nan])
    np.testing.assert_array_equal(by_infinity, [np.nan, np.nan, 0, 0, 0, 0, np.nan])


def test_division_of_floats_follows_the_rules_of_python(backend: str) -> None:
    a = np.array([1.0, 7.5, -7.5, -1.0, 5.0, np.inf, np.nan], np.float32)
    b = np.array([0.1, 2.0, 2.0, np.inf, -np.inf, 2.0, 1.0], np.float32)
    np.testing.assert_array_equal(ops.to_numpy(ops.floor_divide(a, b)), [9, 3, -4, 0, 0, np.inf, np.nan])
    np.testing.assert_allclose(ops.to_numpy(ops.mod(a, b))[:3], [np.float32(1) % np.float32(0.1), 1.5, 0.5])
    np.testing.assert_array_equal(ops.to_numpy(ops.fmod(a, b))[1:5], [1.5, -1.5, -1.0, 5.0])


def test_divmod_is_differentiable_by_its_remainder(backend: str) -> None:
    by_x, by_divisor = ops.grad(lambda x, y: ops.divmod(x, y)[1], argnums=(0, 1))(7.5, 2.0)
    assert (float(by_x), float(by_divisor)) == (1.0, -3.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fmod_of_small_numbers_is_exact(backend: str, dtype: str) -> None:
    tiny = np.array([1e-8, -1e-8], dtype)
    assert ops.to_numpy(ops.fmod(tiny, np.array([-3.0, 3.0], dtype))).tolist() == tiny.tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("number", [2, 2.5], ids=repr)
def test_a_python_number_as_either_operand_does_not_widen_a_tensor_of_its_kind(
    backend: str, dtype: str, number: complex
) -> None:
    x = ops.cast([3, 1], dtype)
    for op in ("add", "subtract", "multiply", "maximum", "fmin", "floor_divide", "mod", "fmod", "power"):
        function = getattr(ops, op)
        assert ops.dtype(function(x, number)) == ops.dtype(function(number, x)) == ops.result_type(x, number), op
    inexact = ops.dtype(x) if "float" in dtype else ops.default_float()
    for op in ("divide", "divide_no_nan", "hypot", "heaviside"):
        function = getattr(ops, op)
        assert ops.dtype(function(x, number)) == ops.dtype(function(number, x)) == inexact, op


@pytest.mark.parametrize("op", ["add", "maximum", "floor_divide", "gcd"])
def test_an_integer_that_does_not_fit_the_dtype_is_refused(backend: str, op: str) -> None:
    for x, number in ((np.int8([1]), 128), (np.uint8([1]), -1), (np.uint16([1]), 2**16), (np.int64([1]), 2**63)):
        with pytest.raises(RangeError, match=rf"{op}\(\) on backend '{backend}'.*{number}"):
            getattr(ops, op)(x, number)


@pytest.mark.parametrize("op", ["subtract", "floor_divide", "mod", "fmod", "power", "gcd", "lcm"])
def test_booleans_are_refused_where_arithmetic_is_undefined(backend: str, op: str) -> None:
    with pytest.raises(DTypeError, match="bool"):
        getattr(ops, op)([True, False], [True, True])


@pytest.mark.parametrize(
    "op", ["maximum", "minimum", "fmax", "fmin", "floor_divide", "mod", "hypot", "heaviside", "gcd"]
)
def test_ops_that_need_an_order_refuse_complex_numbers(backend: str, op: str) -> None:
    for pair in (([1j], [2.0]), ([2.0], [1j]), (np.complex64([1j]), np.complex64([1]))):
        with pytest.raises(DTypeError):
            getattr(ops, op)(*pair)


def test_arithmetic_of_booleans_is_logical(backend: str) -> None:
    both = [True, True, False], [True, False, False]
    results: dict[str, Any] = {name: getattr(ops, name)(*both) for name in ("add", "multiply", "maximum")}
    assert {name: r.tolist() for name, r in results.items()} == {
        "add": [True, True, False],
        "multiply": [True, False, False],
        "maximum": [True, True, False],
    }
    assert ops.square([True, False]).tolist() == [True, False]
    assert ops.divide([True], [True]).tolist() == [1.0]


def test_maximum_propagates_nan_and_fmax_ignores_it(backend: str) -> None:
    a, b = [np.nan, 1.0, np.nan], [2.0, np.nan, np.nan]
    assert np.isnan(ops.to_numpy(ops.maximum(a, b))).all()
    assert np.isnan(ops.to_numpy(ops.minimum(a, b))).all()
    np.testing.assert_array_equal(ops.to_numpy(ops.fmax(a, b)), [2.0, 1.0, np.nan])
    np.testing.assert_array_equal(ops.to_numpy(ops.fmin(a, b)), [2.0, 1.0, np.nan])


def test_clip_accepts_both_names_of_its_bounds(backend: str) -> None:
    x = [-2, 1, 5]
    assert ops.clip(x, min=0).tolist() == ops.clip(x, x_min=0).tolist() == [0, 1, 5]
    assert ops.clip(x, max=3).tolist() == ops.clip(x, None, 3).tolist() == [-2, 1, 3]
    assert ops.clip(x, [0, 2, 0], [1, 3, 4]).tolist() == [0, 2, 4]
    assert ops.clip(x).tolist() == x
    assert ops.clip(x, 3, 1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("op", ["add", "subtract", "divide", "maximum", "less", "power"])
def test_a_scalar_of_numpy_counts_as_a_tensor_without_axes(op: str, backend: str) -> None:
    call = getattr(ops, op)
    for kind in (np.float32, np.float64, np.int32, np.uint8, np.float16):
        x, scalar = np.array([1, 2, 3], np.float32), kind(2)
        for pair in ((x, scalar), (scalar, x), (x.astype(kind), scalar), (scalar, x.astype(kind))):
            if backend == "mlx" and kind is np.float64:  # which MLX has on the CPU only
                continue
            found, wanted = call(*pair), call(*map(np.asarray, pair))
            assert ops.dtype(found) == ops.dtype(wanted), (kind, pair)
            assert ops.to_numpy(found).tolist() == ops.to_numpy(wanted).tolist(), (kind, pair)


def test_a_scalar_of_numpy_is_refused_where_its_dtype_is(backend: str) -> None:
    with pytest.raises(DTypeError):
        ops.subtract(np.array([True, False]), np.bool_(True))


def test_clip_accepts_scalars_of_numpy_as_bounds(backend: str) -> None:
    clipped = ops.clip(np.array([0.0, 1.0, 2.0], np.float32), np.float64(0.5), np.float64(1.5))
    assert clipped.tolist() == [0.5, 1.0, 1.5]
    assert ops.dtype(clipped) == "float64"
    for x in (clipped, clipped[0]):
        assert ops.clip(x, np.float64(1e300), None).tolist() == ops.full_like(x, 1e300).tolist()


def test_clip_accepts_bounds_beyond_the_range_of_the_dtype(backend: str) -> None:
    x = np.array([1.0, -70.0, np.inf], np.float16)
    assert ops.to_numpy(ops.clip(x, -1e6, 1e6)).tolist() == [1.0, -70.0, np.inf]
    assert ops.to_numpy(ops.clip(x.astype(np.float32), 0, 1e300)).tolist() == [1.0, 0.0, np.inf]
    assert ops.to_numpy(ops.clip(x, -np.inf, 3)).tolist() == [1.0, -70.0, 3.0]


def test_divide_no_nan_by_zero_is_zero(backend: str) -> None:
    x = np.array([1.0, np.nan, np.inf, -2.0], np.float16)
    assert ops.to_numpy(ops.divide_no_nan(x, 0)).tolist() == [0.0] * 4
    assert ops.to_numpy(ops.divide_no_nan(x, [0.0, 0.0, 0.0, 4.0])).tolist() == [0.0, 0.0, 0.0, -0.5]


def test_step_functions_at_zero_infinity_and_nan(backend: str) -> None:
    x = np.array([np.nan, -0.0, 0.0, -np.inf, np.inf], np.float32)
    np.testing.assert_array_equal(ops.to_numpy(ops.heaviside(x, 0.5)), [np.nan, 0.5, 0.5, 0.0, 1.0])
    assert ops.step(x).tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert np.isnan(ops.to_numpy(ops.sign(x))[0])


def test_sign_negative_and_absolute_of_unsigned_least_and_complex_numbers(backend: str) -> None:
    assert ops.negative(np.uint16([0, 1, 65535])).tolist() == [0, 65535, 1]
    assert ops.sign(np.uint64([0, 2**63])).tolist() == [0, 1]
    assert ops.absolute(np.uint32([0, 2**31])).tolist() == [0, 2**31]
    assert ops.absolute(np.int8([-128, -1])).tolist() == [-128, 1]
    assert ops.absolute([3 - 4j]).tolist() == [5.0]
    np.testing.assert_allclose(ops.to_numpy(ops.sign([3 - 4j, 0j])), [0.6 - 0.8j, 0j], rtol=1e-6)
    with pytest.raises(DTypeError):
        ops.negative([True])


def test_hypot_neither_overflows_nor_underflows(backend: str) -> None:
    big, small = np.float32([3e37, 3e-38, np.inf, 0.0]), np.float32([4e37, 4e-38, np.nan, 0.0])
    np.testing.assert_allclose(ops.to_numpy(ops.hypot(big, small)), [5e37, 5e-38, np.inf, 0.0], rtol=1e-6)


def test_lcm_of_large_numbers_does_not_overflow(backend: str) -> None:
    assert ops.lcm(np.uint64([2**63, 2**40]), np.uint64([2**62, 3])).tolist() == [2**63, 3 * 2**40]
    assert ops.lcm([-4, 0], 6).tolist() == [12, 0]


@pytest.mark.parametrize(
    "guarded",
    [
        lambda x: ops.sqrt(ops.maximum(x, 0.0)),
        lambda x: ops.sqrt(ops.relu(x)),
        lambda x: ops.log(ops.clip(x, 0.0, 1.0)),
        lambda x: ops.sqrt(ops.negative(ops.minimum(ops.negative(x), 0.0))),
    ],
)
def test_an_element_that_a_guard_replaces_has_a_zero_gradient(guarded: Any, backend: str) -> None:
    found = ops.to_numpy(ops.grad(lambda x: ops.sum(guarded(x)))([-1.0, 0.25]))
    assert found[0] == 0
    assert np.isfinite(found[1])


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_adding_a_real_infinity_keeps_the_imaginary_part(infinite: float, backend: str) -> None:
    z = np.array([1 + 2j, -3 - 1j], np.complex64)
    for other in (np.array([infinite, infinite], np.float32), np.float32(infinite), infinite):
        sums = [ops.add(z, other), ops.add(other, z), ops.subtract(z, other), ops.subtract(other, z)]
        imaginary = [ops.imag(total).tolist() for total in sums]
        assert imaginary == [[2, -1], [2, -1], [2, -1], [-2, 1]]
        assert all(bool(ops.all(ops.isinf(ops.real(total)))) for total in sums)


def test_sums_of_real_and_complex_tensors_have_gradients(backend: str) -> None:
    z, x = np.array([1 + 2j, 3j], np.complex64), np.array([2.0, -1.0], np.float32)
    size = lambda z, x: ops.sum(ops.square(ops.absolute(ops.subtract(z, x))))
    assert ops.to_numpy(ops.grad(size, 1)(z, x)).tolist() == [2.0, -2.0]
    assert ops.to_numpy(ops.vmap(ops.add)(z, x)).tolist() == [3 + 2j, -1 + 3j]


def test_the_sign_of_a_complex_zero_is_positive_zero(backend: str) -> None:
    zeros = np.array([complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)], np.complex64)
    signs = ops.to_numpy(ops.sign(zeros))
    assert not np.signbit(signs.real).any()
    assert not np.signbit(signs.imag).any()


def test_fmax_and_fmin_accept_integers_beyond_64_bits(backend: str) -> None:
    x = np.array([1.0, math.nan], np.float32)
    assert ops.fmax(x, 2**70).tolist() == ops.fmax(2**70, x).tolist() == [2.0**70] * 2
    assert ops.fmin(x, 2**70).tolist() == ops.fmin(2**70, x).tolist() == [1.0, 2.0**70]
    with pytest.raises(RangeError):
        ops.fmax(np.array([1]), 2**70)


@pytest.mark.parametrize("exponent", [-2, -1, 0, 1, 2, 3, 4, 5, 0.5, 2.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_derivatives_of_a_power_follow_its_exponent(exponent: float, dtype: str, backend: str) -> None:
    x = np.array([0.5, 1.5, 2.0, 3.0])
    first = exponent * x ** (exponent - 1.0)
    second = exponent * (exponent - 1.0) * x ** (exponent - 2.0)
    given = ops.asarray(x, dtype=dtype)
    for n in (exponent, ops.asarray(exponent, dtype=dtype), ops.full((4,), float(exponent), dtype)):
        once = ops.grad(lambda t, n=n: ops.sum(ops.power(t, n)))
        twice = ops.grad(lambda t, once=once: ops.sum(once(t)))
        assert ops.dtype(once(given)).name == ops.dtype(twice(given)).name == dtype
        np.testing.assert_allclose(ops.to_numpy(once(given)), first, rtol=1e-5)
        np.testing.assert_allclose(ops.to_numpy(twice(given)), second, rtol=1e-5, atol=1e-6)
    by_exponent = ops.grad(lambda n: ops.sum(ops.power(given, n)))(ops.asarray(float(exponent), dtype=dtype))
    np.testing.assert_allclose(ops.to_numpy(by_exponent), (x**exponent * np.log(x)).sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_least_integer_is_divided_by_minus_1_and_by_0(dtype: str, backend: str) -> None:
    least = np.iinfo(dtype).min
    x, y = np.array([least, least, 7, -7], dtype), np.array([-1, 0, -2, 2], dtype)
    assert ops.floor_divide(x, y).tolist() == [least, 0, -4, -4]
    assert ops.mod(x, y).tolist() == [0, 0, -1, 1]
    assert ops.fmod(x, y).tolist() == [0, 0, 1, -1]
