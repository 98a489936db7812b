"""Shape ops: agreement with NumPy, empty tensors, typed errors for axes and shapes, dtypes of joined tensors."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import errors
from emberharmony.core.registry import OPS

INSTALLED = [name for name in BUILTIN if is_installed(name)]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
V = np.arange(4, dtype=np.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.transpose(X, (0, 0, 1)),
        lambda: ops.transpose(X, (0, 1)),
        lambda: ops.transpose(X, (0, 1, 3)),
        lambda: ops.swapaxes(X, 0, 3),
        lambda: ops.moveaxis(X, 0, 3),
        lambda: ops.moveaxis(X, (0, 0), (1, 2)),
        lambda: ops.moveaxis(X, (0, 1), (2, 2)),
        lambda: ops.expand_dims(X, 4),
        lambda: ops.expand_dims(X, (0, 0)),
        lambda: ops.expand_dims(X, -5),
        lambda: ops.squeeze(X, 3),
        lambda: ops.squeeze(X[:1], (0, 0)),
        lambda: ops.concatenate([X, X], 3),
        lambda: ops.concatenate([V], 5),
        lambda: ops.stack([X, X], 4),
        lambda: ops.stack([X, X], -5),
        lambda: ops.split(X, 2, 3),
        lambda: ops.array_split(X, 2, -4),
        lambda: ops.hsplit(np.float32(1), 1),
        lambda: ops.dsplit(X[0], 2),
        lambda: ops.unstack(X, axis=3),
        lambda: ops.repeat(X, 2, 3),
        lambda: ops.flip(X, 3),
        lambda: ops.flip(X, (0, 0)),
        lambda: ops.fliplr(V),
        lambda: ops.flipud(np.float32(1)),
        lambda: ops.roll(X, 1, 3),
        lambda: ops.rot90(X, axes=(0, 3)),
        lambda: ops.rot90(X, axes=(1, 1)),
        lambda: ops.rot90(X, axes=(0, 1, 2)),
        lambda: ops.rot90(X, 4, axes=(0, 0)),
    ],
)
def test_a_wrong_axis_is_refused(backend: str, call: Callable[[], object]) -> None:
    with pytest.raises(errors.AxisError, match=rf"\w+\(\) on backend '{backend}'"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.reshape(X, (5, 5)),
        lambda: ops.reshape(X, (5, -1)),
        lambda: ops.reshape(X, (-1, -1)),
        lambda: ops.reshape(X, (-2, -12)),
        lambda: ops.reshape(X[:0], (0, -1)),
        lambda: ops.squeeze(X, 0),
        lambda: ops.squeeze(X[:1], (0, 1)),
        lambda: ops.broadcast_to(X, (2, 3, 5)),
        lambda: ops.broadcast_to(X, (4,)),
        lambda: ops.broadcast_to(V, (-1, 4)),
        lambda: ops.broadcast_arrays(X, V[:3]),
        lambda: ops.broadcast_shapes((2, 3), (4,)),
        lambda: ops.concatenate([X, X[:, :2]]),
        lambda: ops.concatenate([X, V]),
        lambda: ops.concatenate([X, V[:0]]),
        lambda: ops.concatenate([np.float32(1), np.float32(2)]),
        lambda: ops.concatenate([]),
        lambda: ops.stack([]),
        lambda: ops.hstack([]),
        lambda: ops.dstack([]),
        lambda: ops.stack([X, X[0]]),
        lambda: ops.split(V, 3),
        lambda: ops.split(V, 0),
        lambda: ops.array_split(V, 0),
        lambda: ops.vsplit(V, 2),
        lambda: ops.unstack(V, 3),
        lambda: ops.tile(V, (-1,)),
        lambda: ops.repeat(V, [1, 2]),
        lambda: ops.roll(X, (1, 2, 3), (0, 1)),
        lambda: ops.pad(X, ((1, 1), (1, 1))),
        lambda: ops.pad(X, -1),
        lambda: ops.pad(X[:, :0], 1, "edge"),
        lambda: ops.matrix_transpose(V),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(backend: str, call: Callable[[], object]) -> None:
    with pytest.raises(errors.ShapeError, match=rf"\w+\(\) on backend '{backend}'"):
        call()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.repeat(V, -1), errors.ArgumentError),
        (lambda: ops.repeat(V, [1, -1, 1, 1]), errors.ArgumentError),
        (lambda: ops.repeat(V, 1.5), errors.ArgumentTypeError),
        (lambda: ops.pad(V, 1, "edge", 3), errors.ArgumentError),
        (lambda: ops.pad(V, 1, constant_values=2**70), errors.RangeError),
        (lambda: ops.broadcast_to(V, 2.5), errors.ArgumentTypeError),
        (lambda: ops.array_split(V, 10**400), errors.ArgumentError),
        (lambda: ops.split(X[:0], 10**10), errors.ArgumentError),
        (lambda: ops.repeat(np.ones(8), 2**61), errors.OutOfMemoryError),
        (lambda: ops.repeat(np.ones(5), [2**62 + 1] * 4 + [4]), errors.OutOfMemoryError),
    ],
)
def test_a_wrong_argument_is_refused(backend: str, call: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"\w+\(\) on backend '{backend}'"):
        call()


def test_shape_ops_accept_empty_tensors(backend: str) -> None:
    empty = ops.zeros((0, 3))
    assert ops.shape(ops.reshape(empty, (3, -1))) == (3, 0)
    assert ops.shape(ops.reshape(empty, -1)) == (0,)
    assert ops.shape(ops.flip(empty)) == ops.shape(ops.roll(empty, 1)) == (0, 3)
    assert ops.shape(ops.tile(empty, (2, 1))) == (0, 3)
    assert ops.shape(ops.repeat(empty, 2, 0)) == (0, 3)
    assert ops.shape(ops.pad(empty, 1)) == (2, 5)
    assert ops.unstack(empty) == ()
    assert [ops.shape(part) for part in ops.split(empty, 3, 1)] == [(0, 1)] * 3
    assert ops.broadcast_arrays() == ()
    assert ops.broadcast_shapes() == ()


@pytest.mark.parametrize("copy", [None, True, False])
def test_reshape_accepts_the_integers_of_numpy(backend: str, copy: bool | None) -> None:
    x = ops.arange(4)
    assert ops.shape(ops.reshape(x, np.int64(-1), copy=copy)) == (4,)
    assert ops.shape(ops.reshape(x, (np.int64(2), np.int32(-1)), copy=copy)) == (2, 2)


def test_shape_ops_accept_tensors_without_axes(backend: str) -> None:
    point = ops.full((), 5)
    assert ops.reshape(point, (1, 1)).tolist() == [[5]]
    assert ops.shape(ops.squeeze(ops.zeros((1, 1)))) == ()
    assert ops.flip(point).tolist() == 5
    assert ops.stack([point, 6]).tolist() == ops.hstack([point, [6]]).tolist() == [5, 6]
    assert ops.tile(point, 2).tolist() == ops.repeat(point, 2).tolist() == [5, 5]
    assert ops.pad(point, 3).tolist() == 5


def test_joined_tensors_have_the_promoted_dtype(backend: str) -> None:
    assert ops.dtype(ops.concatenate([V, X[0, 0]])) == "float32"
    assert ops.dtype(ops.stack([V.astype("int8"), V.astype("uint8")])) == "int16"
    assert ops.dtype(ops.append(V.astype("uint32"), V.astype("int32"))) == "int64"
    assert ops.dtype(ops.concatenate([X.astype("float16"), V.reshape(1, 1, 4) + X.astype("int64")])) == "float16"


def test_axes_may_be_lists_or_integers_of_numpy(backend: str) -> None:
    x = ops.zeros((1, 2, 1))
    assert ops.shape(ops.squeeze(x, [0, 2])) == (2,)
    assert ops.shape(ops.expand_dims(x, [0])) == (1, 1, 2, 1)
    assert ops.shape(ops.transpose(x, [1, 0, 2])) == (2, 1, 1)
    assert ops.shape(ops.reshape(x, [2])) == ops.shape(ops.reshape(x, 2)) == (2,)
    assert ops.shape(ops.flip(x, np.int64(1))) == (1, 2, 1)


def test_reshape_copies_or_refuses_as_copy_says(backend: str) -> None:
    x = ops.convert_to_tensor(X)
    assert ops.shape(ops.reshape(x, (4, 6), copy=False)) == ops.shape(ops.reshape(x, (4, 6), copy=True)) == (4, 6)
    # Arrays of MLX and JAX are immutable, and those of Dask have no memory to share.
    if backend not in ("mlx", "jax", "dask"):
        assert not np.shares_memory(ops.to_numpy(ops.reshape(x, 24, copy=True)), ops.to_numpy(x))
        with pytest.raises(errors.ArgumentError, match="cop"):
            ops.reshape(ops.transpose(x), 24, copy=False)


def test_a_shape_in_several_arguments_is_told_from_a_copy(backend: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"reshape\(\) on backend .*copy.*one argument.*\(2, 3\)"):
        ops.reshape(V, 2, 2)  # type: ignore[call-overload, call-arg, arg-type]


def test_pad_accepts_complex_constants(backend: str) -> None:
    assert ops.pad(np.complex64([1j]), 1, constant_values=2 + 3j).tolist() == [2 + 3j, 1j, 2 + 3j]
    assert np.signbit(ops.to_numpy(ops.pad([1.0], 1, constant_values=-0.0))).tolist() == [True, False, True]


def test_repeat_accepts_a_tensor_of_counts(backend: str) -> None:
    assert ops.repeat(V, ops.convert_to_tensor(V)).tolist() == [1, 2, 2, 3, 3, 3]


SHAPES = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize("name", INSTALLED)
@given(data=st.data())
def test_shape_ops_agree_with_numpy(name: str, data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    x = np.arange(int(np.prod(shape))).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    axis, other = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.integers(0, len(shape) - 1))
    shift, cuts = data.draw(st.integers(-9, 9)), data.draw(st.lists(st.integers(-5, 5), max_size=3))
    with ops.use_backend(name):
        pairs = [
            (ops.transpose(x, order), x.transpose(order)),
            (ops.moveaxis(x, axis, other), np.moveaxis(x, axis, other)),
            (ops.swapaxes(x, axis, other), x.swapaxes(axis, other)),
            (ops.expand_dims(x, axis), np.expand_dims(x, axis)),
            (ops.flip(x, axis), np.flip(x, axis)),
            (ops.roll(x, shift, axis), np.roll(x, shift, axis)),
            (ops.repeat(x, abs(shift), axis), np.repeat(x, abs(shift), axis)),
            (ops.concatenate([x, x], axis), np.concatenate([x, x], axis)),
            *zip(ops.split(x, cuts, axis), np.split(x, cuts, axis), strict=True),
            *zip(ops.array_split(x, 3, axis), np.array_split(x, 3, axis), strict=True),
        ]
        for got, wanted in pairs:
            assert ops.to_numpy(got).shape == wanted.shape
            assert ops.to_numpy(got).tolist() == wanted.tolist()


@pytest.mark.parametrize("name", INSTALLED)
@given(
    n=st.integers(1, 4),
    widths=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    mode=st.sampled_from(["constant", "reflect", "symmetric", "edge", "wrap"]),
)
def test_the_modes_of_pad_agree_with_numpy(name: str, n: int, widths: tuple[int, int], mode: str) -> None:
    x = np.arange(1, n + 1)
    with ops.use_backend(name):
        assert ops.pad(x, widths, mode).tolist() == np.pad(x, widths, mode).tolist()  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.squeeze(x, 0),
        lambda x: ops.swapaxes(x, 0, -1),
        lambda x: ops.moveaxis(x, 0, 0),
        lambda x: ops.repeat(x, 2, 0),
        lambda x: ops.repeat(x, [2], -1),
        lambda x: ops.take(x, 0, 0),
        lambda x: ops.take(x, [0], -1),
        lambda x: ops.flip(x, 0),
        lambda x: ops.roll(x, 1, 0),
        lambda x: ops.unstack(x),
    ],
)
def test_axis_0_of_a_tensor_without_axes_is_refused(backend: str, call: Callable[[object], object]) -> None:
    with pytest.raises(errors.AxisError, match=rf"\(\) on backend '{backend}'"):
        call(ops.convert_to_tensor(3.0))


def test_axes_of_empty_tensors_are_checked(backend: str) -> None:
    empty = ops.zeros((0,))
    for call in (lambda: ops.concatenate([empty, empty], 1), lambda: ops.squeeze(empty, (0, 0))):
        with pytest.raises(errors.AxisError):
            call()


def test_negative_lengths_and_counts_are_refused(backend: str) -> None:
    for shape in ((-2, 3), (-1, -1), (-1, 0), -2):
        with pytest.raises(errors.ShapeError, match=r"reshape\(\) on backend"):
            ops.reshape(ops.zeros((6,)), shape)
    for repeats in (-1, (1, -1)):
        with pytest.raises(errors.ShapeError):
            ops.tile(ops.zeros((0,)), repeats)
    with pytest.raises(errors.AxisError):
        ops.moveaxis(X, [0, 1], [0])
    with pytest.raises(errors.ShapeError):
        ops.repeat(V, [[1, 2, 3, 4]])


def test_pad_widths_must_be_integers(backend: str) -> None:
    for width in (1.5, (0, 1.5)):
        with pytest.raises(errors.ArgumentTypeError):
            ops.pad(V, width)  # type: ignore[arg-type]
    assert ops.pad(V, np.int64(1)).tolist() == ops.pad(V, [1]).tolist() == ops.pad(V, ((1, 1),)).tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint64", "int64", "float16", "bfloat16", "complex64"])
def test_pad_keeps_every_dtype(backend: str, dtype: str) -> None:
    x = ops.cast([[0, 1], [2, 3]], dtype)
    assert ops.dtype(ops.pad(x, 1)) == dtype
    padded = ops.to_numpy(ops.cast(ops.pad(x, ((0, 1), (2, 0)), constant_values=1), "float32"))
    assert padded.tolist() == np.pad(ops.to_numpy(ops.cast(x, "float32")), ((0, 1), (2, 0)), constant_values=1).tolist()


@pytest.mark.parametrize("value", [(1.0, 2.0), "x"])
def test_pad_refuses_a_constant_that_is_not_a_number_or_a_tensor(value: object, backend: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="constant_values is a number"):
        ops.pad([1.0], 1, constant_values=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("shift", [2**31, -(2**31) - 1, 2**40 + 1, -(2**70), 5, -1])
def test_roll_accepts_shifts_of_any_size(shift: int, backend: str) -> None:
    for axis in (None, 0, 2, (0, 1)):
        near = shift % 24 if axis is None else shift % 12
        assert np.array_equal(ops.to_numpy(ops.roll(X, shift, axis)), np.roll(X, near, axis))
    assert np.array_equal(ops.to_numpy(ops.roll(X, (shift, 1), (1, 2))), np.roll(X, (shift % 3, 1), (1, 2)))
    assert tuple(ops.roll(X[:0], shift).shape) == tuple(ops.roll(X[:0], shift, 0).shape) == (0, 3, 4)


def test_several_shifts_along_no_axes_are_refused(backend: str) -> None:
    assert ops.roll(ops.asarray([1, 2, 3]), 1, ()).tolist() == [1, 2, 3]
    with pytest.raises(errors.ShapeError, match="2 shifts do not fit 0 axes"):
        ops.roll(ops.asarray([1, 2, 3]), (1, 2), ())


def test_pad_takes_a_tensor_that_broadcasts_to_the_result(backend: str) -> None:
    x, column = np.float32([[1.0, 2.0]]), np.array([[7.0], [8.0], [np.inf]])
    padded = ops.pad(x, [(1, 1), (0, 1)], constant_values=column)
    assert padded.tolist() == [[7.0, 7.0, 7.0], [1.0, 2.0, 8.0], [np.inf] * 3]
    assert ops.dtype(padded) == "float32"
    assert ops.pad(np.int8([1]), 1, constant_values=np.int64(3)).tolist() == [3, 1, 3]
    assert ops.shape(ops.pad(ops.zeros((0, 2)), (0, 1), constant_values=ops.convert_to_tensor(1.0))) == (1, 3)
    by_x, by_column = ops.grad(
        lambda x, column: ops.sum(ops.pad(x, [(1, 1), (0, 1)], constant_values=column)), argnums=(0, 1)
    )(x, [[1.0], [2.0], [3.0]])
    assert (by_x.tolist(), by_column.tolist()) == ([[1.0, 1.0]], [[3.0], [1.0], [3.0]])
    with pytest.raises(errors.ShapeError, match="pad"):
        ops.pad(x, 1, constant_values=[1.0, 2.0])
    with pytest.raises(errors.DTypeError, match="constant_values of float32 cannot pad a tensor of int32"):
        ops.pad(np.int32([1]), 1, constant_values=ops.convert_to_tensor(0.5))
    with pytest.raises(errors.ArgumentError, match="goes with mode 'constant'"):
        ops.pad(x, 1, "edge", constant_values=ops.convert_to_tensor(0.5))
    with pytest.raises(errors.ArgumentTypeError, match="constant_values is a number or a tensor, not str"):
        ops.pad(x, 1, constant_values="a")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_the_body_of_pad_gives_the_results_of_the_backends(mode: str, backend: str) -> None:
    x = ops.convert_to_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for widths in ([(1, 1), (2, 0)], 1, 0):
        wanted = ops.pad(x, widths, mode)  # type: ignore[arg-type]
        assert OPS["pad"].declared(x, widths, mode).tolist() == wanted.tolist()
    assert OPS["pad"].declared(x, 1, "constant", 7.0).tolist() == ops.pad(x, 1, constant_values=7.0).tolist()
    assert OPS["pad"].declared(ops.convert_to_tensor([True]), 1).tolist() == [False, True, False]


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (1, 2, 3), (0, 2, 3)])
@pytest.mark.parametrize("layout", ["rows", "columns", "every second"])
def test_broadcast_to_gives_views_of_any_layout(backend: str, shape: tuple[int, ...], layout: str) -> None:
    whole = np.arange(12, dtype=np.float32).reshape(4, 3)[::2] if layout == "every second" else np.float32([[1], [2]])
    x = np.asfortranarray(whole) if layout == "columns" else whole
    found = ops.broadcast_to(ops.convert_to_tensor(x), shape)
    assert ops.to_numpy(found).tolist() == np.broadcast_to(x, shape).tolist()
    with pytest.raises(errors.ShapeError):
        ops.broadcast_to(ops.convert_to_tensor(x), (2,))


def test_broadcast_to_on_numpy_is_a_view_that_cannot_be_written() -> None:
    ops.set_backend("numpy")
    x = np.float32([[1], [2]])
    view = ops.broadcast_to(x, (2, 5))
    assert np.shares_memory(view, x)
    assert not view.flags.writeable
