"""Actions that draw random numbers or seed them, to interrupt."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from tests.interruptions.cases import INSTALLED, Case, case, cases_of


def drawn() -> list[float]:
    """Returns the next numbers of both default streams: that of the backend and that of the host."""
    return [float(x) for x in (*ops.to_numpy(ops.random.normal((3,))), *ops.to_numpy(ops.random.gamma((2,), 2.0)))]


@cases_of(INSTALLED)
def seed(path: Path, patch: pytest.MonkeyPatch, name: str) -> Case:
    ops.set_backend(name)

    def prepare() -> None:
        ops.random.seed(1)
        drawn()

    prepare()
    old = drawn()
    ops.random.seed(2)
    new = drawn()

    def check() -> None:
        assert drawn() in (old, new)

    return Case(prepare, lambda: ops.random.seed(2), check)


DRAWS = {
    "normal": lambda **options: ops.random.normal((3,), **options),
    "uniform": lambda **options: ops.random.uniform((3,), -1.0, 1.0, **options),
    "wide": lambda **options: ops.random.normal((3,), dtype="float64", **options),
    "truncated_normal": lambda **options: ops.random.truncated_normal((50,), **options),
    "gamma": lambda **options: ops.random.gamma((3,), 2.0, **options),
    "randint": lambda **options: ops.random.randint((3,), 0, 10**9, **options),
    "permutation": lambda **options: ops.random.permutation(40, **options),
    "choice": lambda **options: ops.random.choice(1000, (9,), **options),
    "categorical": lambda **options: ops.random.categorical(np.zeros((1, 1000), "f4"), 9, **options),
    "dropout": lambda **options: ops.dropout(np.ones(99, "f4"), 0.5, **options),
}


@cases_of([(name, draw) for name in INSTALLED for draw in DRAWS])
def draw_from_the_default_stream(path: Path, patch: pytest.MonkeyPatch, value: Any) -> Case:
    name, distribution = value
    ops.set_backend(name)

    def draw() -> list[float]:
        return ops.to_numpy(DRAWS[distribution]()).ravel().tolist()

    def prepare() -> None:
        ops.random.seed(1)

    prepare()
    wanted = [draw() for _ in range(4)]
    assert wanted[0] != wanted[1]

    def check() -> None:
        found = [draw(), draw()]
        assert found in (wanted[:2], wanted[1:3])

    return Case(prepare, draw, check)


@cases_of(list(DRAWS))
def draw_from_a_generator(path: Path, patch: pytest.MonkeyPatch, distribution: str) -> Case:
    ops.set_backend("numpy")
    held: list[Any] = [ops.random.Generator(3)]

    def draw() -> list[float]:
        return ops.to_numpy(DRAWS[distribution](generator=held[0])).ravel().tolist()

    def prepare() -> None:
        held[0] = ops.random.Generator(3)

    wanted = [draw() for _ in range(4)]

    def check() -> None:
        found = [draw(), draw()]
        assert found in (wanted[:2], wanted[1:3])

    return Case(prepare, draw, check)


@case
def split_a_generator(path: Path, patch: pytest.MonkeyPatch) -> Case:
    held: list[Any] = []

    def prepare() -> None:
        held[:] = [ops.random.Generator(3)]

    prepare()
    wanted = [child.normal(2).tolist() for child in held[0].split(6)]

    def check() -> None:
        copy = pickle.loads(pickle.dumps(held[0]))
        found = [child.normal(2).tolist() for child in held[0].split(3)]
        assert found in (wanted[:3], wanted[3:])
        assert [child.normal(2).tolist() for child in copy.split(3)] == found

    return Case(prepare, lambda: held[0].split(3), check)
