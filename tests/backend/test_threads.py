"""Threads that share tensors, cells and models, as data loaders, joblib and servers make them: on every backend."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, nn, ops, optim
from emberharmony.errors import BackendExecutionError

ROUNDS = 30


def in_thread(function: Callable[[], Any]) -> Any:
    """Returns what a function returns in another thread, or raises what it raises."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def batch(i: int) -> tuple[Any, Any]:
    x = ops.random.uniform((8, 4), generator=ops.random.Generator(i))
    return ops.multiply(x, 2.0), ops.sum(x, axis=-1, keepdims=True)


def batches_by_thread(count: int, evaluate: bool) -> Any:
    """Yields batches that another thread makes meanwhile, as a data loader with one worker does."""
    made: queue.Queue[Any] = queue.Queue(2)

    def work() -> None:
        for i in range(count):
            both = batch(i)
            if evaluate:
                ops.eval(both)
            made.put(both)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(count):
        yield made.get(timeout=30)
    thread.join()


def train(batches: Any) -> list[float]:
    """Returns the losses of a training of a small model."""
    model = nn.Linear(4, 1, rng=ops.random.Generator(0))
    optimizer = optim.SGD(model, lr=0.1)
    losses = []
    for x, y in batches:
        loss = ops.backward(lambda x=x, y=y: ops.mean(ops.square(model(x) - y)), model)
        optimizer.step()
        losses.append(float(ops.to_numpy(loss)))
    return losses


def test_a_training_takes_batches_that_another_thread_makes(backend: str) -> None:
    alone = train(batch(i) for i in range(ROUNDS))
    assert train(batches_by_thread(ROUNDS, evaluate=True)) == alone
    assert alone[-1] < alone[0] / 2


def test_a_batch_that_is_not_computed_is_refused_with_the_way_out(backend: str) -> None:
    x, _ = in_thread(lambda: batch(0))
    if backend != "mlx":
        assert ops.to_numpy(x).shape == (8, 4)
        return
    with pytest.raises(
        BackendExecutionError, match=r"only in the thread that made it: call ops\.eval\(x\) there first"
    ):
        ops.to_numpy(ops.add(x, 1.0))
    y, _ = in_thread(lambda: evaluated(batch(0)))
    assert np.array_equal(ops.to_numpy(ops.add(y, 1.0)), ops.to_numpy(batch(0)[0]) + 1)


def evaluated(tree: Any) -> Any:
    ops.eval(tree)
    return tree


def test_many_threads_compute_with_one_model(backend: str) -> None:
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 2))
    model.eval()
    inputs = [ops.to_numpy(batch(i)[0]) for i in range(8)]
    expected = [ops.to_numpy(model(x)) for x in inputs]

    def serve(i: int) -> bool:
        return bool(np.array_equal(ops.to_numpy(model(inputs[i % 8])), expected[i % 8]))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(serve, range(8 * ROUNDS)))


def test_threads_take_gradients_at_once(backend: str) -> None:
    w = Parameter([1.0, 2.0, 3.0])
    ops.eval(w.value)

    def gradient(i: int) -> list[float]:
        found: list[float] = ops.to_numpy(ops.grad(lambda v: ops.sum(ops.multiply(ops.square(v), i)))(w)).tolist()
        return found

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(gradient, range(ROUNDS))) == [[2.0 * i, 4.0 * i, 6.0 * i] for i in range(ROUNDS)]


def test_threads_write_one_cell_and_each_reads_a_whole_value(backend: str) -> None:
    cell = Buffer(ops.zeros((64,)))
    ops.eval(cell.value)
    torn: list[Any] = []

    def work(i: int) -> None:
        for _ in range(ROUNDS):
            value = ops.full((64,), float(i))
            ops.eval(value)
            cell.value = value
            found = set(ops.to_numpy(cell.value).tolist())
            if len(found) != 1:
                torn.append(found)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert torn == []


def test_a_cell_is_read_on_two_backends_at_once(backend: str) -> None:
    cell = Parameter(np.arange(256.0, dtype=np.float32))

    def read(i: int) -> float:
        with ops.use_backend("numpy" if i % 2 else backend):  # type: ignore[arg-type]
            return float(ops.to_numpy(ops.sum(cell)))

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(read, range(4 * ROUNDS))) == {256.0 * 255 / 2}


@pytest.mark.parametrize("prefer", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_joblib_computes_with_ops(backend: str, prefer: str) -> None:
    joblib = pytest.importorskip("joblib")
    jobs = (joblib.delayed(norm)(backend, i) for i in range(ROUNDS))
    found = joblib.Parallel(n_jobs=4, prefer=prefer)(jobs)
    assert found == [64.0 * i for i in range(ROUNDS)]


def norm(backend: str, i: int) -> float:
    with ops.use_backend(backend):  # type: ignore[arg-type]
        x = ops.full((64, 64), float(i))
        return float(ops.to_numpy(ops.sqrt(ops.sum(ops.square(ops.divide(ops.matmul(x, ops.ones((64, 64))), 64.0))))))
