"""Runs the checks of sample rows on a backend, call by call."""

from collections.abc import Iterator
from dataclasses import dataclass

from emberharmony import ops
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.testing.call import Call
from emberharmony.testing.checks import CHECKS
from emberharmony.testing.hypothesis_inputs import generated
from emberharmony.testing.sample import Sample
from emberharmony.testing.snippet import snippet


@dataclass(frozen=True)
class Outcome:
    """What one call showed.

    Args:
        error: how far off the values are, in units of the tolerance.
        failure: what was wrong; "" if nothing.
        unsupported: why the backend does not offer this, if it says so.
        snippet: for a failure, a program that shows it.
    """

    op: str
    backend: str
    check: str
    dtype: str
    label: str
    error: float = 0.0
    failure: str = ""
    unsupported: str = ""
    snippet: str = ""


def run_sample(sample: Sample, backend: str, quick: bool = True) -> Iterator[Outcome]:
    """Yields the outcome of each call of each check of a row on one backend, which becomes the process's.

    Args:
        quick: leave out the calls that hypothesis makes.
    """
    if ops.get_backend() != backend:
        ops.set_backend(backend)
    for check in CHECKS if quick else [*CHECKS, generated]:
        for call in check(sample):
            yield outcome(sample, backend, call)


def outcome(sample: Sample, backend: str, call: Call) -> Outcome:
    """Makes a call on the active backend, whose name is `backend`, and returns what it showed."""
    error, failure, unsupported = 0.0, "", ""
    try:
        error = call.judge(sample)
    except AssertionError as disagreement:
        error, failure = getattr(disagreement, "error", 0.0), str(disagreement)
    except UnsupportedOpError as refusal:
        unsupported = str(refusal)
    except Exception as other:  # noqa: BLE001  (whatever an op does, the checks go on)
        failure = f"raises {type(other).__name__}: {other}"
    written = snippet(sample, backend, call, failure) if failure else ""
    return Outcome(sample.op, backend, call.check, call.dtype, call.label, error, failure, unsupported, written)
