"""Pooling: padding does not count, NaN propagates, wrong arguments are refused."""

import itertools
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, OutOfMemoryError, ShapeError
from emberharmony.core.registry import OPS


def test_padding_does_not_change_the_result(backend: str) -> None:
    x = -np.ones((1, 5, 1), np.float32)
    assert ops.to_numpy(ops.max_pool(x, 3, 1, "same")).tolist() == x.tolist()
    assert ops.to_numpy(ops.average_pool(x, 3, 1, "same")).tolist() == x.tolist()


def test_max_pool_propagates_nan(backend: str) -> None:
    x = np.array([[[1.0], [np.nan], [2.0], [3.0]]], np.float32)
    assert np.isnan(ops.to_numpy(ops.max_pool(x, 2))).ravel().tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "shape", [(2, 6, 3), (1, 4, 6, 2), (2, 4, 2, 2, 1), (1, 5, 4, 2), (2, 64, 64, 4), (1, 1, 4, 1)]
)
def test_adjacent_windows_of_few_and_many_elements(shape: tuple[int, ...], dtype: str, backend: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[-1, -1] = np.nan
    inner = [n // 2 for n in shape[1:-1]]
    if 0 in inner:
        with pytest.raises(ShapeError, match="a window of 2 does not fit"):
            ops.max_pool(ops.array(x), 2)
        return
    whole = x[(slice(None), *(slice(2 * n) for n in inner))]
    parts = whole.reshape(len(x), *(part for n in inner for part in (n, 2)), shape[-1])
    expected = parts.max(tuple(range(2, 2 * len(inner) + 1, 2)))
    result = ops.to_numpy(ops.max_pool(ops.array(x), 2))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, expected)


def test_wrong_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="pool_size is an integer of at least 1"):
        ops.max_pool(np.ones((1, 4, 1)), 0)
    with pytest.raises(ShapeError, match="a window of 5 does not fit an axis of length 4"):
        ops.average_pool(np.ones((1, 4, 1)), 5)
    with pytest.raises(ArgumentError, match="output_size is an integer of at least 1"):
        ops.adaptive_max_pool(np.ones((1, 4, 1)), (2, 2))


@pytest.mark.parametrize("shape", [(2, 3, 7, 6), (2, 3, 1, 6), (1, 1, 5, 2)])
def test_options_as_tuples_give_the_results_of_pairs(shape: tuple[int, ...], backend: str) -> None:
    x = ops.array(np.sin(np.arange(np.prod(shape))).reshape(shape), "float32")
    for size, strides, zeros, spread in (
        ((1, 2), None, (0, 1), (1, 1)),
        ((3, 2), (2, 1), (1, 1), (1, 1)),
        ((2, 1), (1, 1), (1, 0), (2, 3)),
    ):
        pairs = [(n, n) for n in zeros]
        options: tuple[dict[str, Any], ...] = ({"dilation_rate": spread}, {}, {"count_include_pad": True})
        for pool, more in zip((ops.max_pool, ops.average_pool, ops.average_pool), options, strict=True):
            try:
                wanted = pool(ops.moveaxis(x, 1, -1), size, strides, pairs, **more)
            except (ArgumentError, ShapeError) as error:
                with pytest.raises(type(error)):
                    pool(x, size, strides, zeros, "channels_first", **more)
                continue
            found = pool(x, size, strides, zeros, "channels_first", **more)
            assert np.allclose(ops.to_numpy(found), ops.to_numpy(ops.moveaxis(wanted, -1, 1)), rtol=1e-6)


