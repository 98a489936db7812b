"""Writing by any key: agreement with NumPy's assignment, dtypes, errors, gradients."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import errors

INSTALLED = [name for name in BUILTIN if is_installed(name)]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
MASK = np.array([True, False])
KEYS: list[Any] = [
    1,
    -1,
    (0, 2),
    (1, 2, -1),
    (),
    Ellipsis,
    None,
    (None,),
    (None, None, 1),
    slice(None),
    slice(5, 9),
    slice(None, None, -1),
    (slice(1, None), None, slice(None, None, 2)),
    (Ellipsis, 0),
    (None, 0, Ellipsis, slice(1, 3)),
    [1, 0],
    [],
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [3, 0]),
    (slice(None), [2, 0], slice(1, 3)),
    (slice(None), [[2, 0]], 1),
    (slice(None), 1, [0, 3]),
    (1, slice(None), [0, 3]),
    (1, Ellipsis, [0, 3]),
    ([0, 1], Ellipsis, 1, 2),
    ([0, 1], None, 1),
    (None, [0, 1], 1),
    MASK,
    (MASK, 1),
    (MASK, slice(None), [1]),
    (slice(None), X[0] > 5),
    X > 7,
    (X[:, :, 0] > 4, 2),
    True,
    False,
    (0, True, Ellipsis),
    (np.int64(1), np.array(2)),
    (slice(None), range(2)),
]


def _as_tensors(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_as_tensors(part) for part in key)
    return ops.convert_to_tensor(key) if isinstance(key, (np.ndarray, list)) and np.size(key) else key


def _as_numpy(key: Any) -> Any:
    """Returns a key as NumPy takes it: it refuses ranges."""
    return tuple(list(part) if isinstance(part, range) else part for part in key) if isinstance(key, tuple) else key


def _written(x: Any, key: Any, value: Any, mode: str) -> Any:
    result = x.copy()
    if mode == "set":
        result[key] = value
    else:
        shape = result[key].shape
        value = np.asarray(value, x.dtype)
        UFUNCS[mode].at(result, key, value.reshape(value.shape[max(value.ndim - len(shape), 0) :]))
    return result


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_every_key_that_get_item_takes_writes_what_numpy_writes(backend: str, key: Any) -> None:
    plain = _as_numpy(key)
    whole = X[plain]
    values: list[Any] = [7.5, np.arange(whole.size, dtype=np.float32).reshape(whole.shape) - 3.5]
    if whole.ndim > 1:
        values += [values[1][..., :1], values[1][:1] if len(values[1]) else values[1], values[1][None, None]]
    for mode in ("set", *UFUNCS):
        for value in values:
            wanted = _written(X, plain, value, mode)
            for given_key in (key, _as_tensors(key)):
                got = ops.set_item(X, given_key, value, mode)  # type: ignore[arg-type]
                assert ops.dtype(got) == "float32"
                assert np.array_equal(ops.to_numpy(got), wanted), (mode, value)


@pytest.mark.parametrize("name", INSTALLED)
@given(data=st.data())
def test_set_item_writes_like_numpy(name: str, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(3,), (2, 3), (4, 1, 3), (2, 3, 2, 2)]))
    arrays = hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
    masks = hnp.arrays(bool, shape[:2])
    mixed = st.tuples(*(st.one_of(st.integers(-n, n - 1), st.just(slice(None)), st.just([0, n - 1])) for n in shape))
    key: Any = data.draw(st.one_of(hnp.basic_indices(shape, allow_newaxis=True), arrays, masks, mixed))
    mode = data.draw(st.sampled_from(["set", *UFUNCS]))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    # Equal values make the result of "set" independent of the order.
    value: Any = 3 if mode == "set" else np.arange(x[key].size).reshape(x[key].shape) - 2
    with ops.use_backend(name):
        for given_key in (key, _as_tensors(key)):
            assert ops.set_item(x, given_key, value, mode).tolist() == _written(x, key, value, mode).tolist()


def test_the_tensor_itself_does_not_change(backend: str) -> None:
    for key in (0, [0], X > 3, slice(None, None, 2)):
        x = ops.convert_to_tensor(X.copy())
        ops.set_item(x, key, 9.0)
        ops.put_along_axis(x, [[[0]]], 9.0)
        assert x.tolist() == X.tolist()


def test_the_last_of_equal_indices_is_kept_on_numpy_and_mlx(backend: str) -> None:
    found = ops.set_item(X[0, 0], [0, 1, 0], [1.0, 2.0, 3.0]).tolist()
    assert found[1:] == [2.0, 2.0, 3.0]
    assert found[0] == 3.0 or (backend == "torch" and found[0] == 1.0)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 1.5),
        ("int32", [1.0]),
        ("int32", np.float32([1])),
        ("float32", 1j),
        ("float32", np.complex64([1])),
        ("bool", 1),
        ("uint8", np.int8([1])),
    ],
)
def test_a_value_of_another_kind_is_refused(backend: str, dtype: str, value: Any) -> None:
    for call in (
        lambda: ops.set_item(ops.zeros(3, dtype), 0, value if np.ndim(value) == 0 else value[0]),
        lambda: ops.set_item(ops.zeros(3, dtype), [0], value),
        lambda: ops.put_along_axis(ops.zeros(3, dtype), [0], value),
    ):
        with pytest.raises(errors.DTypeError, match=rf"on backend '{backend}'.*would be narrowed to {dtype}"):
            call()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float16", 1.5),
        ("float16", [1.5]),
        ("float32", 1),
        ("float32", np.int64([1])),
        ("float32", np.float16([1])),
        ("float32", np.float64([0.1])),
        ("float16", np.float32([0.1])),
        ("int32", np.int64([2**31 + 5])),
        ("int8", np.uint8([200])),
        ("uint8", np.uint32([300])),
        ("uint8", [200]),
        ("complex64", [1.5]),
        ("int64", [True]),
    ],
)
def test_a_value_of_a_lower_dtype_takes_the_dtype_of_the_tensor(backend: str, dtype: str, value: Any) -> None:
    got = ops.set_item(ops.zeros(3, dtype), slice(1, 2), value)
    assert ops.dtype(got) == dtype
    assert got.tolist() == [0, np.ravel(value).astype(dtype)[0], 0]
    along = ops.put_along_axis(ops.zeros(3, dtype), [1], value)
    assert along.tolist() == got.tolist()


def test_a_number_that_does_not_fit_is_refused(backend: str) -> None:
    for value in (300, [300]):
        with pytest.raises(errors.RangeError):
            ops.set_item(ops.zeros(3, "uint8"), 0, value)


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (2, errors.IndexOutOfBoundsError),
        ([0, -3], errors.IndexOutOfBoundsError),
        ((0, slice(None), [4]), errors.IndexOutOfBoundsError),
        ((0, 0, 0, 0), errors.AxisError),
        (slice(None, None, 0), errors.ArgumentError),
        ((Ellipsis, Ellipsis), errors.ArgumentError),
        (0.5, errors.ArgumentTypeError),
        ("a", errors.ArgumentTypeError),
        (np.array([0.5]), errors.ArgumentTypeError),
        (np.array([True, False, True]), errors.ShapeError),
        ((np.array([0, 1]), np.array([0, 1, 2])), errors.ShapeError),
    ],
)
def test_a_wrong_key_is_refused(backend: str, key: Any, error: type[Exception]) -> None:
    for mode in ("set", "add"):
        with pytest.raises(error, match=rf"set_item\(\) on backend '{backend}'"):
            ops.set_item(X, key, 0.0, mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [0, [0, 1], (slice(None), 0), MASK, slice(None, None, -1), X > 3])
def test_a_value_that_does_not_broadcast_is_refused(backend: str, key: Any) -> None:
    with pytest.raises(errors.ShapeError, match=rf"set_item\(\) on backend '{backend}'.*does not broadcast"):
        ops.set_item(X, key, np.zeros(7, np.float32))
    with pytest.raises(errors.ShapeError, match="does not broadcast"):  # not even to axes of length 1
        ops.set_item(ops.zeros((2, 1)), ops.convert_to_tensor(MASK), ops.ones(3))


def test_an_unknown_mode_and_the_order_of_complex_numbers_are_refused(backend: str) -> None:
    with pytest.raises(errors.ArgumentError, match="'mean' is unknown; use 'set', 'add'"):
        ops.set_item(X, 0, 1.0, "mean")  # type: ignore[arg-type]
    for key in (0, [0]):
        with pytest.raises(errors.DTypeError):
            ops.set_item(ops.zeros(2, "complex64"), key, 1.0, "max")


@pytest.mark.parametrize("far", [2, -3, 2**40])
def test_a_tensor_of_indices_out_of_bounds_is_refused_except_on_mlx(backend: str, far: int) -> None:
    at = ops.convert_to_tensor(np.array([0, far]))
    for mode in ("set", "add", "min"):
        if backend == "mlx":
            got = ops.to_numpy(ops.set_item(X, (at, 1), -9.0, mode))  # type: ignore[arg-type]
            assert np.array_equal(got, _written(X, (np.array([0]), 1), np.float32(-9), mode))
            with pytest.raises(errors.IndexOutOfBoundsError), ops.checked():
                ops.set_item(X, (at, 1), -9.0, mode)  # type: ignore[arg-type]
        else:
            # Dask raises when a block is computed.
            raising = "eval" if backend == "dask" else "set_item"
            with pytest.raises(errors.IndexOutOfBoundsError, match=rf"{raising}\(\) on backend '{backend}'"):
                ops.eval(ops.set_item(X, (at, 1), -9.0, mode))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("key", [1, (slice(None), slice(0, 2)), [1, 0], (slice(None), [2, 0]), MASK, X[:, :, 0] > 4])
def test_derivatives_in_both_modes_and_mapped_agree_with_differences(backend: str, mode: Any, key: Any) -> None:
    x = np.sin(np.arange(6.0).reshape(2, 3)).astype(np.float32)
    value = np.float32(0.3)

    def loss(x: Any, value: Any) -> Any:
        return ops.sum(ops.multiply(ops.set_item(x, key, value, mode), ops.convert_to_tensor(weights)))

    def wanted(x: Any, value: Any) -> float:
        return float((_written(x.astype(np.float64), key, float(value), mode) * weights).sum())

    weights = np.cos(np.arange(6.0).reshape(2, 3)).astype(np.float32)
    tangents = (np.cos(x), np.float32(0.7))
    step = 1e-4
    ahead, behind = (wanted(x + s * tangents[0].astype(np.float64), value + s * 0.7) for s in (step, -step))
    _, slope = ops.jvp(loss, (x, value), tangents)
    assert abs(float(slope) - (ahead - behind) / (2 * step)) < 1e-3
    by_x, by_value = ops.grad(loss, argnums=(0, 1))(x, value)
    total = float(ops.sum(ops.multiply(by_x, tangents[0]))) + float(by_value) * 0.7
    assert abs(total - float(slope)) < 1e-4
    rows = ops.vmap(lambda x, value: ops.set_item(x, key, value, mode))(np.stack([x, -x]), np.float32([0.3, 0.1]))
    each = [_written(x, key, np.float32(0.3), mode), _written(-x, key, np.float32(0.1), mode)]
    np.testing.assert_allclose(ops.to_numpy(rows), each, rtol=1e-6)


def test_a_gradient_that_was_not_selected_is_zero_beside_infinities(backend: str) -> None:
    x = np.float32([np.inf, 1.0, np.nan])
    for mode, wanted in (("set", 1.0), ("add", 1.0), ("multiply", 1.0)):
        by_value = ops.grad(lambda v, mode=mode: ops.sum(ops.set_item(x, [False, True, False], v, mode)))(2.0)
        assert float(by_value) == wanted


def test_traced_values_may_be_in_a_list(backend: str) -> None:
    def loss(a: Any) -> Any:
        return ops.sum(ops.square(ops.set_item(ops.zeros(3), [0, 2], [a, ops.multiply(a, 2.0)])))

    assert float(ops.grad(loss)(3.0)) == 30.0


def test_put_along_axis_writes_what_numpy_writes(backend: str) -> None:
    at = np.argsort(np.sin(X), axis=1)
    for axis in (1, -2):
        values = np.take_along_axis(X, at, axis)
        for indices in (at, ops.convert_to_tensor(at), at.tolist()):
            assert ops.put_along_axis(X, indices, values, axis).tolist() == X.tolist()
    wanted = X.copy()
    np.put_along_axis(wanted, at[:, :1], -1.0, 1)
    assert ops.put_along_axis(X, ops.convert_to_tensor(at[:, :1]), -1.0, 1).tolist() == wanted.tolist()
    assert ops.put_along_axis(X[0, 0], [1, 1], [5.0, 6.0], mode="add").tolist() == [0.0, 12.0, 2.0, 3.0]


@pytest.mark.parametrize("mode", ["set", *UFUNCS])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_tensor_of_indices_writes_like_one_on_the_host(backend: str, mode: Any, axis: int) -> None:
    length = X.shape[axis]
    at = np.mod(np.arange(24).reshape(X.shape) * 5, length)
    values = np.sin(np.arange(24, dtype=np.float32)).reshape(X.shape)
    if mode == "set":
        # Equal values make the result independent of the order of equal indices.
        values = np.take_along_axis(values, at, axis)
    wanted = ops.put_along_axis(X, at.tolist(), values, axis, mode).tolist()
    for places in (at, at - length):
        for dtype in ("int64", "int32", "int8"):
            indices = ops.convert_to_tensor(places.astype(dtype))
            assert ops.put_along_axis(X, indices, values, axis, mode).tolist() == wanted
    flat = np.array([[0, 1], [1, -1]])
    assert ops.set_item(X, ops.convert_to_tensor(flat), 3.0, mode).tolist() == _written(X, flat, 3.0, mode).tolist()
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    for index in (np.array([1, 0]), np.array([-1]), np.array([-2, 1])):
        got = ops.set_item(X, ops.convert_to_tensor(index), rows, mode)
        assert got.tolist() == _written(X, index, rows, mode).tolist()


@pytest.mark.parametrize("mode", ["set", "add", "max"])
@pytest.mark.parametrize("shape", [(128, 64), (96, 7, 16), (2**19 + 32,), (3, 4096), (1024, 520)], ids=str)
def test_a_tensor_of_indices_writes_into_a_large_tensor_like_numpy(
    backend: str, shape: tuple[int, ...], mode: Any
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=shape).astype(np.float32)
    for count in (2, shape[0] // 2, shape[0]):
        # Indices of the first axis, without equal ones, whose order has no meaning on PyTorch.
        at = random.permutation(shape[0])[:count] - shape[0] * random.integers(0, 2, count)
        values = random.normal(size=(count, *shape[1:])).astype(np.float32)
        got = ops.set_item(x, ops.convert_to_tensor(at), values, mode)
        np.testing.assert_array_equal(ops.to_numpy(got), _written(x, at, values, mode))
    for axis in range(len(shape)):
        at = np.argsort(random.normal(size=shape), axis)
        at = np.take(at, range(shape[axis] // (2 if axis else 32) or 1), axis)
        values = random.normal(size=at.shape).astype(np.float32)
        grid = np.indices(at.shape, sparse=True)
        key = (*grid[:axis], at, *grid[axis + 1 :])
        got = ops.put_along_axis(x, ops.convert_to_tensor(at - shape[axis]), values, axis, mode)
        np.testing.assert_array_equal(ops.to_numpy(got), _written(x, key, values, mode))


@pytest.mark.parametrize("shape", [(128, 64), (2048, 300), (2**19 + 32,)], ids=str)
@pytest.mark.parametrize("count", [3, 100])
def test_in_a_large_tensor_mlx_drops_indices_out_of_bounds_and_keeps_the_last_of_equal_ones(
    backend: str, shape: tuple[int, ...], count: int
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=shape).astype(np.float32)
    at = random.integers(-shape[0], shape[0], count)
    at[1], at[2] = at[0], at[0] % -shape[0]
    values = random.normal(size=(count, *shape[1:])).astype(np.float32)
    wanted = _written(x, at, values, "set")
    far = np.array([shape[0], -shape[0] - 1, 2**40, -(2**63)])
    more = random.normal(size=(4, *shape[1:])).astype(np.float32)
    indices = ops.convert_to_tensor(np.concatenate([at, far]))
    values = np.concatenate([values, more])
    if backend != "mlx":
        with pytest.raises(errors.IndexOutOfBoundsError):
            ops.eval(ops.set_item(x, indices, values))
        return
    np.testing.assert_array_equal(ops.to_numpy(ops.set_item(x, indices, values)), wanted)
    if len(shape) == 1:
        np.testing.assert_array_equal(ops.to_numpy(ops.put_along_axis(x, indices, values, 0)), wanted)
    else:
        along = ops.put_along_axis(x.T, ops.convert_to_tensor(np.tile(far, (shape[1], 1))), more.T, 1)
        np.testing.assert_array_equal(ops.to_numpy(along), x.T)


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("count", [5, 1024])
def test_transforms_of_mlx_itself_agree_with_those_of_ops_where_a_large_tensor_is_written(
    count: int, mode: Any, backend: str
) -> None:
    if backend != "mlx":
        pytest.skip("the transforms are those of MLX")
    import mlx.core as mx

    random = np.random.default_rng(0)
    x, weights = (mx.array(random.normal(size=(2048, 128)).astype(np.float32)) for _ in range(2))
    values = mx.array(random.normal(size=(count, 128)).astype(np.float32))
    at = mx.array(random.permutation(2048)[:count])

    def write(x: Any, values: Any) -> Any:
        return ops.set_item(x, at, values, mode)

    def loss(x: Any, values: Any) -> Any:
        return mx.sum(mx.square(write(x, values)) * weights)

    for native, ours in zip(mx.grad(loss, (0, 1))(x, values), ops.grad(loss, argnums=(0, 1))(x, values), strict=True):
        np.testing.assert_allclose(ops.to_numpy(native), ops.to_numpy(ours), rtol=1e-5)
    both = mx.vmap(write, (0, None))(mx.stack([x, weights]), values)
    np.testing.assert_array_equal(ops.to_numpy(both[1]), ops.to_numpy(write(weights, values)))
    flat, where = x.reshape(-1), at * 128
    along = mx.grad(lambda x: mx.sum(mx.square(ops.put_along_axis(x, where, values[:, 0], 0, mode))))(flat)
    wanted = ops.grad(lambda x: mx.sum(mx.square(ops.put_along_axis(x, where, values[:, 0], 0, mode))))(flat)
    np.testing.assert_allclose(ops.to_numpy(along), ops.to_numpy(wanted), rtol=1e-5)


@pytest.mark.parametrize("far", [3, -4, 2**40])
def test_along_an_axis_a_tensor_of_indices_out_of_bounds_is_refused_except_on_mlx(backend: str, far: int) -> None:
    at = ops.convert_to_tensor(np.array([[0], [far]]))
    for mode in ("set", "add", "max"):
        if backend == "mlx":
            got = ops.put_along_axis(np.zeros((2, 3), np.float32), at, 9.0, 1, mode)  # type: ignore[arg-type]
            assert got.tolist() == [[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        else:
            # Dask raises when a block is computed.
            raising = "eval" if backend == "dask" else "put_along_axis"
            with pytest.raises(errors.IndexOutOfBoundsError, match=rf"{raising}\(\) on backend '{backend}'"):
                ops.eval(ops.put_along_axis(np.zeros((2, 3), np.float32), at, 9.0, 1, mode))  # type: ignore[arg-type]


def test_the_last_of_equal_indices_in_a_tensor_gets_the_gradient(backend: str) -> None:
    at, x = ops.convert_to_tensor(np.array([1, 1, 0])), np.float32([5.0, 6.0, 7.0])
    weights = ops.convert_to_tensor(np.float32([1.0, 10.0, 100.0]))
    for write in (ops.set_item, lambda x, at, v: ops.put_along_axis(x, at, v, 0)):
        by_x, by_value = ops.grad(lambda x, v, write=write: ops.sum(weights * write(x, at, v)), argnums=(0, 1))(x, x)
        assert by_x.tolist() == [0.0, 0.0, 100.0]
        assert by_value.tolist() == [0.0, 10.0, 1.0]


def test_put_along_axis_refuses_what_does_not_fit(backend: str) -> None:
    for indices, values, axis in (([0], 1.0, 0), (np.zeros((5, 1), int), 1.0, 1), ([[0], [1], [2]], np.ones(2), 1)):
        with pytest.raises(errors.ShapeError, match=r"put_along_axis\(\) on backend"):
            ops.put_along_axis(X[0], indices, np.float32(values), axis)
    with pytest.raises(errors.IndexOutOfBoundsError):
        ops.put_along_axis(X[0], [[4]], 1.0)
    with pytest.raises(errors.AxisError):
        ops.put_along_axis(X[0], [[0]], 1.0, 2)


@pytest.mark.parametrize("mode", ["add", "multiply", "min", "max"])
def test_a_key_may_add_forty_axes(mode: Any, backend: str) -> None:
    written = ops.set_item([[1, 2], [3, 4]], (None,) * 40, [2, 3], mode)
    assert written.tolist() == ops.set_item([[1, 2], [3, 4]], slice(None), [2, 3], mode).tolist()


def test_a_value_may_have_more_axes_of_length_1_than_the_key_selects(backend: str) -> None:
    x = ops.arange(4.0)
    mask = ops.asarray([True, False, True, False])
    for key, value, wanted in (
        (1, [7.0], [0, 7, 2, 3]),
        (1, [[7.0]], [0, 7, 2, 3]),
        (mask, [[8.0, 9.0]], [8, 1, 9, 3]),
    ):
        value = ops.asarray(value)
        assert ops.set_item(x, key, value).tolist() == wanted
        found = ops.grad(lambda v: ops.sum(ops.set_item(x, key, v)))(value)  # noqa: B023
        assert found.tolist() == ops.ones_like(value).tolist()
    with pytest.raises(errors.ShapeError, match=r"a value of shape \(2,\) does not broadcast to shape \(\)"):
        ops.set_item(x, 1, ops.ones(2))
