"""Threads that write into one array lose no update, as those of joblib in scikit-learn; they read what is lazy."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

THREADS, SLICES = 8, 64
rounds_of_some = pytest.mark.parametrize("rounds", [4, pytest.param(200, marks=pytest.mark.slow)])


def in_threads(work: Callable[[int], None]) -> None:
    """Runs a function in threads, with the number of each."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@rounds_of_some
def test_threads_that_write_slices_lose_none(rounds: int, xp: Any) -> None:
    rows = [xp.full(4, float(i)) for i in range(THREADS * SLICES)]
    for _ in range(rounds):
        total = xp.zeros((THREADS * SLICES, 4))

        def work(number: int, total: Any = total) -> None:
            for i in range(number, THREADS * SLICES, THREADS):
                total[i : i + 1, :] = rows[i]

        in_threads(work)
        assert (np.asarray(total) == np.arange(THREADS * SLICES)[:, None]).all()


@rounds_of_some
def test_threads_that_add_to_slices_lose_nothing(rounds: int, xp: Any) -> None:
    one = xp.ones(1)
    for _ in range(rounds):
        total = xp.zeros(THREADS)

        def work(number: int, total: Any = total) -> None:
            for i in range(SLICES):
                total[(number + i) % THREADS : (number + i) % THREADS + 1] += one
                total[number : number + 1] += 1.0

        in_threads(work)
        assert total.tolist() == [2.0 * SLICES] * THREADS


def test_threads_read_a_thousand_arrays_that_are_not_computed(xp: Any) -> None:
    made, read = [xp.exp(xp.zeros(3)) + float(i) for i in range(1000)], []
    in_threads(lambda number: read.append([float(x[number % 3]) for x in made]))
    assert read == [[i + 1.0 for i in range(1000)]] * THREADS
