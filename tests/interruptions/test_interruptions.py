"""An interruption at any instruction leaves either the old or the new state, and no lock held.

`trace` raises before each instruction in turn, even where CPython would not run a signal handler, so it covers every
moment at which a signal can arrive. Other tests send real signals.
"""

import gc
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from emberharmony import ops
from emberharmony.backend import create_backend
from tests.interruptions import (  # noqa: F401  (they register their cases)
    backend_cases,
    file_cases,
    optimizer_cases,
    random_cases,
)
from tests.interruptions.cases import CASES, INSTALLED, KEPT, Case
from tests.interruptions.harness import delays, duration, moments, raising, struck, trace

pytestmark = [
    # Python warns when the garbage collector frees an open file or a coroutine that an interruption left behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """Collects garbage after the last test, because its warnings are ignored here but not in later tests."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in INSTALLED:
        create_backend(name)
    before, default = ops.get_backend(), ops.default_float()
    yield
    KEPT.clear()  # an override that stays alive keeps the ops of later tests guarded
    ops.set_backend(before)
    ops.set_default_float(default)


@pytest.fixture
def interrupted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return CASES[request.param](tmp_path, monkeypatch)


every_case = pytest.mark.parametrize("interrupted", list(CASES), indirect=True)


def _instructions(interrupted: Case, instants: Sequence[int]) -> None:
    for at in instants:
        interrupted.prepare()
        where, arrived = trace(interrupted.run, at)
        assert arrived or len(where) <= at, f"the interruption after {where[-1:]} did not arrive"
        try:
            interrupted.check()
        except AssertionError as error:
            raise AssertionError(f"interrupted after {where[-1:]}: {error}") from error


def _signals(interrupted: Case, count: int) -> None:
    interrupted.prepare()
    longest = 1.1 * duration(interrupted.run)
    arrived = 0
    with raising():
        for trial, delay in enumerate(delays(longest, 0)):
            interrupted.prepare()
            arrived += struck(interrupted.run, delay)
            interrupted.check()
            if arrived >= count or trial >= 20 * count:
                break
    assert arrived == count


def _moments(interrupted: Case) -> list[int]:
    interrupted.prepare()
    interrupted.run()
    interrupted.prepare()
    found = moments(interrupted.run)
    assert found
    return found


@every_case
def test_an_interruption_at_some_instructions_leaves_a_consistent_state(interrupted: Case) -> None:
    instants = _moments(interrupted)
    _instructions(interrupted, instants[:: -(-len(instants) // 12)])


@pytest.mark.slow
@every_case
def test_an_interruption_at_any_instruction_leaves_a_consistent_state(interrupted: Case) -> None:
    """Interrupts the first and the last execution of each instruction; loops only repeat those in between."""
    _instructions(interrupted, _moments(interrupted))


@pytest.mark.slow
@every_case
def test_an_interruption_at_a_thousand_random_instructions_leaves_a_consistent_state(interrupted: Case) -> None:
    interrupted.prepare()
    ran, _ = trace(interrupted.run)
    choose = random.Random(0)
    _instructions(interrupted, [choose.randrange(len(ran)) for _ in range(1000)])


@pytest.mark.slow
@every_case
def test_a_thousand_signals_leave_a_consistent_state(interrupted: Case) -> None:
    _signals(interrupted, 1000)
