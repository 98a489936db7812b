"""A commit runs its steps in order, and conditional steps only while their condition holds."""

import os
import threading
from operator import attrgetter

import pytest

from emberharmony.core.state.commits import assignment, commit, steps_if_unchanged


class State:
    def __init__(self) -> None:
        self.owner: object = None
        self.x = self.y = 0


def test_steps_run_in_order_until_one_raises() -> None:
    state = State()
    with pytest.raises(FileNotFoundError):
        commit([assignment(state, "x", 1)], [(os.unlink, "/nowhere/at/all"), assignment(state, "y", 1)])
    assert (state.x, state.y) == (1, 0)


def test_a_condition_is_checked_before_each_step() -> None:
    state, mine = State(), object()
    commit(steps_if_unchanged(state, "owner", mine, [assignment(state, "x", 1)]))
    assert state.x == 0
    steps = [assignment(state, "x", 1), assignment(state, "owner", None), assignment(state, "y", 1)]
    commit([assignment(state, "owner", mine)], steps_if_unchanged(state, "owner", mine, steps))
    assert (state.x, state.y) == (1, 0)


def test_no_other_thread_sees_a_half_finished_commit() -> None:
    state, torn = State(), []
    both = attrgetter("x", "y")  # one call of a C function, so that the read cannot be interrupted either
    done = threading.Event()

    def write(value: int) -> None:
        for _ in range(3000):
            commit([assignment(state, "x", value), assignment(state, "y", value)])

    def read() -> None:
        while not done.is_set():
            x, y = both(state)
            if x != y:
                torn.append((x, y))

    writers = [threading.Thread(target=write, args=(value,)) for value in range(4)]
    reader = threading.Thread(target=read)
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert not torn
