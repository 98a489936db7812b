"""Views and writes mean what they mean in NumPy: on every backend, under gradients, from several threads."""

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS
from emberharmony.testing.rows import call_of
from emberharmony.testing.samples import all_samples

SAMPLES = {op: row for op, row in all_samples().items() if row.cases and not OPS[op].takes_callable}
SHARES = [sorted(SAMPLES)[i::4] for i in range(4)]
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda xp, x: x[1:],
    "row": lambda xp, x: x[0],
    "column": lambda xp, x: x[:, 1],
    "step": lambda xp, x: x[:, ::2],
    "None": lambda xp, x: x[None, ...],
    "T": lambda xp, x: x.T,
    "mT": lambda xp, x: x.mT,
    "reshape": lambda xp, x: xp.reshape(x, (-1,)),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=0),
    "squeeze": lambda xp, x: xp.squeeze(x[None, ...], axis=0),
    "unstack": lambda xp, x: xp.unstack(x)[1],
    "a view of a view": lambda xp, x: x.T[1:][:, 0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_and_its_array_see_the_writes_of_each_other(name: str, xp: Any) -> None:
    x, places = xp.asarray(np.zeros((2, 3), np.float32), copy=True), np.arange(6).reshape(2, 3)
    view, other = VIEWS[name](xp, x), x[:, :]
    chosen = np.asarray(VIEWS[name](xp, xp.asarray(places)))
    view[...] = 1.0
    wanted = np.isin(places, chosen).astype(float)
    assert x.tolist() == other.tolist() == wanted.tolist()
    x += 1.0
    assert view.tolist() == np.full(chosen.shape, 2.0).tolist()
    view *= 2.0
    assert x.tolist() == other.tolist() == (1 + 3 * wanted).tolist()


def test_an_element_is_no_view(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0])
    kept = x[0]
    x[0], x[1] = x[1], x[0]
    assert x.tolist() == [2.0, 1.0]
    assert float(kept) == 1.0
    kept += 5.0
    part = kept[...]
    part[()] = 7.0
    assert (float(kept), x.tolist()) == (7.0, [2.0, 1.0])


def test_what_is_computed_is_no_view(xp: Any) -> None:
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    for made in (+x, xp.asarray(x, copy=True), xp.flip(x), x[x > 0.0], x[[0, 1]], xp.roll(x, 1), xp.where(x > 0, x, x)):
        made[0] = 9.0
        made += 1.0
        assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("share", range(4))
def test_no_result_lies_in_the_memory_of_an_argument_or_of_another_result(share: int, xp: Any) -> None:
    for op in SHARES[share]:
        row = SAMPLES[op]
        call = call_of(row, "value", (*row.dtypes, *row.integers, "float32")[0], "", row.cases[0])
        arguments = [_arrays(xp, x) for x in call.args]
        keywords = {name: _arrays(xp, x) for name, x in call.kwargs.items()}
        function = xp._kit.plain_function(op)
        before = [np.array(x) for x in _found(xp, (arguments, keywords))]
        others = _found(xp, function(*arguments, **keywords))
        wanted = [np.array(x) for x in others]
        for result in _found(xp, function(*arguments, **keywords)):
            if OPS[op].facts.view or not result.size:
                continue
            result[...] = xp.zeros((), dtype=result.dtype)
        given = _found(xp, (arguments, keywords))
        assert all(np.array_equal(a, x, equal_nan=True) for a, x in zip(before, given, strict=True)), op
        same = (np.array_equal(a, x, equal_nan=a.dtype.kind in "fc") for a, x in zip(wanted, others, strict=True))
        assert all(same) or "empty" in op, op


def _arrays(xp: Any, given: Any) -> Any:
    if isinstance(given, np.ndarray):
        return xp.asarray(given, copy=True)
    if isinstance(given, (list, tuple)) and any(isinstance(x, np.ndarray) for x in given):
        return type(given)(_arrays(xp, x) for x in given)
    return given


def _found(xp: Any, result: Any) -> list[Any]:
    if isinstance(result, xp.Array):
        return [result]
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else ()
    return [x for part in parts for x in _found(xp, part)]


def test_a_write_into_repeated_elements_is_refused(xp: Any) -> None:
    row = xp.asarray([1.0, 2.0])
    wide = xp.broadcast_to(row, (3, 2))
    with pytest.raises((ValueError, RuntimeError)):
        wide[...] = 1.0
    row[0] = 5.0
    assert wide[2].tolist() == [5.0, 2.0]


def test_a_tree_of_arrays_is_written_to_without_changing_the_first(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0])
    leaves, structure = ops.tree_flatten({"x": x})
    made = ops.tree_unflatten(structure, leaves)["x"]
    part = made[1:]
    part[0] = 9.0
    made[0] = 8.0
    made += 1.0
    assert (x.tolist(), made.tolist(), part.tolist()) == ([1.0, 2.0], [9.0, 10.0], [10.0])