def test_bad_options_as_tuples_are_refused(backend: str) -> None:
    x: Any = ops.zeros((1, 3, 4, 4))
    one: Any = (1, 1)
    for pool in (ops.max_pool, ops.average_pool):
        for size, strides, zeros, error, message in (
            ((2,), one, one, ArgumentError, "pool_size is an integer of at least 1, or one for each of 2"),
            ((2, 0), one, (0, 0), ArgumentError, "pool_size is an integer of at least 1"),
            ((2, 2), (0, 1), one, ArgumentError, "strides is an integer of at least 1"),
            ((2, 2), ("1", 1), one, ArgumentError, "strides is an integer"),
            ((2, 2), one, (2, 0), ArgumentError, "padding of at most 1 suits windows of length 2"),
            ((2, 2), one, (-1, 0), ArgumentError, "padding is"),
            ((5, 2), one, (0, 0), ShapeError, "a window of 5 does not fit an axis of length 4"),
            ((2**62, 1), one, (0, 0), ShapeError, "a window of .* does not fit"),
        ):
            with pytest.raises(error, match=message):
                pool(x, size, strides, zeros, "channels_first")  # type: ignore[arg-type]


@pytest.mark.parametrize("op", ["max_pool", "average_pool", "adaptive_max_pool", "adaptive_average_pool"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_pools_accept_both_data_formats_and_any_number_of_axes(op: str, dtype: str, backend: str) -> None:
    for axes in (1, 2, 3, 4):
        x = ops.cast(np.round(np.sin(np.arange(2 * 4**axes * 3.0)) * 20).reshape(2, *[4] * axes, 3), dtype)
        first = getattr(ops, op)(ops.moveaxis(x, -1, 1), 2, data_format="channels_first")
        last = getattr(ops, op)(x, 2)
        assert ops.shape(last) == (2, *[2] * axes, 3)
        assert ops.moveaxis(first, 1, -1).tolist() == last.tolist()


@pytest.mark.parametrize("op", ["max_pool", "average_pool", "adaptive_max_pool", "adaptive_average_pool"])
def test_tensors_without_spatial_axes_are_refused(op: str, backend: str) -> None:
    with pytest.raises(ShapeError, match="a batch axis, spatial axes and a channel axis, got 2 axes"):
        getattr(ops, op)(np.ones((2, 3)), 1)


def test_max_pool_pads_integers_with_their_least_value(backend: str) -> None:
    x = np.full((1, 3, 1), -5, np.int32)
    assert ops.max_pool(x, 2, 1, "same").tolist() == x.tolist()


def test_an_empty_batch_gives_an_empty_result(backend: str) -> None:
    assert ops.shape(ops.max_pool(np.ones((0, 4, 2)), 2)) == (0, 2, 2)
    assert ops.shape(ops.average_pool(np.ones((0, 4, 2)), 3, 1, "same")) == (0, 4, 2)


def test_windows_longer_than_the_axis_are_cut(backend: str) -> None:
    x = np.arange(2 * 7 * 4.0).reshape(1, 2, 7, 4, 1)
    mean = ops.to_numpy(ops.average_pool(x, (4, 1, 3), (2, 2, 3), "same"))
    assert np.allclose(mean[0, 0, :, 0, 0], [x[0, :, i, :2].mean() for i in range(0, 7, 2)])
    assert ops.shape(ops.max_pool(x, (4, 1, 3), (2, 2, 3), "same")) == (1, 1, 4, 2, 1)


@pytest.mark.parametrize("op", ["adaptive_max_pool", "adaptive_average_pool"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_more_adaptive_windows_than_elements(op: str, dtype: str, backend: str) -> None:
    x, reduce = np.array([3, -1, 2], dtype), np.max if op == "adaptive_max_pool" else np.mean
    for count in (4, 7, 10):
        reaches = [slice(i * 3 // count, -(-(i + 1) * 3 // count)) for i in range(count)]
        result = getattr(ops, op)(x[None, :, None], count)
        assert ops.to_numpy(result)[0, :, 0].tolist() == [float(reduce(x[reach])) for reach in reaches]
    assert ops.shape(getattr(ops, op)(x[None, :, None], 10**5)) == (1, 10**5, 1)
    with pytest.raises(OutOfMemoryError, match=op):
        getattr(ops, op)(x[None, :, None], 10**15)


@pytest.mark.parametrize("op", ["max_pool", "average_pool"])
def test_windows_far_longer_than_the_axis_hold_all_of_it(op: str, backend: str) -> None:
    x = np.array([3.0, -1.0, 2.0])[None, :, None]
    expected = {"max_pool": 3.0, "average_pool": 4 / 3}[op]
    for size in (5, 6, 7, 10**9):
        pooled = ops.to_numpy(getattr(ops, op)(x, size, 1, "same"))[0, :, 0]
        assert np.allclose(pooled, expected), size
        assert np.allclose(ops.to_numpy(getattr(ops, op)(x, size, None, "same")), expected), size


X = np.sin(np.arange(7.0 * 6 * 5 * 2)).reshape(1, 2, 7, 6, 5)


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pools_have_the_options_of_pytorch(axes: int, backend: str) -> None:
    from torch import from_numpy
    from torch.nn import functional

    x = X[(..., *[0] * (3 - axes))]
    # JAX compiles programs, and Dask makes a graph, for each combination of options, so try a part there.
    step = 5 if backend in ("jax", "dask") else 1
    for k, s, p, rounded_up in [*itertools.product((2, 3), (1, 2, 3, 9), (0, 1), (False, True))][::step]:
        for dilation in (1, 2):
            named = f"max_pool{axes}d"
            values, places = getattr(functional, named)(from_numpy(x), k, s, p, dilation, rounded_up, True)
            options = (k, s, p, "channels_first", dilation, rounded_up)
            assert np.array_equal(ops.to_numpy(ops.max_pool(x, *options)), values.numpy()), options
            assert np.array_equal(ops.to_numpy(ops.max_pool_indices(x, *options)), places.numpy()), options
        for counted in (False, True):
            wanted = getattr(functional, f"avg_pool{axes}d")(from_numpy(x), k, s, p, rounded_up, counted)
            found = ops.average_pool(x, k, s, p, "channels_first", rounded_up, counted)
            assert np.allclose(ops.to_numpy(found), wanted.numpy()), (k, s, p, rounded_up, counted)
        wanted = getattr(functional, f"lp_pool{axes}d")(from_numpy(x), 2.0, k, s, rounded_up)
        assert np.allclose(ops.to_numpy(ops.lp_pool(x, 2.0, k, s, "channels_first", rounded_up)), wanted.numpy())
    if axes > 1:
        wanted = getattr(functional, f"avg_pool{axes}d")(from_numpy(x), 2, 2, 1, True, True, 3)
        found = ops.average_pool(x, 2, 2, 1, "channels_first", True, True, 3)
        assert np.allclose(ops.to_numpy(found), wanted.numpy())


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
def test_max_unpool_is_that_of_pytorch(backend: str) -> None:
    from torch import from_numpy
    from torch.nn import functional

    x = X[..., 0]
    values, places = functional.max_pool2d(from_numpy(x), 2, return_indices=True)
    wanted = functional.max_unpool2d(values, places, 2, output_size=x.shape).numpy()
    found = ops.max_unpool(values.numpy(), places.numpy(), x.shape[2:], "channels_first")
    assert np.array_equal(ops.to_numpy(found), wanted)
    pooled = ops.max_pool(x, 2, data_format="channels_first")
    places = ops.max_pool_indices(x, 2, data_format="channels_first")
    assert np.array_equal(ops.to_numpy(ops.max_unpool(pooled, places, x.shape[2:], "channels_first")), wanted)


def test_the_index_of_a_window_is_never_that_of_the_padding(backend: str) -> None:
    for x in (np.full((1, 4, 1), -np.inf, np.float32), np.full((1, 4, 1), np.iinfo(np.int32).min, np.int32)):
        assert ops.max_pool_indices(x, 2, 1, 1).tolist() == [[[0], [0], [1], [2], [3]]]
    x = np.zeros((1, 4, 1), np.uint8)
    assert ops.max_pool_indices(x, 2, 1, 1, None, 2).tolist() == [[[1], [0], [1], [2]]]
    x = np.array([[[1.0], [np.nan], [np.nan], [0.0]]], np.float32)
    assert ops.max_pool_indices(x, 4).tolist() == [[[1]]]


@pytest.mark.parametrize("options", [{"padding": 2}, {"padding": [(0, 2)]}, {"padding": -1}, {"padding": (1, 1)}])
@pytest.mark.parametrize("pool", [ops.max_pool, ops.average_pool, ops.max_pool_indices])
def test_padding_without_an_element_in_each_window_is_refused(pool: Any, options: dict[str, Any], backend: str) -> None:
    with pytest.raises(ArgumentError, match="padding"):
        pool(np.ones((1, 4, 1)), 2, **options)


def test_a_window_of_padding_alone_has_an_index_after_the_end(backend: str) -> None:
    for shape, options, wanted in (
        ((1, 2, 1), {"pool_size": 2, "strides": 1, "padding": 1, "dilation_rate": 3}, [2]),
        ((1, 5, 1), {"pool_size": 2, "strides": 2, "padding": 1, "dilation_rate": 6}, [5]),
        ((1, 2, 2, 1), {"pool_size": 2, "strides": 1, "padding": 1, "dilation_rate": 3}, [6]),
        ((1, 2, 2, 1), {"pool_size": (2, 1), "strides": 1, "padding": (1, 0), "dilation_rate": (3, 1)}, [4, 5]),
    ):
        x = ops.reshape(ops.arange(1.0, np.prod(shape) + 1), shape)
        assert ops.to_numpy(ops.max_pool_indices(x, **options)).reshape(-1).tolist() == wanted  # type: ignore[arg-type]
        assert ops.to_numpy(ops.max_pool(x, **options)).max() == -np.inf  # type: ignore[arg-type]


def test_the_gradient_of_lp_pool_is_zero_where_the_sum_is(backend: str) -> None:
    x = np.array([[[0.0], [0.0], [3.0], [4.0]]])
    slope = ops.grad(lambda x: ops.sum(ops.lp_pool(x, 2, 2)))(x)
    assert np.allclose(ops.to_numpy(slope)[0, :, 0], [0.0, 0.0, 0.6, 0.8])


def test_pools_map_over_a_batch(backend: str) -> None:
    x = np.sin(np.arange(3 * 2 * 7 * 2.0)).reshape(3, 2, 7, 2).astype(np.float32)
    for pool in (
        lambda x: ops.max_pool(x, 3, 2, 1, ceil_mode=True),
        lambda x: ops.max_pool_indices(x, 3, 2, 1),
        lambda x: ops.average_pool(x, 3, 2, 1, count_include_pad=True),
        lambda x: ops.average_pool(x, 3, 2, [(0, 1)], ceil_mode=True),
        lambda x: ops.lp_pool(x, 2, 3),
    ):
        mapped = ops.to_numpy(ops.vmap(pool)(ops.convert_to_tensor(x)))
        assert np.allclose(mapped, [ops.to_numpy(pool(row)) for row in x])


@pytest.mark.parametrize("shape", [(2, 4, 6, 3), (1, 64, 64, 3), (2, 6, 3), (1, 4, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("size", [2, 3])
def test_equal_elements_share_the_gradient_pair_after_pair(size: int, shape: tuple[int, ...], backend: str) -> None:
    if backend == "torch":
        pytest.skip("PyTorch gives the gradient to the first of equal elements")
    random = np.random.default_rng(0)
    x = random.integers(0, 2, shape).astype(np.float32)
    if any(n % size for n in shape[1:-1]):
        x = np.tile(x, (1, *(size,) * (len(shape) - 2), 1))
    weights = random.normal(size=(x.shape[0], *(n // size for n in x.shape[1:-1]), x.shape[-1])).astype(np.float32)

    def loss(pool: Any, x: Any) -> Any:
        return ops.sum(ops.power(pool(x, size), 3) * ops.convert_to_tensor(weights))

    def slope(pool: Any, x: Any) -> Any:
        return ops.sum(ops.square(ops.grad(lambda x: loss(pool, x))(x)))

    for f in (loss, slope):
        got, wanted = (ops.grad(lambda x, p=p, f=f: f(p, x))(x) for p in (ops.max_pool, OPS["max_pool"].declared))
        np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(wanted), rtol=1e-5, atol=1e-6)
