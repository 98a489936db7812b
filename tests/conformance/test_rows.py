"""What every sample row must say, so that the checks which follow from it check something."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony.core.registry import OPS
from emberharmony.testing.call import Call
from emberharmony.testing.checks import CHECKS, call_of
from emberharmony.testing.repr_source import spelled
from emberharmony.testing.sample import FLOATS, Sample
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import parts

SAMPLES = all_samples()
BY_ORACLE = {op: row for op, row in SAMPLES.items() if row.cases and not row.reference}
TESTS = "\n".join(file.read_text(encoding="utf-8") for file in Path(__file__).parents[1].glob("ops/test_*.py"))
LOOSEST = 64
"""In eps; a tolerance above this would need an explanation that no row has."""


@pytest.mark.parametrize("op", sorted(set(SAMPLES) - set(BY_ORACLE)))
def test_what_no_oracle_foretells_is_named_by_the_tests_of_its_category(op: str) -> None:
    names = {op, spelled(op).rpartition(".")[2], *OPS[op].aliases, op.removeprefix("random_")}
    assert any(re.search(rf"(ops|random|linalg)\.{name}\b|['\"]{name}['\"]", TESTS) for name in names)


def results(row: Sample) -> list[Any]:
    """Returns what the oracle gives for the row's cases in its first dtype."""
    dtype = (*row.dtypes, *row.integers)[0]
    calls: list[Call] = [call_of(row, "value", dtype, "", item) for item in row.cases]
    return [part for call in calls for part in parts(call.expected(row))]


@pytest.mark.parametrize("op", sorted(BY_ORACLE))
def test_a_row_has_values_to_compare(op: str) -> None:
    assert any(np.size(result) for result in results(BY_ORACLE[op]))


@pytest.mark.parametrize("op", sorted(BY_ORACLE))
def test_a_tolerance_is_one_that_finds_faults(op: str) -> None:
    row = BY_ORACLE[op]
    assert row.tolerance <= LOOSEST
    assert row.floor <= 200


def test_most_rows_are_run_in_single_and_double_precision_and_in_halves() -> None:
    wide = [row for row in BY_ORACLE.values() if set(FLOATS) <= set(row.dtypes)]
    halves = [row for row in wide if {"float16", "bfloat16"} & set(row.dtypes)]
    assert len(wide) > 0.8 * len(BY_ORACLE)
    assert len(halves) > 0.9 * len(wide)


def test_a_row_of_no_dtype_that_a_backend_has_makes_no_calls(backend: str) -> None:
    row = Sample("sin", np.sin, SAMPLES["sin"].cases, dtypes=())
    assert [call for check in CHECKS for call in check(row)] == []
