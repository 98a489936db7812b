"""Laws of arithmetic: some hold exactly, the others up to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from tests.properties.strategies import FLOATS, INSTALLED, INTEGERS, arrays, host, near, on, same, together

ANY = ("bool", *INTEGERS, *FLOATS, "complex64")
COMMUTATIVE = {
    "add": ANY,
    # No complex numbers: the fused kernels of NumPy and PyTorch round a * b and b * a differently.
    "multiply": ANY[:-1],
    "maximum": ("bool", *INTEGERS, *FLOATS),
    "minimum": ("bool", *INTEGERS, *FLOATS),
    "equal": ANY,
    "not_equal": ANY,
    "logical_and": ANY,
    "logical_or": ANY,
    "logical_xor": ANY,
    "bitwise_and": ("bool", *INTEGERS),
    "bitwise_or": ("bool", *INTEGERS),
    "bitwise_xor": ("bool", *INTEGERS),
    "gcd": INTEGERS,
    "lcm": ("int64",),
    "hypot": FLOATS,
    "logaddexp": FLOATS,
}
ASSOCIATIVE = ("add", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")


@pytest.mark.parametrize("op", sorted(COMMUTATIVE))
@given(data=st.data())
def test_commutative_ops_give_equal_bits_in_both_orders(op: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(COMMUTATIVE[op]))
    a, b = data.draw(together(dtype, special=dtype in FLOATS))
    if op == "lcm":
        a, b = a % 1000, b % 1000
    function = getattr(ops, op)
    for name in INSTALLED:
        with on(name):
            first, second = host(function(a, b)), host(function(b, a))
        if op in ("maximum", "minimum"):
            # For 0.0 and -0.0 either may be returned; adding 0.0 removes the sign.
            first, second = first + np.zeros((), first.dtype), second + np.zeros((), second.dtype)
        assert same(first, second)


@pytest.mark.parametrize("op", ASSOCIATIVE)
@given(data=st.data())
def test_integer_ops_are_associative(op: str, data: st.DataObject) -> None:
    a, b, c = data.draw(together(data.draw(st.sampled_from(INTEGERS)), 3))
    function = getattr(ops, op)
    for name in INSTALLED:
        with on(name):
            assert same(host(function(function(a, b), c)), host(function(a, function(b, c))))


@given(data=st.data())
def test_integer_multiplication_distributes_over_addition(data: st.DataObject) -> None:
    a, b, c = data.draw(together(data.draw(st.sampled_from(INTEGERS)), 3))
    for name in INSTALLED:
        with on(name):
            left = host(ops.multiply(a, ops.add(b, c)))
            assert same(left, host(ops.add(ops.multiply(a, b), ops.multiply(a, c))))
            assert same(host(ops.add(ops.subtract(a, b), b)), np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape)))


@given(data=st.data())
def test_float_arithmetic_is_associative_and_distributive_up_to_rounding(data: st.DataObject) -> None:
    a, b, c = data.draw(together(data.draw(st.sampled_from((*FLOATS, "complex64"))), 3))
    size = [np.abs(x).astype(np.float64) for x in (a, b, c)]
    for name in INSTALLED:
        with on(name):
            sums = host(ops.add(ops.add(a, b), c)), host(ops.add(a, ops.add(b, c)))
            products = host(ops.multiply(ops.multiply(a, b), c)), host(ops.multiply(a, ops.multiply(b, c)))
            spread = host(ops.multiply(a, ops.add(b, c))), host(ops.add(ops.multiply(a, b), ops.multiply(a, c)))
        assert near(*sums, size[0] + size[1] + size[2], 4)
        assert near(*products, size[0] * size[1] * size[2], 8)
        assert near(*spread, size[0] * (size[1] + size[2]), 8)


@given(data=st.data())
def test_maximum_and_minimum_are_associative_and_distributive(data: st.DataObject) -> None:
    a, b, c = data.draw(together(data.draw(st.sampled_from(FLOATS)), 3, special=True))
    for name in INSTALLED:
        with on(name):
            for function in (ops.maximum, ops.minimum):
                left, right = host(function(function(a, b), c)), host(function(a, function(b, c)))
                assert np.array_equal(left, right, equal_nan=True)
            lattice = host(ops.maximum(a, ops.minimum(b, c))), host(ops.minimum(ops.maximum(a, b), ops.maximum(a, c)))
            assert np.array_equal(*lattice, equal_nan=True)


@given(data=st.data())
def test_zero_and_one_are_neutral_and_inverses_cancel(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from((*INTEGERS, *FLOATS, "complex64")))
    x = data.draw(arrays(dtype))
    for name in INSTALLED:
        with on(name):
            assert np.array_equal(host(ops.add(x, 0)), x)
            product = host(ops.multiply(x, 1))
            # A product of complex numbers may lose the sign of a zero.
            assert same(product, x) or (dtype == "complex64" and np.array_equal(product, x))
            assert not host(ops.subtract(x, x)).any()
            assert same(host(ops.negative(ops.negative(x))), x)
            if dtype in FLOATS:
                assert (host(ops.divide(x, x))[x != 0] == 1).all()
                assert same(host(ops.power(x, 1)), x)
                assert same(host(ops.multiply(ops.copysign(1.0, x), ops.abs(x))), x)


@given(data=st.data())
def test_quotient_times_divisor_plus_remainder_is_the_dividend(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS))
    x, y = data.draw(together(dtype))
    y = np.where(y == 0, np.ones((), dtype), y)
    for name in INSTALLED:
        with on(name):
            quotient, rest = ops.floor_divide(x, y), ops.remainder(x, y)
            made = host(ops.add(ops.multiply(quotient, y), rest))
            assert same(made, np.broadcast_to(x, made.shape))
            rest = host(rest)
            assert ((rest == 0) | ((rest < 0) == (np.broadcast_to(y, rest.shape) < 0))).all()
            exact = rest.astype(object), np.broadcast_to(y, rest.shape).astype(object)
            assert np.all(np.abs(exact[0]) < np.abs(exact[1]))


@given(data=st.data())
def test_the_laws_of_de_morgan_hold(data: st.DataObject) -> None:
    a, b = data.draw(together("bool"))
    i, j = data.draw(together(data.draw(st.sampled_from(INTEGERS))))
    for name in INSTALLED:
        with on(name):
            assert same(
                host(ops.logical_not(ops.logical_and(a, b))),
                host(ops.logical_or(ops.logical_not(a), ops.logical_not(b))),
            )
            assert same(
                host(ops.bitwise_not(ops.bitwise_and(i, j))),
                host(ops.bitwise_or(ops.bitwise_not(i), ops.bitwise_not(j))),
            )


@given(data=st.data())
def test_comparisons_are_a_total_order(data: st.DataObject) -> None:
    a, b = data.draw(together(data.draw(st.sampled_from((*INTEGERS, *FLOATS)))))
    for name in INSTALLED:
        with on(name):
            less, equal, greater = (host(getattr(ops, op)(a, b)) for op in ("less", "equal", "greater"))
            assert (less.astype(int) + equal + greater == 1).all()
            assert same(host(ops.less_equal(a, b)), less | equal)
            assert same(host(ops.greater_equal(a, b)), greater | equal)


@given(data=st.data())
def test_matrix_products_are_associative_distributive_and_transpose(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from((*FLOATS, "int32")))
    h, k, m, n = (data.draw(st.integers(0, 5)) for _ in range(4))
    whole = dtype == "int32"
    a, b, c, d = (data.draw(arrays(dtype, shape, size=10.0)) for shape in ((h, k), (k, m), (m, n), (k, m)))
    sizes = [np.abs(x).astype(np.float64) for x in (a, b, c, d)]
    for name in INSTALLED:
        with on(name):
            chains = host(ops.matmul(ops.matmul(a, b), c)), host(ops.matmul(a, ops.matmul(b, c)))
            spread = host(ops.matmul(a, ops.add(b, d))), host(ops.add(ops.matmul(a, b), ops.matmul(a, d)))
            turned = host(ops.transpose(ops.matmul(a, b))), host(ops.matmul(ops.transpose(b), ops.transpose(a)))
        if whole:
            assert same(*chains)
            assert same(*spread)
            assert same(*turned)
            continue
        assert near(*chains, sizes[0] @ sizes[1] @ sizes[2], 4 * (k + m + 1))
        assert near(*spread, sizes[0] @ (sizes[1] + sizes[3]), 4 * (k + 1))
        assert near(*turned, (sizes[0] @ sizes[1]).T, 2 * (k + 1))


@given(data=st.data())
def test_the_sums_of_two_parts_add_to_the_whole_sum(data: st.DataObject) -> None:
    x = data.draw(arrays(data.draw(st.sampled_from((*INTEGERS, *FLOATS))), data.draw(st.tuples(st.integers(0, 9)))))
    cut = data.draw(st.integers(0, x.size))
    for name in INSTALLED:
        with on(name):
            whole, parts = host(ops.sum(x)), host(ops.add(ops.sum(x[:cut]), ops.sum(x[cut:])))
            running = host(ops.cumsum(x))
        if x.dtype.kind in "iu":
            assert same(whole, parts)
            assert not x.size or running[-1] == whole
            continue
        size = np.abs(x.astype(np.float64)).sum()
        assert near(whole, parts, size, 4)
        assert not x.size or near(running[-1], whole, size, 4)