def test_views_that_nobody_holds_are_forgotten(xp: Any) -> None:
    x = xp.zeros(4)
    for _ in range(300):
        _ = x[1:]
    gc.collect()
    assert len(x._links.views) < 100


def test_an_element_of_a_view_keeps_its_value_while_the_array_is_written_to(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0, 3.0])
    part = x[1:]
    element, other = part[1], xp.reshape(x, (1, 3))[0, 2]
    x[2] = 9.0
    assert (part.tolist(), float(element), float(other)) == ([2.0, 9.0], 3.0, 3.0)
    element += 1.0
    assert (x.tolist(), float(element)) == ([1.0, 2.0, 9.0], 4.0)


def test_a_key_that_the_library_does_not_take_is_written_too(xp: Any) -> None:
    x, wanted = xp.asarray(np.zeros((3, 2), np.float32), copy=True), np.zeros((3, 2), np.float32)
    part = x[1:]
    x[::-1, 0] = xp.asarray([1.0, 2.0, 3.0])
    wanted[::-1, 0] = [1.0, 2.0, 3.0]
    assert x.tolist() == wanted.tolist()
    assert part.tolist() == wanted[1:].tolist()
    with pytest.raises(IndexError):
        x[5] = 1.0


class Program:
    """A random program of views and writes, which is linear in what it starts from."""

    def __init__(self, seed: int, steps: int = 12) -> None:
        self.seed, self.steps = seed, steps

    def __call__(self, xp: Any, x: Any) -> Any:
        """Returns the weighted sum of the arrays that the program made."""
        random = np.random.default_rng(self.seed)
        pool = [x + 0.0]
        for _ in range(self.steps):
            chosen = pool[random.integers(len(pool))]
            if not chosen.ndim:
                continue
            self._step(xp, random, pool, chosen)
        total = xp.sum(pool[0]) * 0.0
        for array in pool:
            weights = np.cos(np.arange(array.size) + 1.0).reshape(array.shape)
            total = total + xp.sum(array * xp.asarray(weights))
        return total

    @staticmethod
    def _step(xp: Any, random: np.random.Generator, pool: list[Any], chosen: Any) -> None:
        length = chosen.shape[0]
        start = int(random.integers(length))
        match random.integers(8):
            case 0:
                pool.append(chosen[start:])
            case 1:
                pool.append(chosen[start])
            case 2 if chosen.ndim == 2:
                pool.append(chosen.T)
            case 3 if chosen.ndim == 2:
                pool.append(chosen[:, ::2])
            case 4:
                chosen[start:] = 2.0
            case 5:
                chosen[start] = chosen[0] * 3.0
            case 6:
                chosen += 1.0
            case _:
                chosen *= 0.5


@pytest.mark.parametrize("seed", range(12))
def test_a_program_of_views_and_writes_does_what_numpy_does(seed: int, xp: Any) -> None:
    start = np.arange(12, dtype=np.float64).reshape(3, 4)
    program = Program(seed)
    x = xp.asarray(start, copy=True)
    assert np.allclose(float(program(xp, x)), program(np, start.copy()), rtol=1e-12)
    assert x.tolist() == start.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_program_of_views_and_writes_has_its_gradient(seed: int, xp: Any) -> None:
    start = np.arange(12, dtype=np.float64).reshape(3, 4)
    program = Program(seed)
    base = program(np, start.copy())
    wanted = [program(np, start + np.eye(12)[i].reshape(3, 4)) - base for i in range(12)]
    found = xp.grad(lambda x: program(xp, x))(xp.asarray(start))
    assert np.allclose(np.asarray(found).reshape(-1), wanted, atol=1e-9)


def test_a_constant_takes_values_that_are_differentiated(xp: Any) -> None:
    def loss(x: Any) -> Any:
        out = xp.zeros(3, dtype=x.dtype)
        tail = out[1:]
        out[0] = x[0] * 2.0
        tail[0] = x[1] * 3.0
        return xp.sum(out * out) + tail[0]

    assert np.allclose(np.asarray(xp.grad(loss)(xp.asarray([1.0, 2.0]))), [8.0, 39.0])


@pytest.mark.parametrize("written", [lambda xp: xp.zeros(1), lambda xp: 0.0], ids=["array", "number"])
def test_a_result_that_its_derivative_needs_may_be_written_to(written: Callable[[Any], Any], xp: Any) -> None:
    def loss(x: Any) -> Any:
        out = xp.exp(x)
        out[0:1] = written(xp)
        return xp.sum(out)

    assert np.allclose(np.asarray(xp.grad(loss)(xp.asarray([1.0, 0.0]))), [0.0, 1.0])


