"""Every sample row on every backend: values against the float64 oracle, dtypes and shapes."""

import pytest

from emberharmony.core.registry import OPS
from emberharmony.testing.conformance import run_sample
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()


@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_sample(op: str, backend: str) -> None:
    failures = [outcome for outcome in run_sample(SAMPLES[op], backend) if outcome.failure]
    assert not failures, "\n".join(f"{o.dtype} {o.label}: {o.failure}" for o in failures[:8])


def test_every_op_has_a_row() -> None:
    assert not set(OPS) - set(SAMPLES)


def test_every_row_has_an_op() -> None:
    assert not set(SAMPLES) - set(OPS)
