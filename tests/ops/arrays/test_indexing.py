"""Reading and writing by index: keys as in NumPy, bounds, masks, indices of every integer dtype."""

from collections.abc import Callable
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
V = np.array([10.0, 20.0, 30.0], np.float32)
FAR = 10**12


@pytest.mark.parametrize("far", [3, -4, FAR, -FAR])
@pytest.mark.parametrize(
    "read",
    [
        lambda i: ops.take(V, i),
        lambda i: ops.take(V, [0, i], 0),
        lambda i: ops.take(V, np.array([[i]])),
        lambda i: ops.take_along_axis(V, [i]),
        lambda i: ops.take_along_axis(V, np.array([i]), None),
        lambda i: ops.get_item(V, i),
        lambda i: ops.get_item(V, np.int64(i)),
        lambda i: ops.get_item(V, [0, i]),
        lambda i: ops.get_item(X, (slice(None), np.array([i, 0]))),
        lambda i: ops.get_item(X, (0, i, Ellipsis)),
        lambda i: ops.scatter_update(V, [[i]], [1.0]),
        lambda i: ops.scatter_update(V, np.array([[i]]), [1.0], "max"),
        lambda i: ops.scatter_update(X, [[0, i]], X[0, :1]),
        lambda i: ops.scatter([[i]], [1.0], (3,)),
        lambda i: ops.slice(V, [abs(i)], [1]),
        lambda i: ops.slice_update(V, [abs(i)], [1.0]),
        lambda i: ops.unravel_index(abs(i), (3,)),
    ],
)
def test_an_index_on_the_host_that_is_out_of_bounds_is_refused(
    backend: str, read: Callable[[int], object], far: int
) -> None:
    with pytest.raises(errors.IndexOutOfBoundsError, match=rf"\w+\(\) on backend '{backend}'"):
        read(far)


@pytest.mark.parametrize("far", [3, -4])
def test_a_tensor_of_indices_out_of_bounds_is_refused_except_on_mlx(backend: str, far: int) -> None:
    at = ops.convert_to_tensor(np.array([[0], [far]]))
    writes: list[Callable[[], object]] = [
        lambda: ops.scatter_update(V, at, [1.0, 2.0]),
        *(lambda how=how: ops.scatter_update(V, at, [1.0, 2.0], how) for how in ("add", "mul", "max", "min")),
        lambda: ops.scatter(at, [1.0, 2.0], (3,)),
    ]
    if backend == "mlx":
        # MLX does not read the indices, so a write out of bounds is dropped and nothing else changes.
        assert ops.scatter_update(V, at, [1.0, 2.0]).tolist() == [1.0, 20.0, 30.0]
        assert ops.scatter_update(V, at, [1.0, 2.0], "add").tolist() == [11.0, 20.0, 30.0]
        assert ops.scatter(at, [1.0, 2.0], (3,)).tolist() == [1.0, 0.0, 0.0]
        return
    for call in (*writes, lambda: ops.take(V, at), lambda: ops.get_item(V, at), lambda: ops.unravel_index(at, (3,))):
        with pytest.raises(errors.IndexOutOfBoundsError, match=rf"\w+\(\) on backend '{backend}'"):
            ops.eval(call())  # Dask raises when a block is computed


