"""Laws of shapes: broadcasting and reductions compared with NumPy, and ops that undo each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from tests.properties.strategies import FULL_SHAPES, INSTALLED, SHAPES, arrays, axes_of, host, on, same, together

REDUCTIONS = ("sum", "prod", "mean", "std", "var", "any", "all", "count_nonzero", "logsumexp")
EXTREMES = ("max", "min")


@given(data=st.data())
def test_operands_broadcast_as_numpy_does(data: st.DataObject) -> None:
    a, b, c = data.draw(together("float32", 3))
    shape = np.broadcast_shapes(a.shape, b.shape)
    for name in INSTALLED:
        with on(name):
            assert ops.broadcast_shapes(a.shape, b.shape) == shape
            assert same(host(ops.add(a, b)), a + b)
            assert same(host(ops.where(a > 0, b, c)), np.where(a > 0, b, c))
            for got, wanted in zip(ops.broadcast_arrays(a, b, c), np.broadcast_arrays(a, b, c), strict=True):
                assert same(host(got), wanted)


@pytest.mark.parametrize("op", [*REDUCTIONS, *EXTREMES])
@given(data=st.data())
def test_reductions_keep_all_other_axes(op: str, data: st.DataObject) -> None:
    x = data.draw(arrays("float32", FULL_SHAPES if op in EXTREMES else SHAPES, size=10.0))
    axis, keepdims = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    wanted = np.sum(x, axis=axis, keepdims=keepdims).shape
    for name in INSTALLED:
        with on(name):
            result = getattr(ops, op)(x, axis=axis, keepdims=keepdims)
            assert ops.is_tensor(result)
            assert tuple(result.shape) == wanted


@given(data=st.data())
def test_reductions_of_integers_agree_with_numpy(data: st.DataObject) -> None:
    x = data.draw(arrays(data.draw(st.sampled_from(("int8", "uint16", "int64", "bool")))))
    axis, keepdims = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    for name in INSTALLED:
        with on(name):
            for op in ("sum", "prod", "any", "all"):
                got = host(getattr(ops, op)(x, axis=axis, keepdims=keepdims))
                assert same(got, np.asarray(getattr(np, op)(x, axis=axis, keepdims=keepdims))), (name, op)
            # A reduction over two axes equals two reductions over one axis each.
            if x.ndim > 1:
                assert same(host(ops.sum(ops.sum(x, axis=0), axis=0)), np.asarray(x.sum(axis=(0, 1))))


@given(data=st.data())
def test_positions_of_extremes_agree_with_numpy(data: st.DataObject) -> None:
    x = data.draw(arrays("int8", FULL_SHAPES))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    keepdims = data.draw(st.booleans())
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.argmax(x, axis, keepdims)), np.asarray(np.argmax(x, axis, keepdims=keepdims)))
            assert same(host(ops.argmin(x, axis, keepdims)), np.asarray(np.argmin(x, axis, keepdims=keepdims)))


@given(data=st.data())
def test_changes_of_the_shape_can_be_undone(data: st.DataObject) -> None:
    x = data.draw(arrays("int32"))
    order = data.draw(st.permutations(range(x.ndim)))
    at = data.draw(st.integers(-x.ndim - 1, x.ndim))
    shifts = tuple(data.draw(st.integers(-5, 5)) for _ in range(x.ndim))
    axes = tuple(range(x.ndim))
    for name in INSTALLED:
        with on(name):
            back = [order.index(axis) for axis in axes]
            assert same(host(ops.transpose(ops.transpose(x, order), back)), x)
            assert same(host(ops.reshape(ops.reshape(x, (-1,)) if x.size else ops.ravel(x), x.shape)), x)
            assert same(host(ops.squeeze(ops.expand_dims(x, at), at)), x)
            assert same(host(ops.flip(ops.flip(x))), x)
            assert same(host(ops.roll(ops.roll(x, shifts, axes), [-n for n in shifts], axes)), x)
            assert same(host(ops.moveaxis(ops.moveaxis(x, axes, order), order, axes)), x)


@given(data=st.data())
def test_joining_undoes_splitting(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, x.shape[axis]), max_size=3)))
    widths = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(x.ndim)]
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.concatenate(ops.split(x, cuts, axis), axis)), x)
            assert same(host(ops.stack(ops.unstack(x, axis=axis), axis)), x)
            padded = ops.pad(x, widths)
            assert same(host(ops.slice(padded, [before for before, _ in widths], x.shape)), x)
            assert int(host(ops.sum(padded))) == int(x.sum(dtype=np.int64))


@given(data=st.data())
def test_repeat_and_tile_agree_with_numpy(data: st.DataObject) -> None:
    x = data.draw(arrays("int32"))
    count, times = data.draw(st.integers(0, 3)), tuple(data.draw(st.lists(st.integers(0, 2), max_size=4)))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))) if x.ndim else None
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.repeat(x, count, axis)), np.repeat(x, count, axis))
            assert same(host(ops.tile(x, times)), np.tile(x, times))
