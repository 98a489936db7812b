"""`compare`: faults that are planted into a backend are found, and correct backends raise no alarm."""

import itertools

import pytest

from emberharmony import compare
from emberharmony.backend.discovery import is_installed
from tests.testing.differences.faults import KINDS, faulty, planted
from tests.testing.differences.programs import program

SIDES = [name for name in ("numpy", "torch", "mlx") if is_installed(name)]
pytestmark = pytest.mark.skipif(len(SIDES) < 2, reason="a comparison needs two backends")


def _missed(cases: "itertools.chain[tuple[int, str, str]] | list[tuple[int, str, str]]") -> tuple[int, list[str]]:
    """Returns the number of faults, and a line about each of which the op or the side is named wrongly."""
    missed, count = [], 0
    for seed, kind, side in cases:
        fault = planted(seed, kind)
        other = SIDES[(SIDES.index(side) + 1 + seed % (len(SIDES) - 1)) % len(SIDES)]
        bad = faulty(side, fault.op, fault.change)
        report = compare(fault.program, *fault.inputs, backends=(bad, other) if seed % 4 < 2 else (other, bad))
        count += 1
        if report.first is None or (report.first.op, report.first.wrong) != (fault.op, side):
            missed.append(f"{seed} {kind} {fault.op} on {side}: {report.summary()}")
    return count, missed


def test_faults_are_named() -> None:
    sides = itertools.cycle(SIDES)
    count, missed = _missed([(seed, kind, next(sides)) for seed in (0, 1) for kind in KINDS])
    assert count == 20
    assert not missed, "\n".join(missed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(4), range(4, 8)], ids=["seen", "held back"])
def test_most_faults_are_named(seeds: range) -> None:
    count, missed = _missed(list(itertools.product(seeds, KINDS, SIDES)))
    assert len(missed) <= 0.05 * count, "\n".join(missed)


def _alarms(seeds: range) -> list[str]:
    pairs = list(itertools.combinations(SIDES, 2))
    alarms = []
    for seed in seeds:
        run, inputs, names = program(seed)
        report = compare(run, *inputs, backends=pairs[seed % len(pairs)], stop="all")
        if not report.ok:
            alarms.append(f"{seed} {names} {report.sides}: {report.summary()}")
    return alarms


def test_correct_backends_raise_no_alarm() -> None:
    assert not _alarms(range(25))


@pytest.mark.slow
def test_correct_backends_raise_no_alarm_in_many_programs() -> None:
    alarms = _alarms(range(1000))
    assert not alarms, "\n".join(alarms)