def test_an_index_out_of_bounds_on_one_axis_does_not_reach_another_row(backend: str) -> None:
    # Flattened, position (0, 4) of a (2, 3) tensor would be (1, 1).
    at = ops.convert_to_tensor(np.array([[0, 4], [1, -1]]))
    if backend == "mlx":
        assert ops.scatter(at, [1.0, 2.0], (2, 3)).tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
    else:
        with pytest.raises(errors.IndexOutOfBoundsError):
            ops.eval(ops.scatter(at, [1.0, 2.0], (2, 3)))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ((0, 0, 0, 0), errors.AxisError),
        ((np.array([0]), 0, 0, 0), errors.AxisError),
        ((slice(None, None, 0),), errors.ArgumentError),
        ((Ellipsis, Ellipsis), errors.ArgumentError),
        (0.5, errors.ArgumentTypeError),
        ("a", errors.ArgumentTypeError),
        (np.array([0.5]), errors.ArgumentTypeError),
        ([0.5], errors.ArgumentTypeError),
        (np.array([True, False, True]), errors.ShapeError),
        (np.ones((2, 2), bool), errors.ShapeError),
        (np.ones((2, 3, 4, 1), bool), errors.AxisError),
        ((np.array([0, 1]), np.array([0, 1, 2])), errors.ShapeError),
    ],
)
def test_a_wrong_key_is_refused(backend: str, key: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"get_item\(\) on backend '{backend}'"):
        ops.get_item(X, key)


def test_a_tensor_of_floats_or_booleans_is_not_accepted_as_indices(backend: str) -> None:
    for indices in (ops.convert_to_tensor([0.0]), ops.convert_to_tensor([True])):
        for call in (ops.take, ops.take_along_axis):
            with pytest.raises(errors.EmberError) as caught:
                call(V, indices)
            assert isinstance(caught.value, TypeError)


def test_indices_of_another_backend_are_refused(backend: str) -> None:
    other = next((name for name in INSTALLED if name not in (backend, "numpy")), None)
    if other is None:
        pytest.skip("needs two backends")
    with ops.use_backend(other):
        indices = ops.convert_to_tensor(np.array([0, 1]))
    with pytest.raises(errors.BackendMismatchError):
        ops.take(V, indices)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_indices_may_have_every_integer_dtype(backend: str, dtype: str) -> None:
    at = ops.convert_to_tensor(np.array([2, 0, 2], dtype))
    assert ops.take(V, at).tolist() == [30.0, 10.0, 30.0]
    assert ops.get_item(V, at).tolist() == [30.0, 10.0, 30.0]
    assert ops.take_along_axis(V, at).tolist() == [30.0, 10.0, 30.0]
    assert ops.scatter(ops.expand_dims(at, -1), [1, 2, 3], (3,)).tolist() == [2, 0, 4]
    assert ops.one_hot(at, 3, dtype="int32").tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_negative_indices_count_from_the_end(backend: str) -> None:
    at = ops.convert_to_tensor(np.array([-1, -3]))
    assert ops.take(V, at).tolist() == ops.take(V, [-1, -3]).tolist() == [30.0, 10.0]
    assert ops.take(X, at[:1], 1).tolist() == X[:, [-1]].tolist()
    assert ops.take_along_axis(V, at).tolist() == [30.0, 10.0]
    assert ops.scatter_update(V, ops.expand_dims(at, -1), [1.0, 2.0]).tolist() == [2.0, 20.0, 1.0]


def test_masks_select_the_elements_that_numpy_selects(backend: str) -> None:
    mask = X > 10
    assert ops.get_item(X, ops.convert_to_tensor(mask)).tolist() == X[mask].tolist()
    assert ops.get_item(X, mask.tolist()).tolist() == X[mask].tolist()
    assert ops.get_item(X, (slice(None), ops.convert_to_tensor(mask[0]))).tolist() == X[:, mask[0]].tolist()
    assert ops.shape(ops.get_item(X, np.zeros((2, 3), bool))) == (0, 4)
    assert ops.shape(ops.get_item(X, True)) == (1, 2, 3, 4)
    assert ops.shape(ops.get_item(X, (0, False, Ellipsis))) == (0, 3, 4)


def test_where_accepts_numbers_as_condition_and_branches(backend: str) -> None:
    assert ops.where(np.float32([0.0, -2.0, np.nan]), 1, 0).tolist() == [0, 1, 1]
    assert ops.dtype(ops.where([True, False], V[:2], 0)) == "float32"
    assert ops.dtype(ops.where([True, False], 1.5, np.int32(2))) == "float32"
    assert ops.dtype(ops.where([True], np.int8([1]), np.uint8([1]))) == "int16"
    assert ops.where(True, 1, 2).tolist() == 1
    with pytest.raises(errors.RangeError):
        ops.where([True], np.uint8([1]), 300)
    with pytest.raises(errors.ShapeError):
        ops.where([True, False], V, 0)


