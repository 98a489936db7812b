"""Every sample row contains enough for its generated checks to be meaningful."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony.core.registry import OPS
from emberharmony.testing.call import Call
from emberharmony.testing.checks import CHECKS, call_of
from emberharmony.testing.repr_source import spell_op
from emberharmony.testing.sample import FLOATS, Sample
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import result_parts
from tests.together import together

SAMPLES = all_samples()
BY_ORACLE = {op: row for op, row in SAMPLES.items() if row.cases and not row.reference}
TESTS = "\n".join(file.read_text(encoding="utf-8") for file in Path(__file__).parents[1].glob("ops/**/test_*.py"))
LOOSEST = 64
"""The largest tolerance of any row, in eps; a larger one would hide faults."""


@together("op", sorted(set(SAMPLES) - set(BY_ORACLE)))
def test_an_op_without_an_oracle_is_named_in_the_tests_of_ops(op: str) -> None:
    names = {op, spell_op(op).rpartition(".")[2], *OPS[op].aliases, op.removeprefix("random_")}
    assert any(re.search(rf"(ops|random|linalg)\.{name}\b|['\"]{name}['\"]", TESTS) for name in names)


def results(row: Sample) -> list[Any]:
    """Returns the oracle's results for the row's cases in its first dtype."""
    dtype = (*row.dtypes, *row.integers)[0]
    calls: list[Call] = [call_of(row, "value", dtype, "", item) for item in row.cases]
    return [part for call in calls for part in result_parts(call.oracle_result(row))]


@together("op", sorted(BY_ORACLE))
def test_the_oracle_of_a_row_gives_values_to_compare(op: str) -> None:
    assert any(np.size(result) for result in results(BY_ORACLE[op]))


@together("op", sorted(BY_ORACLE))
def test_the_tolerance_of_a_row_is_small_enough_to_find_faults(op: str) -> None:
    row = BY_ORACLE[op]
    assert row.tolerance <= LOOSEST
    assert row.floor <= 200


def test_most_rows_are_run_in_float32_and_float64_and_in_half_precision() -> None:
    wide = [row for row in BY_ORACLE.values() if set(FLOATS) <= set(row.dtypes)]
    halves = [row for row in wide if {"float16", "bfloat16"} & set(row.dtypes)]
    assert len(wide) > 0.8 * len(BY_ORACLE)
    assert len(halves) > 0.9 * len(wide)


def test_a_row_without_dtypes_makes_no_calls(backend: str) -> None:
    row = Sample("sin", np.sin, SAMPLES["sin"].cases, dtypes=())
    assert [call for check in CHECKS for call in check(row)] == []
