"""Compares two records of a gate, and sorts the differences by kind."""

import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gates.record import Record

VALUE, DIGITS, DTYPE, CLASS, MESSAGE = "value", "last digits", "dtype or shape", "error class", "message"
RAISES, RETURNS, GONE, NEW = "now raises", "raised before", "no longer there", "new"
SOURCE, NATIVE = "source", "native function"
HARMLESS = frozenset((MESSAGE, DIGITS, NEW))
"""The kinds that do not fail. Differences in last digits are only told apart if the caller allows some."""

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}


class Difference(NamedTuple):
    """One difference: its kind, the op, the name of the call, and both findings as text."""

    kind: str
    op: str
    call: str
    before: str
    after: str


def differences(before: Record, after: Record, eps: float = 0.0) -> Iterator[Difference]:
    """Yields the differences of two records of one gate and backend.

    Args:
        eps: how many eps of their dtype numbers may differ, relative to the largest magnitude of the result, to be
            counted as "last digits".
    """
    for op in sorted(before.ops.keys() | after.ops.keys()):
        old, new = before.ops.get(op), after.ops.get(op)
        if old is None or new is None:
            yield Difference(NEW if old is None else GONE, op, "", "", "")
            continue
        for call in sorted(old.keys() | new.keys()):
            if call not in old or call not in new:
                kind = GONE if call in old else NEW
                yield Difference(kind, op, call, _shorten(old.get(call, "")), _shorten(new.get(call, "")))
            elif old[call] != new[call]:
                yield _call_difference(op, call, old[call], new[call], eps)


def _call_difference(op: str, call: str, old: Any, new: Any, eps: float) -> Difference:
    if call == "source":
        diff_lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))[2:]
        changed_lines = [line for line in diff_lines if not line.startswith("@@")]
        return Difference(SOURCE, op, call, *("\n".join(x for x in changed_lines if x[0] == sign) for sign in "-+"))
    if call in ("native", "conditions"):
        return Difference(NATIVE if call == "native" else SOURCE, op, call, _shorten(old), _shorten(new))
    return Difference(_difference_kind(old, new, eps), op, call, _shorten(old), _shorten(new))


def _difference_kind(old: Any, new: Any, eps: float) -> str:
    """Returns the kind of the difference of two outcomes of a call."""
    if old[0] == new[0] == "error":
        return MESSAGE if old[1] == new[1] else CLASS
    if "error" in (old[0], new[0]):
        return RETURNS if old[0] == "error" else RAISES
    if old[0] == new[0] == "several" and old[1] == new[1] and len(old[2]) == len(new[2]):
        kinds = [_difference_kind(*pair, eps) for pair in zip(old[2], new[2], strict=True) if pair[0] != pair[1]]
        return next((kind for kind in kinds if kind not in HARMLESS), kinds[0])
    if old[0] not in ("tensor", "array") or old[:3] != new[:3]:
        return DTYPE if old[0] in ("tensor", "array") or new[0] in ("tensor", "array") else VALUE
    return DIGITS if eps and _are_close(old[3], new[3], eps * EPSILON.get(old[1], 2.0**-52)) else VALUE


def _are_close(old: str, new: str, tolerance: float) -> bool:
    """Returns whether numbers, written in a row, are close; NaN, infinities and signs of zeros must be equal."""
    try:
        a, b = (np.array([complex(x) for x in side.split()]) for side in (old, new))
    except ValueError:
        return False
    if any(
        not np.array_equal(part(x), part(y)) for x, y in ((a, b),) for part in (np.isnan, np.isinf, _is_negative_zero)
    ):
        return False
    is_finite = np.isfinite(a)
    largest_magnitude = np.abs(a[is_finite]).max(initial=0.0)
    has_same_infinities = np.array_equal(a[np.isinf(a)], b[np.isinf(b)])
    return has_same_infinities and bool((np.abs(a - b)[is_finite] <= tolerance * largest_magnitude).all())


def _is_negative_zero(x: Any) -> Any:
    return np.where(x.real == 0, np.signbit(x.real), False)


def _shorten(outcome: Any) -> str:
    return str(outcome)[:160]