def test_select_takes_the_first_choice_whose_condition_holds(backend: str) -> None:
    x = ops.arange(5)
    assert ops.select([x < 1, x < 3], [x + 10, x + 20], -1).tolist() == [10, 21, 22, -1, -1]
    assert ops.dtype(ops.select([x < 1], [np.int8([1])], 0.5)) == "float32"
    for conditions, choices in (([], []), ([x < 1], [x, x])):
        with pytest.raises(errors.ArgumentError, match=r"select\(\) on backend"):
            ops.select(conditions, choices)


def test_nonzero_accepts_every_kind_of_dtype(backend: str) -> None:
    for dtype in ("bool", "uint64", "float16", "complex64"):
        found = ops.nonzero(ops.cast([[0, 1], [2, 0]], dtype))
        assert [axis.tolist() for axis in found] == [[0, 1], [1, 0]]
        assert {ops.dtype(axis).name for axis in found} == {"int64"}
    with pytest.raises(errors.ShapeError):
        ops.nonzero(3)


def test_the_last_of_equal_indices_is_written(backend: str) -> None:
    assert ops.scatter_update(V, [[0], [1], [0]], [1.0, 2.0, 3.0]).tolist() == [3.0, 2.0, 30.0]


@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint64", "float16", "float32"])
def test_scatter_update_with_max_and_min_agrees_with_numpy(backend: str, reduction: str, dtype: str) -> None:
    x = np.array([0, 1, 1]).astype(dtype)
    at, updates = np.array([[0], [1], [0], [-1]]), np.array([1, 0, 0, 1]).astype(dtype)
    wanted = x.copy()
    getattr(np, f"{reduction}imum").at(wanted, at[:, 0], updates)
    got = ops.scatter_update(x, ops.convert_to_tensor(at), updates, reduction)
    assert ops.dtype(got) == dtype
    assert got.tolist() == wanted.tolist()


def test_updates_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(errors.ArgumentError, match="mean"):
        ops.scatter_update(V, [[0]], [1.0], "mean")  # type: ignore[arg-type]
    for indices, updates in (([[0, 0]], [1.0]), ([[0], [1]], [1.0, 2.0, 3.0]), (0, 1.0)):
        with pytest.raises(errors.ShapeError, match=rf"scatter_update\(\) on backend '{backend}'"):
            ops.scatter_update(V, indices, updates)  # type: ignore[arg-type]
    with pytest.raises(errors.ShapeError):
        ops.slice_update(X, [0, 0], [1.0])


def test_updates_do_not_change_their_argument(backend: str) -> None:
    x = ops.convert_to_tensor(V.copy())
    ops.scatter_update(x, [[0]], [1.0])
    ops.slice_update(x, [0], [1.0])
    assert x.tolist() == V.tolist()


def test_diagonal_agrees_with_numpy_and_refuses_wrong_axes(backend: str) -> None:
    assert ops.diagonal(X, 1, 1, 2).tolist() == X.diagonal(1, 1, 2).tolist()
    assert ops.shape(ops.diagonal(X, 9)) == (4, 0)
    with pytest.raises(errors.AxisError):
        ops.diagonal(X, 0, 1, 1)
    with pytest.raises(errors.AxisError):
        ops.diagonal(X, 0, 0, 3)
    with pytest.raises(errors.ShapeError):
        ops.diagonal(V)


