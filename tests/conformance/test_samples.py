"""Runs every sample row on every backend: values against the float64 oracle, dtypes and shapes."""

import pytest

from emberharmony.core.registry import OPS
from emberharmony.testing.checks import CHECKS
from emberharmony.testing.conformance import outcome
from emberharmony.testing.gradient_rows import gradient_calls
from emberharmony.testing.samples import all_samples, missing_row_messages
from tests.sampling import portion

SAMPLES = all_samples()


@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_a_sample_row_passes(op: str, backend: str) -> None:
    row = SAMPLES[op]
    share = 1 if backend == "numpy" else 2
    calls = [*portion([call for check in CHECKS if check is not gradient_calls for call in check(row)], share)]
    # `test_gradients` compares all gradients of the other backends with NumPy's, so each run checks a part.
    calls += portion([*gradient_calls(row)], 2 * share)
    failures = [found for found in (outcome(row, backend, call) for call in calls) if found.failure]
    assert not failures, "\n".join(f"{o.dtype} {o.label}: {o.failure}" for o in failures[:8])


def test_every_op_has_a_row() -> None:
    missing = missing_row_messages()
    assert not missing, "\n".join(missing.values())


def test_the_message_for_an_op_without_a_row_says_where_to_add_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "mish", OPS["relu"])
    way_out = "mish has no sample row: add one to emberharmony/testing/samples/neural/activation.py"
    assert missing_row_messages() == {"mish": way_out}


def test_every_row_has_an_op() -> None:
    strangers = sorted(SAMPLES.keys() - OPS.keys())
    assert not strangers, f"no op belongs to these sample rows: {', '.join(strangers)}"
