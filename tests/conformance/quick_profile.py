"""`python -m tests.conformance.quick_profile jax 0 2` checks every second sample row, from the first, by few calls.

It makes the first call of each row in a dtype of one kind, which the seed chooses (of each kind in the profile whole),
the special values of elementwise ops, the gradients at kinks, and on JAX the gradient of the first case, which it
compares with NumPy's. JAX compiles a program for each of them, so there are no others, and a gradient is one program.
The report is JSON.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np

from emberharmony import ops
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.testing import checks
from emberharmony.testing.call import Call
from emberharmony.testing.conformance import outcome
from emberharmony.testing.gradient_check import gradients
from emberharmony.testing.gradient_rows import gradient_calls as calls_of
from emberharmony.testing.gradient_rows import gradient_function
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples
from tests.conformance.test_gradients import KINKS, gradients_at
from tests.conformance.uncased import PROGRAMS, compare
from tests.sampling import SEED, WHOLE

SMALL = {"array.chunk-size": "32B", "scheduler": "synchronous"}
"""Blocks of a few elements, so that small tensors have several blocks along each axis."""


def calls(row: Sample, backend: str) -> Iterator[Call]:
    """Yields the calls of a row whose values and dtypes are checked."""
    firsts: dict[tuple[str, bool], Call] = {}
    for call in checks.value_calls(row):
        dtype = as_dtype(call.dtype)
        firsts.setdefault((dtype.kind, dtype.is_floating and dtype.bits == 16), call)
    turn = (crc32(row.op.encode()) + SEED) % max(1, len(firsts))
    yield from islice(firsts.values(), *((None,) if WHOLE else (turn, turn + 1)))
    if backend == "dask":  # which compiles nothing
        yield from islice((call for call in checks.value_calls(row) if call.check in ("empty", "0-d")), 2)
    yield from islice(checks.special_value_calls(row), 1)


def gradient(row: Sample, backend: str) -> str:
    """Returns what is wrong with the gradient of the first case of a row; "" if nothing is."""
    with ops.use_backend("numpy"):
        call = next(calls_of(row))
        function = gradient_function(row)
        try:
            wanted = gradients(lambda args, kwargs: function(*args, **kwargs), (call.args, call.kwargs))
        except UnsupportedOpError:  # by the tape
            wanted = []
    try:
        found = gradients(
            lambda args, kwargs: function(*args, **kwargs), (call.args, call.kwargs), dtype="float32", compiled=True
        )
    except Exception as error:  # noqa: BLE001  (the other rows are checked too)
        return f"raises {type(error).__name__}: {error}"
    for mine, theirs in zip(found, wanted, strict=bool(wanted)):
        scale = np.fmax.reduce(np.abs(theirs), None, initial=1.0)
        if not np.allclose(mine, theirs, 0, 1e-3 * scale, equal_nan=True):
            return f"gradient {mine!r:.200}, expected {theirs!r:.200}"
    return ""


def kinks() -> Iterator[tuple[str, str]]:
    """Yields the names of the kinks, and what is wrong with the gradients there; "" if nothing is."""
    for name, (function, places, wanted) in KINKS.items():
        try:
            found = gradients_at(function, *places)
        except Exception as error:  # noqa: BLE001  (the others are checked too)
            yield name, f"raises {type(error).__name__}: {error}"
        else:
            right = all(np.allclose(mine, theirs, 1e-5, 1e-6) for mine, theirs in zip(found, wanted, strict=True))
            yield name, "" if right else f"gradients {found}, expected {wanted}"


def run(backend: str, part: int, parts: int) -> dict[str, Any]:
    """Returns the report of a backend on one of several parts of the rows, the first of which has all other checks."""
    counts = {"ops": 0, "calls": 0, "gradients": 0}
    failures: list[str] = []
    ops.set_backend(backend)
    seen: set[str] = set()
    rows = dict(islice(all_samples().items(), part, None, parts))
    for op, row in rows.items():
        for call in calls(row, backend):
            found = outcome(row, backend, call)
            counts["calls"] += 1
            seen.add(op)
            if found.failure or found.unsupported:
                failures.append(f"{op}, {call.check} {call.dtype}: {found.failure}{found.unsupported}")
        if backend == "jax" and row.differentiable:
            counts["gradients"] += 1
            if wrong := gradient(row, backend):
                failures.append(f"{op}: {wrong}")
    for kind, results in (("calls", compare(backend)), ("gradients", kinks())) if part == 0 else ():
        for names, wrong in results:
            counts[kind] += 1
            if wrong:
                failures.append(f"{names}: {wrong}")
    programs = {name for names in PROGRAMS for name in names.split()}
    counts["ops"] = len(rows)
    return {**counts, "failures": failures, "left out": sorted(rows.keys() - seen - programs)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "dask":
        import dask

        dask.config.set(SMALL)
    sys.stdout.write(json.dumps(run(sys.argv[1], *map(int, sys.argv[2:]))) + "\n")