@pytest.mark.parametrize("far", [2**31 - 1, -(2**31), 2**63, -(10**30)])
def test_a_diagonal_far_outside_the_matrix_is_empty(backend: str, far: int) -> None:
    x, kept = X[0], far > 0
    assert ops.diagonal(x, far).shape == ops.linalg.diagonal(x, far).shape == ops.diag(x, far).shape == (0,)
    assert float(ops.trace(x, far)) == float(ops.linalg.trace(x, far)) == 0.0
    assert bool(ops.all(ops.equal(ops.tril(x, far), x if kept else 0)))
    assert bool(ops.all(ops.equal(ops.triu(x, far), 0 if kept else x)))
    assert not bool(ops.any(ops.eye(3, 4, far)))
    assert ops.tril_indices(3, far)[0].shape == ((9,) if kept else (0,))
    assert ops.triu_indices(3, far, 4)[1].shape == ((0,) if kept else (12,))


def test_the_offset_of_a_diagonal_must_be_an_integer(backend: str) -> None:
    for op in (ops.diagonal, ops.tril, ops.diag, ops.trace):
        with pytest.raises(errors.ArgumentTypeError):
            op(X[0], 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["int8", "int64"])
@pytest.mark.parametrize("first", [0, -1, 3], ids=["in range", "negative", "too large"])
def test_one_hot_of_many_elements_is_one_at_each_class(first: int, dtype: str, backend: str) -> None:
    at = (first + np.arange(600).reshape(20, 30) % 7).astype(dtype)
    for x in (ops.convert_to_tensor(at), ops.swapaxes(at, 0, 1)):
        assert np.array_equal(ops.to_numpy(ops.one_hot(x, 7)), ops.to_numpy(x)[..., None] == np.arange(7))


def test_one_hot_of_a_class_out_of_range_is_zero(backend: str) -> None:
    assert ops.one_hot([-1, 3, 1], 3).tolist() == [[0.0] * 3, [0.0] * 3, [0.0, 1.0, 0.0]]
    assert ops.shape(ops.one_hot(1, 4)) == (4,)
    assert ops.shape(ops.one_hot([[1, 2]], 4, axis=0)) == (4, 1, 2)
    with pytest.raises(errors.AxisError):
        ops.one_hot([1], 3, axis=2)


def _keys(shape: tuple[int, ...]) -> st.SearchStrategy[object]:
    """Returns keys that NumPy accepts: slices, integers, new axes, masks, and integer arrays that broadcast."""
    arrays = hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
    masks = hnp.arrays(bool, shape[:2])
    return st.one_of(hnp.basic_indices(shape, allow_newaxis=True), arrays, masks, st.tuples(masks, st.just(Ellipsis)))


@pytest.mark.parametrize("name", INSTALLED)
@given(data=st.data())
def test_keys_select_the_elements_that_numpy_selects(name: str, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(3,), (2, 3), (4, 1, 3), (2, 3, 2, 2), (0, 2)]))
    key = data.draw(_keys(shape) if shape[0] else hnp.basic_indices(shape))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    with ops.use_backend(name):
        for given_key in (key, _as_tensors(key)):
            got = ops.to_numpy(ops.get_item(x, given_key))
            assert got.shape == x[key].shape
            assert got.tolist() == x[key].tolist()


