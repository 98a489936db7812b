"""Laws of indexing: negative indices, steps and masks as in NumPy, and reading back what was written."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emberharmony import ops
from tests.properties.strategies import FULL_SHAPES, INSTALLED, SHAPES, arrays, host, on, same


@st.composite
def indices(draw: Any, length: int) -> np.ndarray:
    """Returns indices of an axis, counted from both ends."""
    return draw(hnp.arrays("int64", draw(SHAPES), elements=st.integers(-length, length - 1)))


@given(data=st.data())
def test_take_counts_from_both_ends(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    length = x.shape[axis]
    at = data.draw(indices(length))
    whole = data.draw(indices(x.size))
    for name in INSTALLED:
        with on(name):
            wanted = np.take(x, at, axis)
            for given_at in (at, at % length, ops.convert_to_tensor(at), at.tolist()):
                if isinstance(given_at, list) and not at.size:
                    continue
                assert same(host(ops.take(x, given_at, axis)), wanted), name
            assert same(host(ops.take(x, whole)), np.take(x, whole)), name


@given(data=st.data())
def test_keys_select_the_elements_that_numpy_selects(data: st.DataObject) -> None:
    x = data.draw(arrays("int32"))
    key = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True, max_dims=5))
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.get_item(x, key)), np.asarray(x[key])), (name, key)


@given(data=st.data())
def test_negative_steps_agree_with_numpy(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    ends = st.one_of(st.none(), st.integers(-6, 6))
    steps = st.integers(-3, 3).filter(bool)
    key = tuple(slice(data.draw(ends), data.draw(ends), data.draw(steps)) for _ in range(x.ndim))
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.get_item(x, key)), x[key]), (name, key)
            back = tuple(slice(None, None, -1) for _ in range(x.ndim))
            assert same(host(ops.get_item(x, back)), host(ops.flip(x)))


@given(data=st.data())
def test_masks_agree_with_numpy(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    axes = data.draw(st.integers(1, x.ndim))
    mask = data.draw(arrays("bool", x.shape[:axes]))
    for name in INSTALLED:
        with on(name):
            for given_mask in (mask, ops.convert_to_tensor(mask)):
                assert same(host(ops.get_item(x, given_mask)), x[mask]), name
            found = ops.nonzero(mask)
            assert all(same(host(got), wanted) for got, wanted in zip(found, np.nonzero(mask), strict=True))
            assert int(host(ops.count_nonzero(mask))) == mask.sum()
            rest = np.expand_dims(mask, tuple(range(axes, x.ndim)))
            assert same(host(ops.where(rest, x, 0)), np.where(rest, x, np.int32(0)))


@given(data=st.data())
def test_take_reads_what_scatter_wrote(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    rows = data.draw(st.lists(st.integers(0, x.shape[0] - 1), unique=True, max_size=x.shape[0]))
    at = np.array(rows, np.int64)
    values = data.draw(arrays("int32", (len(rows), *x.shape[1:])))
    wanted = x.copy()
    wanted[at] = values
    for name in INSTALLED:
        with on(name):
            written = ops.scatter_update(x, at[:, None], values)
            assert same(host(written), wanted), name
            assert same(host(ops.take(written, at, 0)), values), name
            sums = host(ops.scatter(at[:, None], values, x.shape))
            assert same(sums, np.where(np.isin(np.arange(len(x)), at).reshape(-1, *[1] * (x.ndim - 1)), wanted, 0))


@given(data=st.data())
def test_slice_reads_what_slice_update_wrote(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    lengths = [data.draw(st.integers(0, n)) for n in x.shape]
    start = [data.draw(st.integers(0, n - m)) for n, m in zip(x.shape, lengths, strict=True)]
    values = data.draw(arrays("int32", tuple(lengths)))
    block = tuple(slice(a, a + n) for a, n in zip(start, lengths, strict=True))
    wanted = x.copy()
    wanted[block] = values
    for name in INSTALLED:
        with on(name):
            assert same(host(ops.slice(x, start, lengths)), x[block])
            written = ops.slice_update(x, start, values)
            assert same(host(written), wanted)
            assert same(host(ops.slice(written, start, lengths)), values)


@given(data=st.data())
def test_take_along_axis_agrees_with_numpy(data: st.DataObject) -> None:
    x = data.draw(arrays("int32", FULL_SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = x.shape[axis]
    at = data.draw(hnp.arrays("int64", x.shape, elements=st.integers(-n, n - 1)))
    for name in INSTALLED:
        with on(name):
            for given_at in (at, ops.convert_to_tensor(at)):
                assert same(host(ops.take_along_axis(x, given_at, axis)), np.take_along_axis(x, at, axis)), name


@given(data=st.data())
def test_argmax_inverts_one_hot_and_searchsorted_and_isin_agree_with_numpy(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    classes = data.draw(hnp.arrays("int64", SHAPES, elements=st.integers(0, count - 1)))
    ordered = np.sort(data.draw(arrays("float32", st.tuples(st.integers(0, 6)))))
    values = data.draw(arrays("float32"))
    side = data.draw(st.sampled_from(("left", "right")))
    for name in INSTALLED:
        with on(name):
            hot = ops.one_hot(classes, count)
            assert same(host(ops.argmax(hot, axis=-1)), classes) or not classes.size
            assert (host(ops.sum(hot, axis=-1)) == 1).all()
            assert same(
                host(ops.searchsorted(ordered, values, side)), np.asarray(np.searchsorted(ordered, values, side))
            )
            assert same(host(ops.isin(classes, [0, 2])), np.isin(classes, [0, 2]))
