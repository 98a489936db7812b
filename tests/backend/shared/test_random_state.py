"""The states of NumPy's generators as text and integers: round trips through JSON, and damaged states."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony.backend.shared.random import Generator
from emberharmony.backend.shared.random_state import StateReader, generator_state, restored_generator
from emberharmony.core.dtypes import float64
from emberharmony.errors import ArgumentError, ArgumentTypeError

DRAWS = {
    "word": lambda rng: rng.integers(0, 2**63),
    "half": lambda rng: rng.integers(0, 2**31, dtype=np.uint32),
    "single": lambda rng: rng.random(3, np.float32),
    "double": lambda rng: rng.random(2),
    "normal": lambda rng: rng.standard_normal(5),
    "gamma": lambda rng: rng.gamma(2.0, size=3),
    "permutation": lambda rng: rng.permutation(7),
}
SEEDS = st.integers(0, 2**200)


@given(st.sampled_from(["Philox", "PCG64"]), SEEDS, st.lists(st.sampled_from(sorted(DRAWS)), max_size=9))
def test_a_restored_generator_draws_the_same(kind: str, seed: int, before: list[str]) -> None:
    source = np.random.Generator(getattr(np.random, kind)(seed))
    for name in before:
        DRAWS[name](source)
    state = json.loads(json.dumps(generator_state(source)))
    copy = restored_generator(StateReader("it", state), kind)
    assert generator_state(copy) == state
    for name in ("half", *before, *DRAWS):
        assert np.array_equal(DRAWS[name](copy), DRAWS[name](source)), name


@given(SEEDS, st.lists(st.integers(0, 3), max_size=3), st.integers(0, 5))
def test_a_loaded_generator_draws_and_splits_the_same(seed: int, descent: list[int], drawn: int) -> None:
    generator = Generator(seed)
    for place in descent:
        generator = generator.split(place + 1)[place]
    generator.uniform(drawn)
    state = json.loads(json.dumps(generator.state_dict()))
    copy = Generator(0)
    copy.split(3)
    copy.load_state_dict(state)
    assert copy.state_dict() == state
    pairs = [(copy, generator), *zip(copy.split(3), generator.split(3), strict=True)]
    for ours, theirs in pairs:
        assert ours.normal(4, float64).tolist() == theirs.normal(4, float64).tolist()
        assert ours.truncated_normal(4).tolist() == theirs.truncated_normal(4).tolist()
        assert ours.permutation(5).tolist() == theirs.permutation(5).tolist()


DAMAGE: dict[str, list[Any]] = {
    "version": [None, 0, 2, "1", True],
    "kind": ["PCG64", None],
    "counter": ["", "00", 3, "x" * 64, "A" * 64],
    "key": [None, "0" * 33],
    "buffer": [[1, 2, 3, 4]],
    "position": [-1, 5, 1.0, None],
    "spare": [-1, 2**32, "a"],
    "entropy": ["", "-1", 5, None],
    "spawn_key": [[-1], "1", [1.5], None],
    "spawned": [-1, 2**32, None],
}


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_a_damaged_state_changes_nothing(name: str) -> None:
    generator = Generator(3)
    before = generator.state_dict()
    state = Generator(4).state_dict()
    assert set(state) == set(DAMAGE)
    for value in DAMAGE[name]:
        with pytest.raises(ArgumentError, match=f"the state of a Generator .*{name}"):
            generator.load_state_dict({**state, name: value})
    del state[name]
    with pytest.raises(ArgumentError, match=f"is damaged: expected .* under '{name}', got nothing"):
        generator.load_state_dict(state)
    assert generator.state_dict() == before


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"has version 7, but this EmberHarmony reads versions up to 1; update it"):
        Generator(0).load_state_dict({"version": 7})
    with pytest.raises(ArgumentTypeError, match=r"the state of a Generator is a dict, not \[\]"):
        Generator(0).load_state_dict([])  # type: ignore[arg-type]