def test_threads_lose_no_write(xp: Any) -> None:
    total, threads, slices = xp.zeros((32, 2)), 4, 8

    def work(first: int) -> None:
        for i in range(first * slices, (first + 1) * slices):
            total[i, :] = xp.ones(2) * float(i)
            total[0] += 1.0

    for _ in range(3):
        running = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert total[1:, 0].tolist() == [float(i) for i in range(1, 32)]


def test_a_view_that_is_read_while_another_thread_writes_is_read_again(xp: Any) -> None:
    x, memory = xp.zeros((2, 2)), xp._kit.memory
    source = x._v
    view = xp._kit.lift(memory.read_view(source, slice(0, 1)))
    x += 1.0  # before the view is linked
    memory.link(view, x, slice(0, 1), source)
    assert view.tolist() == [[1.0, 1.0]]
    view[0] = 2.0
    assert x.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_threads_that_write_views_back_lose_no_write_of_others(xp: Any) -> None:
    interval, count = sys.getswitchinterval(), 32
    sys.setswitchinterval(1e-5)

    def work(number: int) -> None:
        for i in range(count):
            if i % 8 == number:
                total[i] = float(i + 1)
            total[i : i + 1, :] += 0.0  # the row of another thread, as it is

    try:
        for _ in range(3):
            total = xp.zeros((count, 2))
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert total[:, 0].tolist() == [i + 1.0 for i in range(count)]
    finally:
        sys.setswitchinterval(interval)


def test_a_thread_reads_what_another_has_not_computed(xp: Any) -> None:
    made, read = xp.exp(xp.zeros(3)) + 1.0, []
    other: list[Any] = []

    def work() -> None:
        read.append((made * 2.0).tolist())
        other.append(xp.ones(3) * 3.0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert read == [[4.0, 4.0, 4.0]]
    assert (other[0] + made).tolist() == [5.0, 5.0, 5.0]


def test_threads_read_the_same_arrays_at_once(xp: Any) -> None:
    made = [xp.exp(xp.ones(3) * 0.0) + float(i) for i in range(100)]
    read: list[Any] = []
    threads = [threading.Thread(target=lambda: read.append([x.tolist() for x in made])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [[[i + 1.0] * 3 for i in range(100)]] * 4


@pytest.mark.parametrize("key", [3, -4, (0, 2), (slice(None), -3), (0, 0, 0)], ids=str)
def test_a_write_out_of_bounds_is_refused(key: Any, xp: Any) -> None:
    x = xp.zeros((3, 2))
    for given in 1.0, xp.ones(1):
        with pytest.raises(IndexError):
            x[key] = given
    assert not bool(xp.any(x))


@pytest.mark.parametrize(
    "key", [1, -1, slice(1, None), slice(None, None, 2), (0, slice(None)), (slice(None), 1), (..., None)], ids=str
)
def test_a_write_has_the_shape_that_numpy_gives_it(key: Any, xp: Any) -> None:
    for given in (2.5, np.full(1, 3.0, np.float32), np.ones((2, 3, 1), np.float32), np.ones((7, 2), np.float32)):
        x, wanted = xp.zeros((3, 2), dtype=xp.float32), np.zeros((3, 2), np.float32)
        new = given if isinstance(given, float) else xp.asarray(given)
        try:
            wanted[key] = given
        except ValueError:
            with pytest.raises(ValueError):
                x[key] = new
        else:
            x[key] = new
        assert np.array_equal(np.asarray(x), wanted)


def test_put_along_axis_writes_into_the_array_as_numpy_does(xp: Any) -> None:
    x = xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    row = x[0, :]
    assert xp.put_along_axis(x, xp.asarray([[1], [2]]), 9.0, axis=1) is None
    assert x.tolist() == [[1.0, 9.0, 3.0], [4.0, 5.0, 9.0]]
    assert row.tolist() == [1.0, 9.0, 3.0]

    def loss(a: Any) -> Any:
        y = a * 2.0
        xp.put_along_axis(y, xp.asarray([0]), a[1:2] * 3.0)
        return xp.sum(y)

    assert xp.grad(loss)(xp.asarray([1.0, 2.0])).tolist() == [0.0, 5.0]
    with pytest.raises(TypeError, match="writes into an array"):
        xp.put_along_axis([1.0], xp.asarray([0]), 2.0)


def test_a_view_in_reverse_order_sees_writes(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0, 3.0], copy=True)
    back, inner = x[::-1], x[1:][::-1]
    x[0] = 9.0
    assert (back.tolist(), inner.tolist()) == ([3.0, 2.0, 9.0], [3.0, 2.0])
    back[0] = 7.0
    x[1] = 5.0
    assert (x.tolist(), back.tolist(), inner.tolist()) == ([9.0, 5.0, 7.0], [7.0, 5.0, 9.0], [7.0, 5.0])
