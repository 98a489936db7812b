"""Creation of tensors: default dtypes, numbers that do not fit, ends of ranges, wrong lengths."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core import errors

DTYPES = ["bool", "int8", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float64", "complex64"]


def test_the_default_dtype_follows_the_values(backend: str) -> None:
    assert ops.dtype(ops.zeros(2)) == "float32"
    assert ops.dtype(ops.arange(3)) == ops.dtype(ops.full(2, 3)) == "int64"
    assert ops.dtype(ops.arange(3.0)) == ops.dtype(ops.full(2, 3.0)) == ops.dtype(ops.linspace(0, 1, 2)) == "float32"
    assert ops.dtype(ops.full(2, True)) == "bool"
    assert ops.dtype(ops.full(2, 1j)) == "complex64"
    assert ops.dtype(ops.full(2, np.float64(1))) == "float64"
    assert ops.dtype(ops.hanning(4)) == "float32"


def test_created_tensors_have_the_default_float(backend: str) -> None:
    ops.set_default_float("float64")
    try:
        for made in (ops.zeros(2), ops.eye(2), ops.linspace(0, 1, 3), ops.full(2, 0.5), ops.kaiser(3, 1.0)):
            assert ops.dtype(made) == "float64"
        assert float(ops.to_numpy(ops.linspace(0, 1, 11))[1]) == 0.1
    finally:
        ops.set_default_float("float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype_can_be_created(backend: str, dtype: str) -> None:
    like = ops.zeros((2, 2), dtype)
    made = [
        *(ops.ones(2, dtype), ops.full(2, 1, dtype), ops.empty(2, dtype), ops.eye(2, 3, 1, dtype)),
        *(
            ops.tri(2, dtype=dtype),
            ops.identity(2, dtype),
            ops.arange(2, dtype=dtype),
            ops.linspace(0, 1, 2, dtype=dtype),
        ),
        *(ops.full_like(like, 1), ops.ones_like(like), ops.zeros_like(ops.zeros(2), dtype), ops.empty_like(like)),
    ]
    for tensor in made:
        assert ops.dtype(tensor) == dtype


def test_full_holds_the_least_and_the_greatest_integers(backend: str) -> None:
    assert ops.full((1,), 2**64 - 1, "uint64").tolist() == [2**64 - 1]
    assert ops.full((1,), -(2**63), "int64").tolist() == [-(2**63)]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.full(2, 300, "uint8"),
        lambda: ops.full_like(ops.zeros(2, "uint8"), -1),
        lambda: ops.arange(300, dtype="uint8"),
        lambda: ops.arange(-3, dtype="uint8", step=-1),
        lambda: ops.full(2, float("inf"), "int32"),
    ],
)
def test_a_number_that_does_not_fit_the_dtype_is_refused(backend: str, call: Callable[[], object]) -> None:
    with pytest.raises(errors.RangeError, match=f"on backend '{backend}'"):
        call()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.zeros((2, -1)), errors.ShapeError),
        (lambda: ops.eye(-1), errors.ShapeError),
        (lambda: ops.ones(2.5), errors.ArgumentTypeError),
        (lambda: ops.zeros("ab"), errors.ArgumentTypeError),
        (lambda: ops.linspace(0, 1, -1), errors.ArgumentError),
        (lambda: ops.geomspace(0, 1, 3), errors.ArgumentError),
        (lambda: ops.hanning(2.5), errors.ArgumentTypeError),
        (lambda: ops.arange(0, 3, 0), errors.ArgumentError),
        (lambda: ops.zeros(2, "float33"), errors.DTypeError),
        (lambda: ops.zeros(2, device="moon"), errors.DeviceError),
        (lambda: ops.kaiser(3, 1.0, device="moon"), errors.DeviceError),
        (lambda: ops.tril([1, 2]), errors.ShapeError),
        (lambda: ops.diag(ops.zeros((1, 1, 1))), errors.ShapeError),
        (lambda: ops.vander([[1, 2]]), errors.ShapeError),
        (lambda: ops.full((2, 2), [1, 2, 3]), errors.ShapeError),
        (lambda: ops.full((3,), np.ones((1,) * 33)), errors.ShapeError),
        (lambda: ops.meshgrid([1], [2], indexing="ji"), errors.ArgumentError),
    ],
)
def test_a_wrong_argument_is_refused(backend: str, call: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"\w+\(\) on backend '{backend}'"):
        call()


@given(
    start=st.integers(-50, 50),
    stop=st.integers(-50, 50),
    step=st.integers(-7, 7).filter(bool),
    dtype=st.sampled_from(["int32", "int64", "float32", "float64"]),
)
def test_arange_equals_the_range_of_python(start: int, stop: int, step: int, dtype: str) -> None:
    for name in ops.available_backends():
        with ops.use_backend(name):
            assert ops.to_numpy(ops.arange(start, stop, step, dtype)).tolist() == list(range(start, stop, step))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 10_000, 1), (2**24, -(2**24), -4001), (0.0, 2.0**24, 1999.0), (-3, 2**25, 4001), (0, 2**31, 200_001)],
)
def test_a_long_range_is_exact(backend: str, start: float, stop: float, step: float, dtype: str) -> None:
    made = ops.to_numpy(ops.arange(start, stop, step, dtype=dtype))
    np.testing.assert_array_equal(made, np.arange(start, stop, step).astype(dtype))


@pytest.mark.parametrize(
    "places",
    [
        range(0, 2**60 + 1, 2**58),
        range(2**62, -(2**63), -(2**61) - 1),
        range(-(2**63), 2**63 - 1, 2**63 + 5),
        range(2**60, 2**60 + 5),
        range(2**63 - 1, 2**62, -3 * 2**60),
        range(2**55 + 1, 2**55, -1),
    ],
    ids=str,
)
def test_integers_beyond_float64_are_those_of_python(backend: str, places: range) -> None:
    assert ops.to_numpy(ops.arange(places.start, places.stop, places.step)).tolist() == list(places)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_a_window_is_that_of_numpy(backend: str, name: str, count: int) -> None:
    made = ops.to_numpy(getattr(ops, name)(count, dtype="float64"))
    np.testing.assert_allclose(made, getattr(np, name)(count), rtol=0, atol=1e-16)


def test_linspace_contains_its_ends_exactly(backend: str) -> None:
    low, high = np.float32([0.1, -3.0]), np.float32([0.7, 1e-3])
    samples = ops.to_numpy(ops.linspace(ops.convert_to_tensor(low), ops.convert_to_tensor(high), 7))
    assert samples.dtype == np.float32
    assert (samples[0] == low).all()
    assert (samples[-1] == high).all()
    double = ops.to_numpy(ops.linspace(np.float64([0.0]), np.float64([1.0]), 11))
    assert double[:, 0].tolist() == pytest.approx(np.linspace(0, 1, 11).tolist(), rel=1e-15)


def test_linspace_returns_its_step(backend: str) -> None:
    samples, step = ops.linspace(0, 3, 4, retstep=True)
    assert samples.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert float(step) == 1.0
    _, steps = ops.linspace(ops.zeros(2), 3.0, 3, endpoint=False, retstep=True)
    assert steps.tolist() == [1.0, 1.0]


def test_linspace_of_integers_rounds_down(backend: str) -> None:
    assert ops.linspace(-1, 1, 4, dtype="int32").tolist() == [-1, -1, 0, 1]


def test_meshgrid_keeps_each_dtype(backend: str) -> None:
    first, second = ops.meshgrid(np.float32([1, 2]), np.int32([3, 4, 5]))
    assert (ops.dtype(first), ops.dtype(second)) == ("float32", "int32")
    assert ops.shape(first) == ops.shape(second) == (3, 2)


def test_vander_of_integers_is_exact(backend: str) -> None:
    powers = ops.vander(np.int32([-3, 0, 7]), 20, increasing=True)
    assert ops.dtype(powers) == "int64"
    assert powers.tolist() == [[n**k for k in range(20)] for n in (-3, 0, 7)]


def test_ones_like_and_the_others_share_no_memory_with_their_argument(backend: str) -> None:
    x = ops.convert_to_tensor(np.ones((2, 3), np.float32))
    for made in (ops.zeros_like(x), ops.full_like(x, 2.0), ops.ones_like(x)):
        assert not np.shares_memory(ops.to_numpy(made), ops.to_numpy(x))


def test_full_overflows_floats_to_infinity_and_refuses_complex_numbers(backend: str) -> None:
    for dtype in ("float16", "float32"):
        assert ops.full((2,), 1e300, dtype).tolist() == [np.inf] * 2
        assert ops.full_like(ops.zeros(1, dtype), -1e300).tolist() == [-np.inf]
    assert ops.full((1,), 2**70, "bool").tolist() == ops.full((1,), 2j, "bool").tolist() == [True]
    for dtype in ("float32", "int8"):
        with pytest.raises(errors.DTypeError, match=r"complex number 2j does not fit"):
            ops.full((1,), 2j, dtype)
        with pytest.raises(errors.DTypeError, match=r"complex number 2j does not fit"):
            ops.pad(ops.zeros(1, dtype), 1, constant_values=2j)


@pytest.mark.parametrize("dtype", [None, "float32", "int32", "bool"])
def test_a_traced_number_fills_a_tensor_in_any_dtype(dtype: str | None, quick: str) -> None:
    x = ops.convert_to_tensor([0.0, 2.0])
    for fill in (lambda v: ops.full((2,), v, dtype), lambda v: ops.full_like(ops.ones(2), v, dtype)):
        wanted = ops.to_numpy(ops.stack([fill(number) for number in (0.0, 2.0)])).tolist()
        assert ops.to_numpy(ops.vmap(fill)(x)).tolist() == wanted
        if dtype == "bool":  # whose numbers are compared with zero
            assert ops.to_numpy(ops.compile(fill)(x[1])).tolist() == wanted[1]


def test_a_vector_may_stand_on_any_diagonal(backend: str) -> None:
    for k in (-5, -1, 0, 2, 7):
        assert ops.to_numpy(ops.diag([1.0, 2.0], k)).tolist() == np.diag([1.0, 2.0], k).tolist()


def test_the_number_of_a_diagonal_must_be_an_integer(backend: str) -> None:
    for call in (ops.tril, ops.triu, ops.diag):
        with pytest.raises(errors.ArgumentTypeError, match=rf"\(\) on backend '{backend}'"):
            call(np.eye(3), 1.5)
        assert ops.shape(call(np.eye(3), np.int64(1))) in ((3, 3), (2,))


@pytest.mark.parametrize("step", [np.nan, np.inf])
def test_a_range_to_infinity_or_nan_is_refused(backend: str, step: float) -> None:
    with pytest.raises(errors.EmberError):
        ops.arange(0, step)


def test_a_matrix_beyond_the_memory_is_refused_before_memory_is_taken(backend: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(errors.OutOfMemoryError, match=rf"tri\(\) on backend '{backend}'"):
            ops.tri(2**28, 2**28)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("k", [2**31, -(2**31) - 1, -66182305740, 2**70, -(2**70)])
def test_diagonals_beyond_the_matrix_are_empty(k: int, backend: str) -> None:
    x = np.ones((3, 4), np.float32)
    above, below = (x, 0 * x) if k > 0 else (0 * x, x)
    assert np.array_equal(ops.to_numpy(ops.tril(x, k)), above)
    assert np.array_equal(ops.to_numpy(ops.triu(x, k)), below)
    assert np.array_equal(ops.to_numpy(ops.eye(3, 4, k)), 0 * x)
    assert np.array_equal(ops.to_numpy(ops.tri(3, 4, k)), above)
    assert ops.diagonal(x, k).tolist() == ops.diag(x, k).tolist() == []
    assert float(ops.trace(x, k)) == 0.0


def test_numbers_of_points_and_bounds_beyond_64_bits_are_accepted(backend: str) -> None:
    for window in (ops.bartlett, ops.blackman, ops.hamming, ops.hanning):
        assert window(-(2**70)).tolist() == []
    assert tuple(ops.vander([1.0, 2.0], -(2**70)).shape) == (2, 0)
    assert ops.arange(5.0, None, 2**70).tolist() == [0.0]
    assert ops.linspace(-(2**70), 0, 2).tolist() == [-(2.0**70), 0.0]
    assert ops.geomspace(1, 2**70, 3).tolist() == [1.0, 2.0**35, 2.0**70]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("base", [2.0, np.array([2.0, 3.0])])
def test_logspace_has_the_gradient_of_powers_of_linspace(base: object, axis: int, backend: str) -> None:
    start, stop, base = np.array([0.5, -1.0]), np.array([1.0, 2.0]), base if axis == 0 else 3.0

    def composed(start: Any, stop: Any, base: Any) -> Any:
        return ops.power(base, ops.linspace(start, stop, 5, axis=axis))

    for argument in range(2 if isinstance(base, float) else 3):
        own = lambda *given: ops.sum(ops.sin(ops.logspace(given[0], given[1], 5, base=given[2], axis=axis)))
        wanted = ops.grad(lambda *given: ops.sum(ops.sin(composed(*given))), argument)(start, stop, base)
        np.testing.assert_allclose(
            ops.to_numpy(ops.grad(own, argument)(start, stop, base)), ops.to_numpy(wanted), rtol=1e-6
        )


def test_logspace_has_a_gradient_by_a_base_with_more_axes_than_its_ends(backend: str) -> None:
    base = np.array([[2.0, 3.0, 1.0], [1.5, 2.0, 4.0]])
    gradient = ops.grad(lambda base: ops.sum(ops.logspace(1.0, 2.0, 3, base=base)))(base)
    wanted = sum(power * base ** (power - 1) for power in (1.0, 1.5, 2.0))
    np.testing.assert_allclose(ops.to_numpy(gradient), wanted, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("endpoint", [True, False])
def test_geomspace_takes_tensors(axis: int, endpoint: bool, backend: str) -> None:
    start, stop = np.float32([[1.0], [-0.5], [1e-30]]), np.float32([2.0, 1e30])
    stop = stop * np.sign(start)
    found = ops.geomspace(start, ops.convert_to_tensor(stop), 5, endpoint, axis=axis)
    wanted = np.geomspace(start.astype(float), stop.astype(float), 5, endpoint, axis=axis)
    assert ops.dtype(found) == "float32"
    np.testing.assert_allclose(ops.to_numpy(found), wanted, 4e-5)
    ends = np.moveaxis(ops.to_numpy(found), axis, 0)
    np.testing.assert_array_equal(ends[0], np.broadcast_to(start, stop.shape))
    assert not endpoint or np.array_equal(ends[-1], stop)
    assert np.isnan(ops.to_numpy(ops.geomspace(ops.zeros(()), 2.0, 3))).all()
    assert ops.dtype(ops.geomspace(ops.asarray([1, 2]), 8, 4, dtype="int32")) == "int32"


@pytest.mark.parametrize(("dtype", "count"), [("float32", 4), ("float64", 4), ("float16", 8), ("bfloat16", 8)])
def test_geomspace_of_tensors_is_precise(dtype: str, count: int, backend: str) -> None:
    start, stop = (ops.cast(np.linspace(low, low + 3.5, 40), dtype) for low in (0.5, 0.75))
    found = ops.to_numpy(ops.cast(ops.geomspace(start, stop, 9), "float64"))
    wanted = np.geomspace(*(ops.to_numpy(ops.cast(end, "float64")) for end in (start, stop)), 9)
    assert ops.dtype(ops.geomspace(start, stop, 9)) == dtype
    np.testing.assert_allclose(found, wanted, count * ops.finfo(dtype).eps)


@pytest.mark.parametrize("axis", [0, -1])
def test_geomspace_has_gradients_by_both_ends(axis: int, backend: str) -> None:
    start, stop = ops.convert_to_tensor([1.0, 2.0, 0.5]), ops.convert_to_tensor([4.0, 0.25, 0.75])

    def composed(start: Any, stop: Any) -> Any:
        return ops.exp(ops.linspace(ops.log(start), ops.log(stop), 5, axis=axis))

    for argument in (0, 1):
        own = ops.grad(lambda *ends: ops.sum(ops.sin(ops.geomspace(*ends, 5, axis=axis))), argument)
        wanted = ops.grad(lambda *ends: ops.sum(ops.sin(composed(*ends))), argument)
        np.testing.assert_allclose(ops.to_numpy(own(start, stop)), ops.to_numpy(wanted(start, stop)), 1e-5, 1e-6)
        by_rows = ops.vmap(own)(start, stop)
        np.testing.assert_allclose(ops.to_numpy(by_rows), ops.to_numpy(wanted(start, stop)), 1e-5, 1e-6)
    tangents = (ops.sin(start), ops.cos(stop))
    forward, composed_forward = (
        ops.jvp(f, (start, stop), tangents)[1] for f in (lambda *ends: ops.geomspace(*ends, 5, axis=axis), composed)
    )
    np.testing.assert_allclose(ops.to_numpy(forward), ops.to_numpy(composed_forward), 1e-5, 1e-6)
    only_start = ops.grad(lambda x: ops.sum(ops.geomspace(x, 8.0, 4)))(ops.convert_to_tensor(1.0))
    np.testing.assert_allclose(ops.to_numpy(only_start), 1 + 2 * 2 / 3 + 4 / 3, 1e-6)


def test_block_diag_promotes_and_broadcasts(backend: str) -> None:
    found = ops.block_diag([[True]], np.int8([[2, 3]]), 1.5)
    assert ops.dtype(found) == "float32"
    assert found.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 1.5]]
    assert ops.shape(ops.block_diag(ops.ones((2, 1, 1, 1)), ops.ones((3, 2, 2)))) == (2, 3, 3, 3)
    assert ops.block_diag([True], [True]).tolist() == [[True, False], [False, True]]
    slopes = ops.grad(lambda a, b: ops.sum(ops.block_diag(a, b)), argnums=(0, 1))([[1.0, 2.0]], 3.0)
    assert [slope.tolist() for slope in slopes] == [[[1.0, 1.0]], 1.0]