def _as_tensors(key: object) -> object:
    if isinstance(key, tuple):
        return tuple(_as_tensors(part) for part in key)
    return ops.convert_to_tensor(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("name", INSTALLED)
@given(data=st.data())
def test_scatter_adds_like_numpy(name: str, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    axes = data.draw(st.integers(1, len(shape)))
    count = data.draw(st.integers(0, 6))
    at = np.array([[data.draw(st.integers(-n, n - 1)) for n in shape[:axes]] for _ in range(count)], np.int64).reshape(
        count, axes
    )
    values = np.arange(count * int(np.prod(shape[axes:]))).reshape(count, *shape[axes:])
    wanted = np.zeros(shape, np.int64)
    np.add.at(wanted, tuple(at.T), values)
    with ops.use_backend(name):
        for indices in (at, ops.convert_to_tensor(at)):
            assert ops.scatter(indices, values, shape).tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float32", "int64", "complex64", "bfloat16"])
@pytest.mark.parametrize("shapes", [((150, 120), (150, 120)), ((), (120,)), ((150, 1), ())])
def test_where_of_many_elements_keeps_the_bits_of_the_chosen(
    backend: str, dtype: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    condition = np.sin(np.arange(150 * 120) ** 2).reshape(150, 120) > 0
    x1, x2 = (np.abs(np.cos(np.arange(np.prod(shape, dtype=int)))).reshape(shape) * 9 for shape in shapes)
    if dtype.startswith(("float", "complex")):
        x1.flat[0], x1.flat[-1] = -0.0, np.nan
    chosen = [ops.cast(x, dtype) for x in (x1, x2)]
    got = ops.where(condition, *chosen)
    assert ops.dtype(got) == dtype
    assert ops.to_numpy(got).tobytes() == np.where(condition, *map(ops.to_numpy, chosen)).tobytes()
    for number in (0, 0.0, -0.0, 3) if dtype.startswith("float") else (0, 3) if dtype == "int64" else ():
        got = ops.where(condition, chosen[0], number)
        assert ops.dtype(got) == dtype
        first = ops.to_numpy(chosen[0])
        assert ops.to_numpy(got).tobytes() == np.where(condition, first, np.asarray(number, first.dtype)).tobytes()


@pytest.mark.parametrize(
    "key",
    [
        (0, slice(None), [0, 1]),
        ([0, 1], slice(None), 2),
        (1, None, [2, 0]),
        (-1, Ellipsis, np.array([[0], [3]])),
        (slice(None), 0, [0, 1]),
        (0, [1, 2], [0, 3]),
        ([0, 1], None, [1, 0]),
        (np.array(1), slice(None), np.array([0, 1])),
        (slice(None), range(2)),
        (0, slice(None, None, -1), [0, 1]),
    ],
)
def test_integers_and_slices_beside_index_tensors_agree_with_numpy(backend: str, key: tuple[object, ...]) -> None:
    wanted = X[tuple(list(part) if isinstance(part, range) else part for part in key)]  # type: ignore[index]
    for given_key in (key, _as_tensors(key)):
        got = ops.to_numpy(ops.get_item(X, given_key))
        assert got.shape == wanted.shape
        assert got.tolist() == wanted.tolist()


def test_slices_beyond_the_ends_are_cut(backend: str) -> None:
    for part in (
        slice(None, None, FAR),
        slice(-FAR, FAR),
        slice(FAR, None),
        slice(None, None, -FAR),
        slice(FAR, 0, -1),
    ):
        for key in (part, (None, part), (1, part)):
            got = ops.to_numpy(ops.get_item(X, key))
            assert got.shape == X[key].shape
            assert got.tolist() == X[key].tolist()
    assert ops.shape(ops.get_item(V, [])) == (0,)


def test_take_with_a_negative_number_counts_from_the_end(backend: str) -> None:
    for axis in (0, 1, -1, None):
        assert ops.take(X, -1, axis).tolist() == X.take(-1, axis).tolist()
        assert ops.take(X, ops.convert_to_tensor(np.array(-1)), axis).tolist() == X.take(-1, axis).tolist()


def test_taking_from_an_empty_axis_is_refused(backend: str) -> None:
    empty, at = ops.zeros((2, 0)), ops.convert_to_tensor(np.array([[0], [0]]))
    for call in (
        lambda: ops.take(empty, at, 1),
        lambda: ops.take(empty, [0], 1),
        lambda: ops.take(empty, 0),
        lambda: ops.take_along_axis(empty, at),
        lambda: ops.take_along_axis(empty, [[0], [0]]),
    ):
        with pytest.raises(errors.IndexOutOfBoundsError):
            ops.eval(call())
    assert ops.shape(ops.take(empty, 0, 0)) == (0,)
    assert ops.shape(ops.take(empty, [], 1)) == (2, 0)


def test_take_along_axis_refuses_indices_that_do_not_broadcast(backend: str) -> None:
    for indices in ([0], [[[0]]], 0):
        with pytest.raises(errors.ShapeError):
            ops.take_along_axis(X[0], indices, 0)  # type: ignore[arg-type]


def test_scatter_refuses_indices_without_positions(backend: str) -> None:
    for indices in ([], [[]], 0):
        with pytest.raises(errors.ShapeError, match="do not name positions"):
            ops.scatter(indices, [1.0], (3,))  # type: ignore[arg-type]
    assert ops.scatter(np.zeros((0, 1), np.int64), np.zeros((0,)), (2,)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("reduction", [None, "add", "mul", "max", "min"])
def test_scatter_update_accepts_one_position(backend: str, reduction: str | None) -> None:
    wanted = {None: 5.0, "add": 15.0, "mul": 50.0, "max": 10.0, "min": 5.0}[reduction]
    assert ops.scatter_update(V, [0], 5.0, reduction).tolist() == [wanted, 20.0, 30.0]  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_scatter_update_refuses_max_and_min_of_complex_numbers(backend: str, reduction: str) -> None:
    with pytest.raises(errors.DTypeError):
        ops.scatter_update(np.complex64([1, 2]), [[0]], np.complex64([1]), reduction)  # type: ignore[arg-type]


def test_lengths_must_be_natural_numbers(backend: str) -> None:
    for call in (ops.tril_indices, ops.triu_indices):
        assert [part.tolist() for part in call(0)] == [[], []]
        with pytest.raises(errors.ShapeError):
            call(-1)
        with pytest.raises(errors.ArgumentTypeError):
            call(2.0)  # type: ignore[arg-type]
    for indices in ([0], ops.convert_to_tensor(np.array([0]))):
        with pytest.raises(errors.ShapeError):
            ops.unravel_index(indices, (2, -1))
    assert ops.unravel_index(0, ()) == ()
    assert [int(part) for part in ops.unravel_index(5, (2, 3))] == [1, 2]


def test_take_from_strided_tensors_agrees_with_numpy_and_copies(backend: str) -> None:
    x = ops.transpose(ops.convert_to_tensor(X))
    for at in ([1, -1], 0, -2, np.array([[0], [1]]), []):
        for axis in (0, 1, 2, -1):
            wanted = X.T.take(np.array(at, np.int64), axis)
            got = ops.to_numpy(ops.take(x, at, axis))
            assert got.shape == wanted.shape
            assert got.tolist() == wanted.tolist()
            assert backend == "mlx" or not np.shares_memory(got, ops.to_numpy(x))
    with pytest.raises(errors.IndexOutOfBoundsError):
        ops.take(x, [4], 0)
    with pytest.raises(errors.AxisError):
        ops.take(x, [0], 3)


def test_a_broadcast_axis_of_two_billion_elements_can_be_indexed(backend: str) -> None:
    long = ops.broadcast_to(ops.convert_to_tensor(np.float32([7.0])), (2**31 - 1,))
    assert ops.size(long) == 2**31 - 1
    assert float(ops.get_item(long, -1)) == 7.0
    assert ops.take(long, [0, 2**31 - 2], 0).tolist() == [7.0, 7.0]
    assert ops.shape(ops.get_item(long, slice(5, 2**31))) == (2**31 - 6,)
    if backend == "mlx":
        with pytest.raises(errors.RangeError, match="counts in 32 bits"):
            ops.get_item(long, slice(None, None, 2**20))
    else:
        assert ops.shape(ops.get_item(long, slice(None, None, 2**20))) == (2**11,)


@pytest.mark.parametrize("reduction", [None, "add", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("shape", "indices", "updates"),
    [
        ((3, 0), [[0], [2]], (2, 0)),
        ((3, 4, 0), [[0, 1], [2, 3]], (2, 0)),
        ((0, 4), np.zeros((0, 2), int), (0,)),
        ((3, 4), np.zeros((0, 1), int), (0, 4)),
        ((0, 0), np.zeros((0, 1), int), (0, 0)),
    ],
)
def test_updates_without_elements_change_nothing(
    shape: tuple[int, ...], indices: object, updates: tuple[int, ...], reduction: str | None, backend: str
) -> None:
    for places in (indices, ops.convert_to_tensor(indices)):
        result = ops.scatter_update(ops.ones(shape), places, ops.zeros(updates), reduction)  # type: ignore[arg-type]
        assert np.array_equal(ops.to_numpy(result), np.ones(shape))
    assert tuple(ops.scatter([[0], [2]], ops.ones((2, 0)), (3, 0)).shape) == (3, 0)
    with pytest.raises(errors.ShapeError):
        ops.scatter_update(ops.ones((3, 0)), [[0], [2]], ops.ones((3, 0)), reduction)  # type: ignore[arg-type]


def test_an_index_of_an_empty_axis_is_refused_even_if_the_result_is_empty(backend: str) -> None:
    with pytest.raises(errors.IndexOutOfBoundsError):
        ops.take(ops.ones((0, 0)), [2, -1], 1)


def test_slice_accepts_tensors_as_start_and_shape(backend: str) -> None:
    x, two, three = ops.arange(10), ops.convert_to_tensor([2]), ops.convert_to_tensor([3])
    for start in ([2], two, [two[0]]):
        for shape in ([3], three, (three[0],)):
            assert ops.slice(x, start, shape).tolist() == [2, 3, 4]
    with pytest.raises(errors.IndexOutOfBoundsError):
        ops.slice(x, [8], three)


@pytest.mark.parametrize(("updates", "wanted"), [([0.0, 5.0], [10, 0]), ([0.0, 0.0], [0, 0]), ([2.0, 5.0], [10, 4])])
def test_the_gradient_of_a_product_by_its_updates_is_right_at_zeros(
    updates: list[float], wanted: list[int], backend: str
) -> None:
    def total(updates: Any) -> Any:
        return ops.sum(ops.scatter_update(ops.asarray([2.0, 3.0]), [[0], [0]], updates, "mul"))

    assert ops.grad(total)(ops.asarray(updates)).tolist() == wanted


def test_the_gradient_of_a_complex_product_is_right_or_refused(backend: str) -> None:
    def scattered(v: Any) -> Any:
        return ops.scatter_update(ops.ones((1,), dtype="complex64"), [[0], [0]], v, "mul")

    for product in (scattered, lambda v: ops.segment_prod(v, [0, 0], 1)):

        def loss(v: Any, product: Any = product) -> Any:
            y = product(v)[0]
            return ops.add(ops.multiply(ops.real(y), 2.0), ops.multiply(ops.imag(y), 3.0))

        v = ops.asarray(np.array([1 + 2j, 3 - 1j], np.complex64))
        if backend == "torch":
            with pytest.raises(errors.DTypeError, match="complex"):
                ops.grad(loss)(v)
        else:
            np.testing.assert_allclose(ops.to_numpy(ops.grad(loss)(v)), [3 + 11j, 8 - 1j], rtol=1e-5)


@pytest.mark.parametrize("value", [True, False])
def test_a_mask_without_axes_selects_what_numpy_selects(value: bool, backend: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for mask in (value, np.array(value), ops.asarray(value)):
        for key in (
            lambda m: m,
            lambda m: (m, 1),
            lambda m: (slice(0, 1), m),
            lambda m: (1, None, m),
            lambda m: (None, m),
            lambda m: (None, m, ..., 0),
            lambda m: (m, slice(None), [2]),
        ):
            wanted = x[key(value)]
            found = ops.to_numpy(ops.get_item(x, key(mask)))
            assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())
