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
    mirrors = [*(f"{folder}/test_{stem}.py" for folder in folders), *_op_test_files(stem)]
    cases = reach.cases(module, function)
    entries = [*_runs_by_calls(cases, mirrors)]
    folder = parts[1] if len(parts) > 2 else ""
    if folder in BESIDE_THE_DEFAULT:
        entries += [f"{file} --ember-backend {BESIDE_THE_DEFAULT[folder]}" for file in _op_test_files(stem)]
    if sum(case.seconds for case in cases) < 1:
        entries += [f"{folders[0]}/test_{stem}.py", *folders] if folders else []
    return tuple(entry for entry in dict.fromkeys(entries) if _file_exists(entry))


def _op_test_files(stem: str) -> list[str]:
    """Returns the test files of ops whose name begins as that of a module: `shapes.py` has `test_shape.py`."""
    word = stem.partition("_")[0].removesuffix("s")
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/ops").rglob(f"test_{word}*.py"))


def _file_exists(entry: str) -> bool:
    return (ROOT / shlex.split(entry)[0].partition("::")[0]).exists()


def _runs_by_calls(cases: Iterable[Case], mirrors: Sequence[str]) -> Iterator[str]:
    """Yields the tests in three runs: the mirror, a case of each set of called functions, and the others."""
    ordered_cases = sorted(cases, key=lambda case: case.breadth)
    mirror_cases = [case for case in ordered_cases if case.test.startswith(tuple(mirrors))]
    chosen_tests = {case.test for case in mirror_cases}
    yield from _test_run(mirror_cases, ENOUGH)
    seen_kinds: set[tuple[int, str]] = set()
    first_cases: list[Case] = []
    for case in ordered_cases:
        kind = (case.calls, case.test.partition("[")[0])
        if case.test not in chosen_tests and kind not in seen_kinds:
            seen_kinds.add(kind)
            first_cases.append(case)
            chosen_tests.add(case.test)
    yield from _test_run(first_cases, ENOUGH / 2)
    yield from _test_run([case for case in ordered_cases if case.test not in chosen_tests], ENOUGH / 2)


def _test_run(cases: Sequence[Case], seconds: float) -> Iterator[str]:
    """Yields one run of tests, the nearest, that takes so long at most."""
    chosen_tests: list[str] = []
    for case in cases:
        if case.seconds <= seconds:
            seconds -= case.seconds
            chosen_tests.append(case.test)
    if chosen_tests:
        yield shlex.join(sorted(chosen_tests, key=lambda test: test.partition("::")[0]))
