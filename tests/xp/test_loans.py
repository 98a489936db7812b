"""What NumPy writes into `np.asarray(x)` is written into the array, on every backend, and the other way round."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony.xp import loans


def test_numpy_and_an_array_see_the_writes_of_each_other(xp: Any) -> None:
    x = xp.asarray(np.zeros(4), copy=True)
    before, element = x[1:], x[0]
    memory = np.asarray(x)
    after, table = x[::2], xp.reshape(x, (2, 2))
    for number in (1.0, 2.0):
        memory[2] = number
        assert (x.tolist(), before.tolist()) == ([0.0, 0.0, number, 0.0], [0.0, number, 0.0])
        assert (after.tolist(), table.tolist()) == ([0.0, number], [[0.0, 0.0], [number, 0.0]])
    x[0] = 3.0
    before[0] = 4.0
    table[1, 1] = 5.0
    x += 1.0
    assert memory.tolist() == [4.0, 5.0, 3.0, 6.0]
    assert float(element) == 0.0
    assert (x.shape, x.dtype, len(x)) == ((4,), xp.float64, 4)


def test_a_result_keeps_its_values_when_numpy_writes(xp: Any) -> None:
    x = xp.zeros(3)
    memory = np.asarray(x)
    doubled, copied = x * 2.0, x.copy()
    memory[:] = 1.0
    assert (doubled.tolist(), copied.tolist(), (x + doubled).tolist()) == ([0.0] * 3, [0.0] * 3, [1.0] * 3)


def test_the_tensor_is_the_memory_again_when_numpy_has_given_it_back(xp: Any, backend: str) -> None:
    x = xp.zeros(4)
    view = np.asarray(x)[1:].reshape(3, 1)
    assert memoryview(view).readonly is False
    view[:] = 1.0
    x.sum()
    view[0] = 2.0
    assert x.tolist() == [0.0, 2.0, 1.0, 1.0]
    del view
    assert x.tolist() == [0.0, 2.0, 1.0, 1.0]
    assert xp._kit.is_native(x._v), backend
    x[0] = 3.0
    assert np.asarray(x).tolist() == [3.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
def test_each_dtype_comes_back(dtype: str, shape: tuple[int, ...], xp: Any) -> None:
    x = xp.zeros(shape, dtype=getattr(xp, dtype))
    memory = np.asarray(x)
    memory[...] = 1
    assert (x.dtype, x.shape) == (getattr(xp, dtype), shape)
    del memory
    assert (x.dtype, bool(xp.all(xp.astype(x, xp.bool)))) == (getattr(xp, dtype), True)


def test_numpy_writes_into_a_view(xp: Any) -> None:
    x = xp.zeros((2, 3))
    memory = np.asarray(x[1:][0, ::2])
    memory[1] = 5.0
    assert x.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]]
    x[1] = 1.0
    assert memory.tolist() == [1.0, 1.0]


VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "T": lambda xp, x: x.T,
    "row of T": lambda xp, x: x.T[1],
    "T of rows": lambda xp, x: x[1:].T,
    "reshape": lambda xp, x: xp.reshape(x, (3, 2)),
    "flip": lambda xp, x: xp.flip(x, axis=1),
    "scalar": lambda xp, x: xp.reshape(x[:1, :1], ()),
    "scalar of a scalar": lambda xp, x: xp.reshape(x[:1, :1], ())[...],
    "expand_dims": lambda xp, x: xp.expand_dims(x[:, 1], axis=0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_numpy_writes_into_the_view_of_a_function(name: str, xp: Any) -> None:
    reference, x = np.arange(6.0).reshape(2, 3), xp.asarray(np.arange(6.0).reshape(2, 3), copy=True)
    view, wanted = VIEWS[name](xp, x), VIEWS[name](np, reference)
    memory = np.asarray(view)
    assert (memory.shape, memory.tolist()) == (wanted.shape, wanted.tolist())
    if np.shares_memory(memory, np.asarray(x)):
        memory[...] += 10.0
        wanted[...] += 10.0
        assert (x.tolist(), view.tolist()) == (reference.tolist(), wanted.tolist())
    else:  # PyTorch copies for `flip`
        assert name == "flip"


def test_a_view_without_axes_is_an_array_of_numpy(xp: Any) -> None:
    total = xp.sum(xp.ones(3))
    for view in (total[()], total[...], xp.ones(3)[1], xp.ones((2, 2))[..., 0, 1]):
        memory = np.asarray(view)
        assert (type(memory), memory.shape) == (np.ndarray, ())
        memory[...] = 7.0
        assert float(view) == 7.0


def test_numpy_cannot_write_into_repeated_elements(xp: Any) -> None:
    memory = np.asarray(xp.broadcast_to(xp.ones(2), (3, 2)))
    assert memory.tolist() == [[1.0, 1.0]] * 3
    assert xp._kit.memory.shares or not memory.flags.writeable
    assert np.asarray(xp.reshape(xp.zeros((0, 2)), (2, 0))).shape == (2, 0)


@pytest.mark.parametrize("positions", [[0, 1, 3], [[0, 1], [1, 3]], [2, 2]])
def test_elements_at_unequal_distances_have_no_view(positions: Any) -> None:
    assert loans.elements_at(np.arange(6.0), np.asarray(positions)) is None


@pytest.mark.parametrize("seed", range(12))
def test_a_program_that_writes_through_numpy_does_what_numpy_does(seed: int, xp: Any) -> None:
    def run(space: Any) -> list[Any]:
        random = np.random.default_rng(seed)
        roots = [space.asarray(np.arange(6.0)), space.asarray(np.ones(6))]
        pool, memories = list(roots), []
        for _ in range(25):
            chosen, root = (some[int(random.integers(len(some)))] for some in (pool, roots))
            kind, place, number = random.integers(8), int(random.integers(3)), float(random.integers(9))
            if kind == 0:
                pool.append(chosen[:: place + 1])
            elif kind == 1:
                pool.append(chosen[:2])
            elif kind == 2:
                chosen[place % chosen.shape[0]] = number
            elif kind == 3:
                chosen *= 0.5
            elif kind == 4:
                roots.append(root + number)
                pool.append(roots[-1])
            elif kind == 5:
                memories.append(np.asarray(root if number < 4 else chosen))
            elif kind == 6 and memories:
                memories[place % len(memories)][place % 2 :] += number
            elif memories:
                memories.pop(place % len(memories))
        return [each.tolist() for each in (*pool, *memories)]

    assert run(xp) == run(np)


def test_threads_read_an_array_that_numpy_gives_back(xp: Any) -> None:
    read: list[Any] = []
    for _ in range(20):
        x = xp.zeros(3)
        memory = np.asarray(x)
        memory[:] = 1.0
        threads = [threading.Thread(target=lambda x=x: read.append((x + 1.0).tolist())) for _ in range(4)]
        for thread in threads:
            thread.start()
        del memory
        for thread in threads:
            thread.join()
    assert read == [[2.0] * 3] * 80
