"""What keys of all kinds select and write, beside what NumPy does; take, scatter and the gradients of writes."""

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
