"""Running the checks of sample rows on a backend, one call after the other."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from emberharmony import ops
from emberharmony.backend.precision import PrecisionBlock
from emberharmony.backend.shared.precision import STATES
from emberharmony.core.errors import EmberError, UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.core.types import BackendName
from emberharmony.testing.call import Call
from emberharmony.testing.checks import CHECKS
from emberharmony.testing.hypothesis_inputs import generate_calls
from emberharmony.testing.sample import Sample
from emberharmony.testing.snippet import snippet

COARSER = {"float32": 1.0, "tf32": 2.0**13, "bfloat16": 2.0**16}
"""By how much the tolerance of float32 grows for ops that multiply tensors: factors keep 24, 11 and 8 bits."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one conformance call on a backend: its error, its failure, or why it is unsupported.

    Args:
        error: the largest error of the values, in units of the tolerance.
        failure: what was wrong; "" if the call passed.
        unsupported: the reason that the backend gives for not supporting the call; "" if it does.
        snippet: for a failure, a program that reproduces it.
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


def run_sample(sample: Sample, backend: str, quick: bool = True, most: int | None = None) -> Iterator[Outcome]:
    """Yields the outcome of each call of each check of a row on one backend, which stays the active one.

    Args:
        quick: whether to leave out the calls with inputs that hypothesis generates.
        most: the largest number of calls for each check and dtype; None for all.
    """
    if ops.get_backend() != backend:
        ops.set_backend(BackendName(backend))
    count_by_check_and_dtype: Counter[tuple[str, str]] = Counter()
    for check in CHECKS if quick else [*CHECKS, generate_calls]:
        for call in check(sample):
            count_by_check_and_dtype[call.check, call.dtype] += 1
            if most is None or count_by_check_and_dtype[call.check, call.dtype] <= most:
                yield outcome(sample, backend, call_with_device_tolerance(sample, call))


def call_with_device_tolerance(sample: Sample, call: Call) -> Call:
    """Returns a call with the tolerance that the device allows: a larger one where it rounds the factors of float32.

    That counts for results of float32 and complex64 of ops that multiply tensors, by themselves or in their bodies, and
    on a CPU in a block of `ops.precision` only: there a product that is off is wrong.
    """
    narrow_dtypes = {"float32", "complex64"} & set(call.result if isinstance(call.result, tuple) else (call.result,))
    if not narrow_dtypes or not call.tolerance or call.raises is not None:
        return call
    if not PrecisionBlock.is_open() and ops.get_default_device() == "cpu":
        return call
    least_precise_state = max(ops.precision().values(), key=STATES.index)
    if least_precise_state == STATES[0] or not _runs_in_half_precision(sample, call):
        return call
    return replace(call, tolerance=call.tolerance * COARSER[least_precise_state])


def _runs_in_half_precision(sample: Sample, call: Call) -> bool:
    """Returns whether a call runs an op that `autocast` runs in half precision: products, convolutions, attention."""
    if OPS[sample.op].facts.autocast == "half":
        return True
    try:
        with ops.record() as log:
            call.make(sample)
    except EmberError:  # the outcome reports this error, because the call raises it again
        return False
    return any(OPS[event.op].facts.autocast == "half" for event in log if event.op in OPS)


def outcome(sample: Sample, backend: str, call: Call) -> Outcome:
    """Makes a conformance call on the active backend, whose name is `backend`, and returns its outcome."""
    error, failure, refusal_text = 0.0, "", ""
    try:
        error = call.judge(sample)
    except AssertionError as disagreement:
        error = getattr(disagreement, "error", 0.0)
        call, failure = _smallest_failure(sample, call, str(disagreement))
    except UnsupportedOpError as refusal:
        refusal_text = str(refusal)
    except Exception as other_error:  # noqa: BLE001  (an untyped error is a failure, and the other checks must still run)
        failure = f"raises {type(other_error).__name__}: {other_error}"
    reproduction = snippet(sample, backend, call, failure) if failure else ""
    return Outcome(sample.op, backend, call.check, call.dtype, call.label, error, failure, refusal_text, reproduction)


def _smallest_failure(sample: Sample, call: Call, failure: str) -> tuple[Call, str]:
    """Returns the failing call with the fewest elements, found by halving, and the text of its failure."""
    for half_call in call.half_calls() if sample.elementwise else ():
        try:
            half_call.judge(sample)
        except AssertionError as disagreement:
            return _smallest_failure(sample, half_call, str(disagreement))
        except Exception:  # noqa: BLE001  (an op that raises for a half fails in another way)
            continue
    return call, failure
