"""Reading and writing by index: keys as in NumPy, bounds, masks, indices of every integer dtype."""

import enum
from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import errors
from tests.backend.fast_paths.comparing import FORMS

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
    ones = ops.one_hot(at, 3, dtype="int32")
    assert (ops.dtype(ones), ones.tolist()) == ("int32", [[0, 0, 1], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
def test_an_index_that_64_bits_with_a_sign_cannot_hold_is_no_negative_one(backend: str, number: int) -> None:
    if backend == "mlx":
        pytest.skip("MLX checks no index of a tensor")
    at, x = (ops.convert_to_tensor(values) for values in (np.array([number], np.uint64), np.ones(3)))
    for function in (ops.take, ops.get_item, ops.take_along_axis, lambda x, at: ops.set_item(x, at, 0.0)):
        with pytest.raises(errors.IndexOutOfBoundsError):
            ops.to_numpy(function(x, at))  # Dask raises errors that depend on values when it computes


@pytest.mark.parametrize("key", [(1,), (1, slice(None, None, -1)), (1, slice(None), 1), ([0, 1], 1), (None, 1, ...)])
def test_a_tensor_without_axes_is_an_index_as_a_number_is(backend: str, key: tuple[object, ...]) -> None:
    with_tensors = tuple(ops.convert_to_tensor(np.array(part)) if type(part) is int else part for part in key)
    found = ops.to_numpy(ops.get_item(X, with_tensors))
    assert (found.shape, found.tolist()) == (X[key].shape, X[key].tolist())


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_negative_indices_count_from_the_end(backend: str, dtype: str) -> None:
    at = ops.convert_to_tensor(np.array([-1, -3], dtype))
    assert ops.get_item(V, at).tolist() == [30.0, 10.0]
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


@pytest.mark.parametrize("first", [1, 5, 1000])
def test_an_integer_and_a_slice_read_what_numpy_reads(backend: str, first: int) -> None:
    x = np.arange(first * 3, dtype=np.float32).reshape(first, 3)
    ours = ops.convert_to_tensor(x)
    ends = (None, 0, 1, 3, first, first + 7, -1, -3)
    keys: list[slice | int] = [slice(start, stop, step) for start in ends for stop in ends for step in (None, 2)]
    for key in [*keys, 0, -1, first - 1, -first]:
        part = ops.get_item(ours, key)
        assert (ops.shape(part), part.tolist()) == (x[key].shape, x[key].tolist()), key


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


def test_an_index_may_be_an_integer_of_a_subclass(backend: str) -> None:
    one = enum.IntEnum("Names", "ONE").ONE
    x = ops.convert_to_tensor(X[0])
    for key in (one, (one, slice(3, None, -1)), ([0, 1], one)):
        np.testing.assert_array_equal(ops.to_numpy(ops.get_item(x, key)), X[0][key])


@pytest.mark.parametrize("form", FORMS)
def test_elements_are_gathered_from_every_layout(form: str, backend: str) -> None:
    array = np.random.default_rng(0).permutation(24).reshape(2, 3, 4)
    x, order = FORMS[form](array), np.argsort(array, axis=1)
    for axis in (None, 0, 1, -1):
        for places in (1, [1, 0], [[1, -1], [0, 0]], []):
            wanted = np.take(array, np.asarray(places, np.int64), axis)
            assert ops.take(x, places, axis).tolist() == wanted.tolist()
    assert ops.take_along_axis(x, order, 1).tolist() == np.sort(array, axis=1).tolist()
    assert ops.take_along_axis(x, [5, -1], None).tolist() == array.ravel()[[5, -1]].tolist()
