"""Reductions beyond the sample rows: precision over a million elements, memory layouts, large integers, errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core import errors

N = 10**6


def host(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def test_std_of_numbers_far_from_zero_is_precise(backend: str) -> None:
    x = (1e4 + np.random.default_rng(0).standard_normal(N)).astype(np.float32)
    assert host(ops.std(x)) == pytest.approx(x.astype(np.float64).std(), rel=3e-7)
    assert host(ops.var(x, correction=1)) == pytest.approx(x.astype(np.float64).var(ddof=1), rel=3e-7)


def test_reductions_of_a_million_tenths_are_precise(backend: str) -> None:
    x = np.full(N, 0.1, np.float32)
    exact = x.astype(np.float64)
    assert host(ops.sum(x)) == pytest.approx(exact.sum(), rel=3e-7)
    assert host(ops.cumsum(x)[-1]) == pytest.approx(exact.sum(), rel=3e-7)
    assert host(ops.mean(x.reshape(-1, 2), axis=0)) == pytest.approx([exact[0]] * 2, rel=5e-7)
    assert host(ops.logsumexp(x)) == pytest.approx(np.log(N) + exact[0], rel=3e-7)


LAYOUTS: list[Any] = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[:, ::2],
    lambda x: x[::3],
    lambda x: x.reshape(100, 50, 20)[:, ::-1],
    lambda x: x.reshape(20, 50, 4, 25).transpose(2, 0, 3, 1),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions_of_any_memory_layout_over_any_axes_agree_with_numpy(layout: Any, backend: str) -> None:
    x = layout(np.random.default_rng(1).random((5000, 20), np.float32))
    wide = x.astype(np.float64)
    axes: list[Any] = [None, *range(x.ndim), (0, x.ndim - 1), tuple(range(x.ndim - 1))]
    for axis in axes:
        for keepdims in (False, True):
            assert ops.to_numpy(ops.sum(x, axis, keepdims)) == pytest.approx(
                wide.sum(axis, keepdims=keepdims), rel=6e-7
            )
        assert np.array_equal(ops.to_numpy(ops.max(x, axis)), x.max(axis))
        assert np.array_equal(ops.to_numpy(ops.any(x > 0.9999, axis)), (x > 0.9999).any(axis))


@pytest.mark.parametrize("length", [1, 16, 64, 65, 100, 256, 272, 784, 2047, 4096, 100000])
def test_sums_and_means_of_equal_numbers_are_precise(length: int, backend: str) -> None:
    # Equal terms are the worst case: the sums are rounded in the same direction while their exponent stays the same.
    # In small arrays, NumPy adds the terms along an axis other than the last one after the other.
    bound = (64 if backend in ("numpy", "dask") else 6) * 2.0**-23
    for term in (0.1, 1 / 7, 0.9):
        x = np.full((2, length, 3), term, np.float32)
        wide = x.astype(np.float64)
        tensor = ops.convert_to_tensor(x)
        for axis, moved in ((1, tensor), (-1, ops.swapaxes(tensor, 1, 2)), (0, ops.moveaxis(tensor, 1, 0))):
            for keepdims in (False, True):
                total, mean = ops.sum(moved, axis, keepdims), ops.mean(moved, axis, keepdims)
                assert total.shape == mean.shape
                assert len(total.shape) == 2 + keepdims
                assert ops.dtype(total) == ops.dtype(mean) == "float32"
                assert np.abs(ops.to_numpy(total) / (length * wide[0, 0, 0]) - 1).max() < bound
                assert np.abs(ops.to_numpy(mean) / wide[0, 0, 0] - 1).max() < bound
        for axis in (None, (0, 1), (1, 2)):
            wanted = wide.sum(axis)
            assert np.abs(ops.to_numpy(ops.sum(tensor, axis)) / wanted - 1).max() < bound


def test_logsumexp_of_short_rows_keeps_infinities_and_its_derivative(backend: str) -> None:
    inf = np.inf
    rows = np.array([[-inf, -inf], [-inf, 1.0], [inf, 1.0], [inf, -inf], [np.nan, 1.0], [100.0, 100.0]], np.float32)
    wanted = [-inf, 1.0, inf, inf, np.nan, 100.0 + np.log(2)]
    assert host(ops.logsumexp(rows, -1)) == pytest.approx(wanted, nan_ok=True)
    assert host(ops.logsumexp(rows.T, 0, True)) == [pytest.approx(wanted, nan_ok=True)]
    few = ops.convert_to_tensor(np.array([[-inf, 1.0], [0.0, 0.0]], np.float32))
    for axis, keepdims in ((-1, False), (-1, True), (1, False)):
        found = ops.grad(lambda x, axis=axis, keepdims=keepdims: ops.sum(ops.logsumexp(x, axis, keepdims)))(few)
        assert host(found) == [[0.0, 1.0], [0.5, 0.5]]
    none = ops.convert_to_tensor(np.array([-inf, -inf], np.float32))
    assert host(ops.grad(lambda x: ops.logsumexp(x))(none)) == [0.0, 0.0]


def test_half_precision_does_not_overflow_in_intermediate_results(backend: str) -> None:
    for dtype in ("float16", "bfloat16"):
        x = ops.cast(ops.full((2000, 2), 300.0), dtype)
        assert host(ops.cast(ops.mean(x, axis=0), "float32")) == [300.0, 300.0]
        assert host(ops.std(x)) == 0.0
        assert host(ops.prod(ops.cast([300.0, 300.0, 1 / 256], dtype))) == pytest.approx(351.5625, rel=0.01)


def test_sums_of_integers_have_64_bits(backend: str) -> None:
    for dtype, wide in (("bool", "int64"), ("int8", "int64"), ("uint8", "uint64"), ("uint32", "uint64")):
        x = ops.cast([1, 1, 0], dtype)
        for op in (ops.sum, ops.prod, ops.cumsum, ops.cumprod):
            assert ops.dtype(op(x)) == wide
    assert host(ops.sum(np.full(300, 127, np.int8))) == 38100
    assert ops.dtype(ops.sum(np.ones(2, np.float32), dtype="float64")) == "float64"


def test_the_extremes_of_64_bit_integers_are_exact(backend: str) -> None:
    x = np.array([1, 2**64 - 1, 2**63], np.uint64)
    assert [host(ops.max(x)), host(ops.min(x)), host(ops.argmax(x))] == [2**64 - 1, 1, 1]
    assert host(ops.cummax(x)) == [1, 2**64 - 1, 2**64 - 1]
    assert host(ops.max(np.array([3, 200], np.uint8), initial=250)) == 250


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float16", "float32", "complex64"])
def test_sums_and_products_of_nothing_are_neutral_in_the_dtype_of_others(dtype: str, backend: str) -> None:
    empty, full = ops.zeros((0, 3), dtype), ops.ones((2, 3), dtype)
    for op, neutral in [(ops.sum, 0), (ops.prod, 1), (ops.cumsum, 0), (ops.cumprod, 1)]:
        for axis in (None, 0, 1):
            found = op(empty, axis)
            assert ops.dtype(found) == ops.dtype(op(full, axis))
            assert ops.to_numpy(found).tolist() == np.full(found.shape, neutral).tolist()


def test_reductions_of_empty_tensors_give_the_neutral_element_or_raise(backend: str) -> None:
    x = ops.zeros((0, 3))
    assert host(ops.sum(x)) == 0.0
    assert host(ops.prod(x, axis=0)) == [1.0] * 3
    assert np.isnan(host(ops.mean(x, axis=0))).all()
    assert np.isnan(host(ops.var(x)))
    assert [host(ops.any(x)), host(ops.all(x))] == [False, True]
    assert host(ops.logsumexp(x, axis=0)) == [-float("inf")] * 3
    assert host(ops.cumsum(x)) == []
    assert host(ops.max(x, axis=0, initial=1.0)) == [1.0] * 3
    assert host(ops.max(x, axis=1)) == []
    assert host(ops.argmax(x, axis=1)) == []
    for op in (ops.max, ops.min, ops.argmax, ops.argmin):
        with pytest.raises(errors.ShapeError, match=op.__name__):
            op(x)


def test_reductions_of_one_number_return_it(backend: str) -> None:
    x = ops.convert_to_tensor(2.5)
    for op in (ops.sum, ops.prod, ops.mean, ops.max, ops.min, ops.logsumexp):
        assert host(op(x)) == 2.5
    assert [host(op(x)) for op in (ops.var, ops.std, ops.argmax, ops.argmin)] == [0.0, 0.0, 0, 0]
    assert [host(op(x)) for op in (ops.cumsum, ops.cumprod, ops.cummax)] == [[2.5]] * 3


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30))
def test_cumulative_extremes_agree_with_python(values: list[int]) -> None:
    x = np.array(values, np.int32)
    assert host(ops.cummax(x)) == [max(values[: i + 1]) for i in range(len(values))]
    assert host(ops.cummin(x)[-1]) == min(values)


def test_cumulative_extremes_propagate_nan(backend: str) -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        x = ops.cast([3.0, float("nan"), 4.0], dtype)
        assert np.isnan(host(ops.cast(ops.cummax(x), "float32"))[1:]).all()


def test_wrong_axes_and_complex_numbers_are_refused(backend: str) -> None:
    x = np.ones((2, 3), np.float32)
    for axis in (2, -3):
        for op in (ops.sum, ops.mean, ops.std, ops.max, ops.any, ops.argmax, ops.cumsum, ops.logsumexp):
            with pytest.raises(errors.AxisError, match=op.__name__):
                op(x, axis)
    for op in (ops.sum, ops.mean, ops.var, ops.max, ops.all):
        with pytest.raises(errors.AxisError, match=op.__name__):
            op(x, (0, -2))
    with pytest.raises(errors.AxisError, match="cumulative_sum"):
        ops.cumulative_sum(x)
    with pytest.raises(errors.AxisError, match="cumsum"):
        ops.cumsum(2.0, 0)
    for op in (ops.max, ops.argmin, ops.logsumexp):
        with pytest.raises(errors.DTypeError, match=op.__name__):
            op(x * 1j)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_variance_of_long_rows_is_precise(backend: str, dtype: str) -> None:
    rows = np.stack([np.sin(np.arange(70000.0)) + 1e3, np.arange(70000.0), np.arange(70000.0) < 66000]).astype(dtype)
    wide = rows.astype(np.float64)
    wanted = ((wide - wide.mean(1, keepdims=True)) ** 2).mean(1)
    near = {"rtol": 4e-6 if dtype == "float32" else 1e-11, "atol": 0}
    assert np.allclose(ops.to_numpy(ops.var(rows, 1)), wanted, **near)
    spread = ops.to_numpy(ops.std(rows, (-1,), True, 1))
    assert np.allclose(spread, rows.std(1, ddof=1, dtype="f8", keepdims=True), **near)
    whole = ops.var(ops.reshape(ops.convert_to_tensor(rows), (3, 700, 100)), (2, 1))
    assert np.allclose(ops.to_numpy(whole), wanted, **near)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_variance_of_many_short_rows_is_precise(backend: str, dtype: str) -> None:
    for length in (1, 2, 7, 1000):
        rows = (np.sin(np.arange(70_000.0)) * 4 + 100)[: 70_000 // length * length].reshape(-1, length).astype(dtype)
        wanted = rows.var(1, dtype="f8")
        near = {"rtol": {"float16": 2e-3, "float32": 4e-6}.get(dtype, 1e-11), "atol": 1e-12}
        assert np.allclose(ops.to_numpy(ops.var(rows, 1)), wanted, **near), length
        assert np.allclose(ops.to_numpy(ops.var(rows.reshape(-1, 1, length), (1, 2), True)).ravel(), wanted, **near)
    rows[3, 5], rows[4, 5] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        assert np.isnan(ops.to_numpy(ops.std(rows, 1))).nonzero()[0].tolist() == [3, 4]


def test_the_variance_of_rows_far_from_zero_has_the_digits_of_that_of_others(backend: str) -> None:
    centers = np.array([0.0, 0.1, 30.0, 900.0, 1100.0, 1e5])
    rows = (np.random.default_rng(0).normal(size=(600, 512)) + np.repeat(centers, 100)[:, None]).astype(np.float32)
    for part in (rows, rows[:300], rows[-200:]):
        assert np.allclose(ops.to_numpy(ops.var(part, 1)), part.var(1, dtype="f8"), rtol=1e-6, atol=0)
    assert not ops.to_numpy(ops.std(np.full((600, 512), 1e5, np.float32), 1)).any()


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum", "nanprod", "nancumsum", "nancumprod"])
def test_elements_are_cast_to_dtype_before_the_reduction(name: str, backend: str) -> None:
    call, dtypes = getattr(ops, name), ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64")
    x = np.array([[0.5, 1.5, 2.0], [3.7, -0.2, 1.0]])
    for own in dtypes:
        for wanted in dtypes:
            got = call(ops.cast(x, own), 0, dtype=wanted)
            assert ops.dtype(got) == wanted
            assert np.array_equal(
                ops.to_numpy(got), ops.to_numpy(call(ops.cast(ops.cast(x, own), wanted), 0, dtype=wanted))
            )


def test_a_wider_dtype_option_keeps_the_precision(backend: str) -> None:
    x = np.array([1e8, 1, 1, 1], np.float32)
    assert float(ops.sum(x, dtype="float64")) == float(ops.nansum(x, dtype="float64")) == 100000003.0
    assert float(ops.linalg.trace(np.diag(x), dtype="float64")) == 100000003.0
    assert ops.cumulative_sum(x, dtype="float64").tolist()[-1] == 100000003.0
    assert ops.cumprod(np.array([1e30, 1e30], np.float32), dtype="float64").tolist()[-1] == pytest.approx(1e60)
    assert float(ops.prod(np.array([1e30, 1e30], np.float32), dtype="float64")) == pytest.approx(1e60)
    assert int(ops.sum(np.full(4, 0.5, np.float32), dtype="int8")) == 0
    # Cast to float16, every element is 1.
    assert float(ops.sum(np.full(8, 1 + 2.0**-12), dtype="float16")) == 8.0


@pytest.mark.parametrize("flag", [1, 0, np.True_, np.False_])
def test_keepdims_accepts_integers_and_booleans_of_numpy(flag: Any, backend: str) -> None:
    x, wanted = ops.ones((2, 3)), (2, 1) if flag else (2,)
    for op in (ops.sum, ops.max, ops.argmax, ops.any, ops.logsumexp, ops.std, ops.median, ops.vector_norm):
        assert tuple(op(x, 1, keepdims=flag).shape) == wanted  # type: ignore[operator]
        assert tuple(op([[1.0, 2.0], [3.0, 4.0]], 1, keepdims=flag).shape) == wanted  # type: ignore[operator]


def test_a_correction_that_is_not_a_number_raises_a_typed_error(backend: str) -> None:
    with pytest.raises(errors.EmberError, match=r"^var\(\) on backend"):
        ops.eval(ops.var(ops.ones((3,)), correction=np.array([1, 2])))


@pytest.mark.parametrize("axis", [True, np.bool_(True), False])
def test_an_axis_is_no_boolean(axis: Any, backend: str) -> None:
    x = np.ones((2, 3), np.float32)
    for op in (ops.sum, ops.mean, ops.std, ops.max, ops.any, ops.argmax, ops.cumsum, ops.logsumexp, ops.median):
        with pytest.raises(errors.ArgumentTypeError, match=rf"{op.__name__}\(\) on backend '{backend}'"):
            op(x, axis)


def test_logcumsumexp_keeps_small_and_large_terms(backend: str) -> None:
    x = np.float32([-1000.0, 0.0, 1000.0, -np.inf])
    assert ops.logcumsumexp(x).tolist() == [-1000.0, 0.0, 1000.0, 1000.0]
    assert ops.logcumsumexp(x, reverse=True).tolist() == [1000.0, 1000.0, 1000.0, -np.inf]
    assert ops.shape(ops.logcumsumexp(ops.zeros((2, 0)), 1)) == (2, 0)
    assert ops.logcumsumexp(2).tolist() == [2.0]
    long = ops.to_numpy(ops.logcumsumexp(np.zeros(3000, np.float32)))
    np.testing.assert_allclose(long, np.log(np.arange(1, 3001)), rtol=3e-7, atol=1e-7)


def test_the_gradient_of_logcumsumexp_is_finite_beside_infinities(backend: str) -> None:
    x = np.float32([-np.inf, -np.inf, 0.0, 0.0])
    slope = ops.grad(lambda x: ops.logcumsumexp(x)[-1])(x)
    assert slope.tolist() == [0.0, 0.0, 0.5, 0.5]
    _, forward = ops.jvp(ops.logcumsumexp, (x[2:],), (np.float32([1.0, 0.0]),))
    assert forward.tolist() == [1.0, 0.5]
    assert ops.vmap(ops.logcumsumexp)(np.zeros((2, 1), np.float32)).tolist() == [[0.0], [0.0]]


def test_an_initial_value_shares_the_gradient_with_an_equal_extreme(backend: str) -> None:
    for op, other in ((ops.max, 1.0), (ops.min, 9.0)):
        by_x, by_initial = ops.grad(lambda x, initial, op=op: op(x, initial=initial), argnums=(0, 1))([3.0, other], 3.0)
        assert (by_x.tolist(), float(by_initial)) == ([0.5, 0.0], 0.5)
    by_x, by_initial = ops.grad(lambda x, initial: ops.max(x, initial=initial), argnums=(0, 1))([3.0, 1.0], 2.0)
    assert (by_x.tolist(), float(by_initial)) == ([1.0, 0.0], 0.0)
    assert float(ops.grad(lambda initial: ops.sum(ops.max(ops.zeros((2, 0)), 1, initial=initial)))(2.0)) == 2.0


def test_options_of_a_reduction_have_no_axes(backend: str) -> None:
    for call in (
        lambda: ops.max([1.0, 2.0], initial=ops.convert_to_tensor([0.0, 3.0])),
        lambda: ops.var([1.0, 2.0], correction=ops.convert_to_tensor([0.0, 1.0])),
        lambda: ops.std([1.0, 2.0], correction=[0.0, 1.0]),
    ):
        with pytest.raises(
            errors.ShapeError, match=r"(initial|correction) is a number or a tensor without axes, got sh"
        ):
            call()


def test_a_correction_that_leaves_no_freedom_gives_nan_as_a_tensor_too(backend: str) -> None:
    for op in (ops.var, ops.std, ops.nanvar, ops.nanstd):
        assert np.isnan(float(op([1.0, 2.0], correction=ops.convert_to_tensor(2.0))))


ROWS_WITH_INFINITIES = np.float32([[0, 1, 2], [-np.inf, 1, -np.inf], [-np.inf] * 3])
SHARES = np.float32([[0.09003057, 0.24472848, 0.6652409], [0, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_gradient_of_logsumexp_is_the_softmax_and_zero_in_rows_of_minus_infinity(backend: str, dtype: str) -> None:
    def total(x: Any) -> Any:
        return ops.sum(ops.where(ops.isfinite(found := ops.logsumexp(x, axis=-1)), found, 0.0))

    x, rows = ROWS_WITH_INFINITIES.astype(dtype), ops.convert_to_tensor(ROWS_WITH_INFINITIES.astype(dtype))
    assert host(ops.logsumexp(rows, axis=-1, keepdims=True))[1:] == [[1.0], [-np.inf]]
    assert ops.to_numpy(ops.grad(total)(x)) == pytest.approx(SHARES, abs=1e-3 if dtype == "float16" else 1e-6)
    slope = ops.vjp(lambda x: ops.logsumexp(x, axis=-1), rows)[1](ops.ones((3,), dtype=dtype))[0]
    assert ops.to_numpy(slope) == pytest.approx(SHARES, abs=1e-3 if dtype == "float16" else 1e-6)


def test_logsumexp_of_infinite_rows_is_differentiated_in_every_transform(backend: str) -> None:
    rows = ops.convert_to_tensor(ROWS_WITH_INFINITIES)
    mapped = ops.vmap(ops.grad(lambda x: ops.logsumexp(x)))(rows)
    assert ops.to_numpy(mapped) == pytest.approx(SHARES, abs=1e-6)
    pushed = ops.jvp(lambda x: ops.logsumexp(x, axis=1), (rows,), (ops.ones_like(rows),))[1]
    assert ops.to_numpy(pushed) == pytest.approx(np.float32([1, 1, 0]), abs=1e-6)
    curved = ops.hessian(lambda x: ops.logsumexp(x))(rows[0])
    exact = np.diag(SHARES[0]) - np.outer(SHARES[0], SHARES[0])
    assert ops.to_numpy(curved) == pytest.approx(exact, abs=1e-6)
    both = ops.grad(lambda x: ops.logsumexp(x, axis=(0, 1)))(rows[:2])
    weights = np.exp(ROWS_WITH_INFINITIES[:2].astype(np.float64))
    assert ops.to_numpy(both) == pytest.approx(weights / weights.sum(), abs=1e-6)


@pytest.mark.parametrize("count", [64, 1024, 1025, 5000])
def test_logsumexp_and_its_gradient_are_precise_in_short_and_long_rows(backend: str, count: int) -> None:
    x = np.random.default_rng(0).standard_normal((4, count)).astype(np.float32)
    weights = np.exp(x.astype(np.float64))
    wanted = np.log(weights.sum(-1))
    value, gradient = ops.value_and_grad(lambda x: ops.sum(ops.logsumexp(x, axis=-1)))(x)
    assert ops.to_numpy(ops.logsumexp(x, axis=-1)) == pytest.approx(wanted, rel=1e-6)
    assert value.tolist() == pytest.approx(wanted.sum(), rel=1e-6)
    assert ops.to_numpy(gradient) == pytest.approx(weights / weights.sum(-1, keepdims=True), rel=1e-5)


@pytest.mark.parametrize(
    "axis, keepdims", [(1, False), (1, True), (-1, False), ((0, 2), False), (None, False), (2, True)]
)
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("name", ["std", "var"])
def test_all_derivatives_exist_where_nothing_deviates(
    name: str, correction: int, axis: Any, keepdims: bool, backend: str
) -> None:
    x = np.random.default_rng(0).normal(3, 1, (4, 3, 5)).astype(np.float32)
    x[1] = 2.0
    if axis is None or axis == (0, 2):
        x[:, 1] = x[...] = 2.0
    v = np.random.default_rng(1).normal(0, 1, x.shape).astype(np.float32)

    def loss(x: Any) -> Any:
        return ops.sum(ops.power(getattr(ops, name)(x, axis, keepdims, correction=correction), 3))

    wanted = float(ops.jvp(loss, (x,), (v,))[1])
    assert np.isfinite(wanted)
    found, slope = ops.value_and_grad(lambda x: ops.jvp(loss, (x,), (v,))[1])(x)
    assert float(found) == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    assert not ops.to_numpy(slope)[1].any()
    product = ops.grad(lambda x: ops.sum(ops.multiply(ops.grad(loss)(x), v)))(x)
    np.testing.assert_allclose(ops.to_numpy(product), ops.to_numpy(slope), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["std", "var"])
def test_derivatives_of_the_deviation_of_many_rows_are_those_of_each_row(name: str, backend: str) -> None:
    op = getattr(ops, name)
    random = np.random.default_rng(0)
    x = random.normal(3, 1, (64, 256)).astype(np.float32)
    x[5] = 2.0  # without deviation

    def loss(x: Any) -> Any:
        return ops.sum(ops.power(op(x, 1, correction=1), 3))

    def slope(x: Any) -> Any:
        return ops.sum(ops.square(ops.grad(loss)(x)))

    for f in (loss, slope):
        whole = ops.to_numpy(ops.grad(f)(x))
        for i in (0, 5, 63):
            row = ops.to_numpy(ops.grad(f)(x[i : i + 1]))[0]
            np.testing.assert_allclose(whole[i], row, rtol=1e-3, atol=1e-5 * np.abs(whole).max())
    # The derivative along `x` itself, because the loss is a power of what is proportional to it.
    power = 3 if name == "std" else 6
    assert np.isclose(float(ops.jvp(loss, (x,), (x,))[1]), power * float(loss(x)), rtol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
def test_the_gradient_of_an_empty_product_is_empty(axis: Any, backend: str) -> None:
    found = ops.grad(lambda x: ops.sum(ops.prod(x, axis)))(ops.ones((3, 0)))
    assert tuple(found.shape) == (3, 0)


@pytest.mark.parametrize("count", [1023, 1025, 4095, 4096, 4097, 20000])
@pytest.mark.parametrize("axis", [-1, 0])
def test_the_logarithm_of_sums_of_many_exponentials_is_precise(count: int, axis: int, backend: str) -> None:
    x = (np.cos(np.arange(3.0 * count)).reshape(3, count) * 3.0 + [[0.0], [50.0], [-90.0]]).astype(np.float32)
    wide = x.astype(np.float64)
    top = wide.max(-1, keepdims=True)
    shares = np.exp(wide - top)
    wanted = np.log(shares.sum(-1)) + top[:, 0]
    given = ops.asarray(x if axis else np.ascontiguousarray(x.T))
    found = ops.to_numpy(ops.logsumexp(given, axis))
    np.testing.assert_allclose(found, wanted, rtol=4e-7)
    # Minus the largest element, so that the digits of the sum itself are seen.
    np.testing.assert_allclose(
        ops.to_numpy(ops.logsumexp(ops.subtract(given, ops.max(given, axis, keepdims=True)), axis)),
        np.log(np.exp((x - x.max(-1, keepdims=True)).astype(np.float64)).sum(-1)),
        rtol=4e-7,
    )
    slope = ops.to_numpy(ops.grad(lambda t: ops.sum(ops.logsumexp(t, axis)))(given))
    np.testing.assert_allclose(slope if axis else slope.T, shares / shares.sum(-1, keepdims=True), rtol=3e-5)
