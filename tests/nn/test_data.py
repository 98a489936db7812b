"""Batches: what an epoch has, and how it is continued, on every backend."""

import functools
import itertools
import json
import operator
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.core.state.commits import commit
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError


def made(seed: int = 0, **options: Any) -> nn.data.Batches:
    x = np.arange(20, dtype="float32").reshape(10, 2)
    options = {"batch_size": 3, "rng": ops.random.Generator(seed), **options}
    return nn.data.batches(x, np.arange(10), **options)


def rows(batches: Any) -> list[list[int]]:
    return [ops.to_numpy(y).tolist() for _, y in batches]


def test_an_epoch_has_each_row_once_and_pairs_stay_together(backend: str) -> None:
    batches = made()
    assert len(batches) == 4
    first = list(batches)
    assert [tuple(x.shape) for x, _ in first] == [(3, 2), (3, 2), (3, 2), (1, 2)]
    assert sorted(functools.reduce(operator.iadd, rows(first), [])) == list(range(10))
    for x, y in first:
        assert ops.is_tensor(x)
        np.testing.assert_array_equal(ops.to_numpy(x)[:, 0], 2 * ops.to_numpy(y))
    assert rows(batches) != rows(first)
    assert batches.epoch == 2
    assert rows(made(shuffle=False, rng=None))[0] == [0, 1, 2]
    assert len(list(made(drop_last=True))) == 3


def test_the_order_is_the_same_on_every_backend_and_follows_a_switch(backend: str) -> None:
    with ops.use_backend("numpy"):
        right = rows(made())
    assert rows(made()) == right
    found = []
    iterator = iter(made())
    for name in itertools.islice(itertools.cycle(ops.available_backends()), 4):
        with ops.use_backend(name):
            x, y = next(iterator)
            assert ops.is_tensor(x)
            found.append(ops.to_numpy(y).tolist())
    assert found == right


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 6])
def test_a_saved_position_is_continued(backend: str, taken: int) -> None:
    batches = made()
    endless = batches.forever()
    for _ in range(taken):
        next(endless)
    state = json.loads(json.dumps(batches.state_dict()))
    right = rows(itertools.islice(endless, 7))
    other = made(seed=9)
    other.load_state_dict(state)
    assert rows(itertools.islice(other.forever(), 7)) == right


def test_a_break_begins_a_new_epoch(backend: str) -> None:
    batches = made(shuffle=False, rng=None)
    next(iter(batches))
    assert rows(batches)[0] == [0, 1, 2]


def test_wrong_arguments_and_states_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"same length above 0, got \[\(2,\), \(3,\)\]"):
        nn.data.batches([1, 2], [1, 2, 3], batch_size=1)
    with pytest.raises(ShapeError, match="above 0"):
        nn.data.batches(np.zeros((0, 2)), batch_size=1)
    with pytest.raises(ArgumentError, match="at least one array"):
        nn.data.batches(batch_size=1)
    with pytest.raises(ArgumentError, match="batch_size must be at least 1"):
        nn.data.batches([1], batch_size=0)
    with pytest.raises(ArgumentError, match="no batch of 3 is full"):
        nn.data.batches([1], batch_size=3, drop_last=True)
    batches = made()
    with pytest.raises(ArgumentTypeError, match="what state_dict"):
        batches.load_state_dict([1])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="the state has batch_size=2, these batches 3"):
        batches.load_state_dict(made(batch_size=2).state_dict())
    with pytest.raises(ArgumentError, match="shuffle=True"):
        batches.load_state_dict(made(shuffle=False, rng=None).state_dict())
    with pytest.raises(ArgumentError, match="wrong epoch"):
        batches.load_state_dict({**made().state_dict(), "position": 9})
    assert batches.epoch == 0


def test_a_loaded_state_leaves_a_generator_that_others_share_in_its_place() -> None:
    with ops.use_backend("numpy"):
        one, other = (ops.random.Generator(seed) for seed in (1, 2))
        batches, loaded = (nn.data.batches(ops.arange(6), batch_size=2, rng=rng) for rng in (one, other))
        next(iter(batches))
        loaded.load_state_dict(batches.state_dict())
        assert other.state_dict() == one.state_dict()
        assert (ops.random.normal(3, generator=other) == ops.random.normal(3, generator=one)).all()
        left = [x.tolist() for x in loaded]
        assert len(left) == 2
        assert [x.tolist() for x in loaded] == [x.tolist() for x in batches]


def test_rewinding_goes_back_to_a_batch() -> None:
    with ops.use_backend("numpy"):
        batches = nn.data.batches(ops.arange(6), batch_size=2, rng=ops.random.Generator(1))
        for skipped in range(5):
            state, back = batches.state_dict(), batches.rewinding_steps()
            stream = batches.forever()
            for _ in range(skipped):
                next(stream)
            commit(back)
            assert batches.state_dict() == state
