"""Outcomes of conformance calls: a failure names the first wrong element."""

import dataclasses

import numpy as np
import pytest

from emberharmony.testing.checks import special_value_calls
from emberharmony.testing.conformance import outcome
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import DisagreementError

SAMPLES = all_samples()


def with_fault(op: str) -> Sample:
    """Returns the row of an elementwise op whose oracle is wrong where the first operand is infinite."""
    row = SAMPLES[op]
    return dataclasses.replace(row, oracle=lambda x, *rest: np.where(np.isinf(x), 7.0, row.oracle(x, *rest)))


@pytest.mark.parametrize("op", ["exp", "maximum", "betainc"])
def test_a_program_that_shows_a_failure_has_the_first_wrong_element_only(op: str, backend: str) -> None:
    row = with_fault(op)
    for call in special_value_calls(row):
        found = outcome(row, backend, call)
        assert found.error == np.inf
        assert "expected array([7.])" in found.failure
        assert len(found.snippet) < 1000
        assert max(map(len, found.snippet.splitlines())) < 250
        # The program compares with the wrong expectation, so it fails.
        with pytest.raises(DisagreementError, match="exceeds the tolerance"):
            exec(found.snippet, {})


def test_a_failure_that_needs_all_elements_keeps_them(backend: str) -> None:
    row = dataclasses.replace(SAMPLES["exp"], oracle=lambda x: np.exp(x) if x.size < 3 else np.exp(x) + 1)
    call = dataclasses.replace(next(iter(special_value_calls(row))), args=(np.array([0.0, 1.0, 2.0], "float32"),))
    found = outcome(row, backend, call)
    assert "expected array([2." in found.failure
    assert "ops.exp(np.array([0.0, 1.0, 2.0], 'float32'))" in found.snippet
    assert not list(dataclasses.replace(call, args=(np.ones(1),)).half_calls())
    assert not list(dataclasses.replace(call, args=(np.ones(4), np.ones(3))).half_calls())
