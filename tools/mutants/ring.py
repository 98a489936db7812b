"""Chooses the tests of a drawn mutant: those that call its function, the nearest first.

A function that no test calls in its own process has the tests that mirror its module, then those of its folders.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from mutants.mutant import ROOT
from mutants.reach import Case, Reach

BESIDE_THE_DEFAULT = {"jax": "jax", "dask": "dask", "fallback": "dask"}
"""By folder of `backend/`, the library on which the tests of ops try it, but only where an option names the library."""

ENOUGH = 80.0
"""The seconds that the tests of a mutant may take that mirror its module; all others may take as long together."""


def tests_of(module: str, function: str, reach: Reach) -> tuple[str, ...]:
    """Returns the entries of `Mutant.tests` for a function of the package, from narrow to wide."""
    package, *parts = PurePosixPath(module).with_suffix("").parts
    stem = [package, *parts][-2] if parts[-1] == "__init__" else parts[-1].removesuffix("_ops")
    folders = [f"tests/{'/'.join(parts[:depth])}" for depth in range(len(parts) - 1, 0, -1)]
    mirrors = [*(f"{folder}/test_{stem}.py" for folder in folders), *_of_ops(stem)]
    cases = reach.cases(module, function)
    entries = [*_by_calls(cases, mirrors)]
    folder = parts[1] if len(parts) > 2 else ""
    if folder in BESIDE_THE_DEFAULT:
        entries += [f"{file} --ember-backend {BESIDE_THE_DEFAULT[folder]}" for file in _of_ops(stem)]
    if sum(case.seconds for case in cases) < 1:
        entries += [f"{folders[0]}/test_{stem}.py", *folders] if folders else []
    return tuple(entry for entry in dict.fromkeys(entries) if _exists(entry))


def _of_ops(stem: str) -> list[str]:
    """Returns the test files of ops whose name begins as that of a module: `shapes.py` has `test_shape.py`."""
    word = stem.partition("_")[0].removesuffix("s")
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/ops").rglob(f"test_{word}*.py"))


def _exists(entry: str) -> bool:
    return (ROOT / shlex.split(entry)[0].partition("::")[0]).exists()


def _by_calls(cases: Iterable[Case], mirrors: Sequence[str]) -> Iterator[str]:
    """Yields the tests in three runs: the mirror, a case of each set of called functions, and the others."""
    ordered = sorted(cases, key=lambda case: case.breadth)
    mirrored = [case for case in ordered if case.test.startswith(tuple(mirrors))]
    chosen = {case.test for case in mirrored}
    yield from _run(mirrored, ENOUGH)
    seen: set[tuple[int, str]] = set()
    first: list[Case] = []
    for case in ordered:
        kind = (case.calls, case.test.partition("[")[0])
        if case.test not in chosen and kind not in seen:
            seen.add(kind)
            first.append(case)
            chosen.add(case.test)
    yield from _run(first, ENOUGH / 2)
    yield from _run([case for case in ordered if case.test not in chosen], ENOUGH / 2)


def _run(cases: Sequence[Case], seconds: float) -> Iterator[str]:
    """Yields one run of tests, the nearest, that takes so long at most."""
    chosen: list[str] = []
    for case in cases:
        if case.seconds <= seconds:
            seconds -= case.seconds
            chosen.append(case.test)
    if chosen:
        yield shlex.join(sorted(chosen, key=lambda test: test.partition("::")[0]))
