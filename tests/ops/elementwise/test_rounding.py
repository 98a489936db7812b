"""Rounding and the bits of floating-point numbers in edge cases."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import ArgumentTypeError, DTypeError
from tests.together import together

law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
FLOATS = ("float16", "float32", "float64")
EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 6e-8)
number = st.sampled_from(EDGES) | st.floats(width=16)
numbers = st.lists(number, min_size=6, max_size=6)


def same(got: object, wanted: np.ndarray) -> None:
    """Checks that all bits are equal, except those of NaN."""
    host = np.asarray(ops.to_numpy(got))
    assert host.dtype == wanted.dtype
    np.testing.assert_array_equal(host, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(host[numbers]), np.signbit(wanted[numbers]))


@law
@given(st.sampled_from(FLOATS), numbers, numbers)
def test_nextafter_agrees_with_numpy(backend: str, dtype: str, a: list[float], b: list[float]) -> None:
    x, y = np.array(a, dtype), np.array(b, dtype)
    np.testing.assert_array_equal(ops.to_numpy(ops.nextafter(x, y)), np.nextafter(x, y))


@pytest.mark.ember_skip("jax", reason="programs of JAX 0.10 on the CPU make 0 of subnormal numbers: docs/jax.md")
def test_nextafter_works_in_bfloat16(backend: str) -> None:
    x = ops.nextafter(ops.cast([1.0, 1.0, 0.0], "bfloat16"), ops.cast([2.0, 0.0, -1.0], "bfloat16"))
    assert ops.cast(x, "float64").tolist() == [1.0 + 2.0**-7, 1.0 - 2.0**-8, -(2.0**-133)]


@law
@given(st.sampled_from(FLOATS), numbers, numbers)
def test_copysign_and_signbit_agree_with_numpy(backend: str, dtype: str, a: list[float], b: list[float]) -> None:
    x, y = np.array(a, dtype), np.array(b, dtype)
    same(ops.copysign(x, y), np.copysign(x, y))
    assert ops.signbit(x).tolist() == np.signbit(x).tolist()


def test_signbit_and_copysign_accept_integers(backend: str) -> None:
    assert ops.signbit([-3, 0, 3]).tolist() == [True, False, False]
    assert ops.signbit(np.uint16([0, 65535])).tolist() == [False, False]
    assert ops.copysign([1, 2], -1).tolist() == [-1.0, -2.0]


@law
@given(st.sampled_from(FLOATS), numbers, st.lists(st.integers(-3000, 3000), min_size=6, max_size=6))
def test_ldexp_agrees_with_numpy(backend: str, dtype: str, a: list[float], exponents: list[int]) -> None:
    x, n = np.array(a, dtype), np.array(exponents, np.int32)
    wanted = np.ldexp(x, n)
    # The result is computed in three steps, and subnormal numbers may be rounded in each of them.
    ulp = float(np.finfo(dtype).smallest_subnormal)
    np.testing.assert_allclose(ops.to_numpy(ops.ldexp(x, n)), wanted, rtol=0, atol=2 * ulp)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "uint64"])
def test_ldexp_accepts_exponents_of_every_integer_dtype(backend: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    exponents = np.array([3, 100, info.max], dtype)
    wanted = np.ldexp(np.float32([1, 1, 1]), [min(n, 2000) for n in exponents.tolist()])
    assert ops.ldexp(np.float32([1, 1, 1]), exponents).tolist() == wanted.tolist()
    with pytest.raises(DTypeError):
        ops.ldexp([1.0], [2.0])


def test_round_takes_the_even_neighbour_in_a_tie(backend: str) -> None:
    assert ops.round([0.5, 1.5, -2.5, 2.675]).tolist() == [0.0, 2.0, -2.0, 3.0]
    assert ops.round(np.float64([2.3456, -1e5 / 3]), 2).tolist() == pytest.approx([2.35, -33333.33], abs=1e-12)
    assert ops.round([1234, -1250], -2).tolist() == [1200, -1200]
    assert ops.to_numpy(ops.round([1.5 - 2.5j])).tolist() == [2 - 2j]


@pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "signbit"])
def test_complex_numbers_are_refused(backend: str, op: str) -> None:
    with pytest.raises(DTypeError):
        getattr(ops, op)([1.5 + 2j])


def test_truncation_keeps_the_sign_of_zero(backend: str) -> None:
    same(ops.trunc(np.float32([-0.5, 0.5, -0.0, np.nan, -np.inf])), np.float32([-0.0, 0.0, -0.0, np.nan, -np.inf]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_nan_to_num_replaces_infinities_by_the_largest_numbers(backend: str, dtype: str) -> None:
    largest = ops.finfo(dtype).max
    x = ops.cast([np.inf, -np.inf, np.nan, 1.0], dtype)
    assert ops.cast(ops.nan_to_num(x), "float64").tolist() == [largest, -largest, 0.0, 1.0]
    assert ops.cast(ops.nan_to_num(x, posinf=2.0, neginf=-2.0, nan=3.0), "float64").tolist() == [2.0, -2.0, 3.0, 1.0]


def test_nan_to_num_keeps_integers(backend: str) -> None:
    assert ops.nan_to_num([1, 2], nan=9.0).tolist() == [1, 2]


@together("source", ["float16", "float32", "float64", "int8", "int64", "uint64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "int64", "uint32", "uint64"])
def test_saturate_cast_clips_to_the_range_of_the_dtype(backend: str, source: str, target: str) -> None:
    own, limits = (np.finfo if "float" in source else np.iinfo)(source), np.iinfo(target)
    x = np.array([n for n in (0, 1, 100, -1, -100, int(own.max), int(own.min)) if own.min <= n <= own.max], source)
    got = ops.saturate_cast(x, target)
    assert ops.dtype(got) == target
    assert got.tolist() == [min(max(int(n), limits.min), limits.max) for n in x.tolist()]


def test_saturate_cast_of_nan_and_infinities(backend: str) -> None:
    assert ops.saturate_cast([np.nan, np.inf, -np.inf, 2.9], "int32").tolist() == [0, 2**31 - 1, -(2**31), 2]
    assert ops.saturate_cast([1e6, -np.inf], "float16").tolist() == [65504.0, -65504.0]
    assert np.isnan(ops.to_numpy(ops.saturate_cast([np.nan], "float16"))).all()
    assert ops.saturate_cast([0.0, 0.5], "bool").tolist() == [False, True]


def test_nan_to_num_replaces_real_and_imaginary_parts_separately(backend: str) -> None:
    found = ops.nan_to_num(np.array([complex(np.nan, 1), complex(1, -np.inf)], np.complex64), nan=3.0, neginf=-1.0)
    assert found.tolist() == [3 + 1j, 1 - 1j]


@together("decimals", [4, 10, 38, 39, 40, 60, 300, 309, 330, 10**6, 10**400])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rounding_to_more_decimals_than_a_number_has_keeps_it(dtype: str, decimals: int, backend: str) -> None:
    values = [100.0, 7.0, 1.5, -123.5, 3e4, 0.0, -0.0, np.inf, -np.inf, np.nan]
    x = ops.cast(np.array(values), dtype)
    with np.errstate(all="raise"):
        same(ops.cast(ops.round(x, decimals), "float64"), ops.to_numpy(ops.cast(x, "float64")))


@pytest.mark.parametrize("decimals", [-5, -39, -309, -(10**9), -(10**400)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rounding_to_a_unit_larger_than_the_number_gives_zero(dtype: str, decimals: int, backend: str) -> None:
    x = ops.cast(np.array([15.0, -15.0, 3e4, np.inf, -np.inf, np.nan]), dtype)
    with np.errstate(all="raise"):
        same(ops.cast(ops.round(x, decimals), "float64"), np.array([0.0, -0.0, 0.0, np.inf, -np.inf, np.nan]))


@pytest.mark.ember_skip("torch", reason="torch.round of PyTorch 2.12 multiplies by a tenth instead of dividing by 10")
def test_rounding_gives_the_number_that_is_nearest_to_the_decimals(backend: str) -> None:
    tenths = np.arange(-99, 100) / 10
    for round_ in (lambda x: ops.round(x, 1), ops.compile(lambda x: ops.round(x, 1))):
        same(round_(ops.convert_to_tensor(tenths)), tenths)
    same(ops.round(np.arange(-9.0, 10.0) * 500, -3), np.round(np.arange(-9.0, 10.0) / 2) * 1000)


def test_rounding_works_for_decimals_beyond_the_largest_power_of_ten(backend: str) -> None:
    x = np.array([1.2346e-305, -5e-324, 1e-300])
    same(ops.round(x, 308), np.array([1.235e-305, -0.0, 1e-300]))
    same(ops.round(np.float32([1.26e-37, 1.0]), 38), np.float32([1.3e-37, 1.0]))
    if backend not in ("mlx", "jax"):  # they flush subnormal numbers to 0
        same(ops.round(np.float32([1.2345e-39]), 40), np.float32([1.2e-39]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_rounded_exactly(dtype: str, backend: str) -> None:
    limits = np.iinfo(dtype)
    values = [0, 4, 5, 6, 15, 25, 35, 50, 95, 127, limits.max, limits.max - 1, limits.max // 2, limits.min]
    values += [-5, -15, -25, -50, -100] if limits.min else []
    x = np.array(values, dtype)
    for places in (1, 2, 3, 5, 10, 18, 19, 20, 10**400):
        found = ops.to_numpy(ops.round(x, -places))
        assert found.dtype == dtype
        unit = 10 ** min(places, 30)
        wanted = [round(value / Fraction(unit)) * unit for value in values]
        assert found.tolist() == [(v - limits.min) % 2**limits.bits + limits.min for v in wanted]
    assert ops.to_numpy(ops.round(x, 10**400)).tolist() == values


def test_decimals_must_be_an_integer(backend: str) -> None:
    for x in ([1.0], [1], [True], [1j]):
        with pytest.raises(ArgumentTypeError, match=r"decimals is an integer, not 2\.5"):
            ops.round(x, 2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("decimals", [0, 2, 38, 45, -2, -50])
def test_the_derivative_of_round_is_zero(decimals: int, backend: str) -> None:
    x = ops.convert_to_tensor([1.234, -7e30, np.inf, 0.0])
    with np.errstate(over="ignore", invalid="ignore"):
        assert ops.grad(lambda x: ops.sum(ops.round(x, decimals)))(x).tolist() == [0, 0, 0, 0]
        assert ops.jvp(lambda x: ops.round(x, decimals), (x,), (ops.ones_like(x),))[1].tolist() == [0, 0, 0, 0]


def test_nan_to_num_takes_tensors_that_broadcast(backend: str) -> None:
    x = np.float16([np.nan, np.inf, -np.inf, 1.0])
    found = ops.nan_to_num(
        x, ops.convert_to_tensor(np.inf), ops.convert_to_tensor(3.0, "float64"), [4.0, 5.0, 6.0, 7.0]
    )
    assert found.tolist() == [np.inf, 3.0, 6.0, 1.0]
    assert ops.dtype(found) == "float16"
    assert ops.nan_to_num(np.int32([1, 2]), ops.convert_to_tensor(9.0)).tolist() == [1, 2]
    with pytest.raises(DTypeError, match="for a tensor of complex64, expected numbers as nan, posinf and neginf"):
        ops.nan_to_num(np.complex64([1.0]), ops.convert_to_tensor(9.0))
