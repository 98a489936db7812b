"""The portable random generator."""

import pickle

import numpy as np
import pytest

from emberharmony.backend.shared import random
from emberharmony.core.state.commits import commit
from emberharmony.errors import ArgumentError


def test_equal_seeds_give_equal_draws() -> None:
    assert random.Generator(3).normal(4).tolist() == random.Generator(3).normal(4).tolist()
    assert random.Generator(3).normal(4).tolist() != random.Generator(4).normal(4).tolist()


def test_an_unpickled_generator_continues_where_it_was() -> None:
    generator = random.Generator(0)
    generator.uniform(3)
    copy = pickle.loads(pickle.dumps(generator))
    assert copy.uniform(3).tolist() == generator.uniform(3).tolist()


def test_children_of_a_generator_are_independent_and_reproducible() -> None:
    first, second = random.Generator(0).split(), random.Generator(0).split()
    assert [child.uniform(2).tolist() for child in first] == [child.uniform(2).tolist() for child in second]
    assert first[0].uniform(2).tolist() != first[1].uniform(2).tolist()


def test_truncated_normal_draws_stay_within_two_standard_deviations() -> None:
    values = random.Generator(0).truncated_normal(10_000)
    assert np.abs(values).max() <= 2
    assert values.std() == pytest.approx(0.88, abs=0.02)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "a"])
def test_a_seed_that_is_not_a_natural_number_is_refused(seed: object) -> None:
    with pytest.raises(ArgumentError):
        random.checked_seed(seed)


def test_a_clone_draws_the_same() -> None:
    source = np.random.Generator(np.random.Philox(1))
    copy = random.clone_generator(source)
    assert copy.random(3).tolist() == source.random(3).tolist()


def test_rewinding_goes_back_to_an_earlier_draw() -> None:
    generator = random.Generator(3)
    generator._rng.integers(0, 9, 3)
    state, back = generator.state_dict(), generator.rewinding_steps()
    generator.split(2)
    generator._rng.random(7)
    commit(back)
    assert generator.state_dict() == state


def test_a_generator_is_shown_with_its_seed_and_what_was_drawn() -> None:
    generator = random.Generator(5)
    assert repr(generator) == "<Generator of seed 5, 0 words of bits drawn>"
    for words in (1, 3, 4, 7):
        before = repr(generator)
        generator.integers((words,), 0, 2**63)
        assert repr(generator) != before
    assert repr(generator) == repr(generator) == "<Generator of seed 5, 15 words of bits drawn>"
    assert repr(generator.split()[1].split()[0]) == "<Generator of seed 5, split 1, split 0, 0 words of bits drawn>"
