"""`ops.checked` judges every op: a NaN that is planted into its result is named, and right calls raise no alarm."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.errors import EmberError
from emberharmony.core.registry import OPS
from emberharmony.core.selection import Override
from emberharmony.testing.inputs import as_argument
from emberharmony.testing.rows import call_of
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import result_parts
from emberharmony.transforms.checks.safe import is_safe
from tests.sampling import portion
from tests.testing.differences.faults import faulty
from tests.testing.differences.kinds import as_dtype, at_end

SAMPLES = {op: row for op, row in sorted(all_samples().items()) if row.cases and "float32" in row.dtypes}


def call(op: str) -> Callable[[], Any]:
    """Returns a function that makes the first call of an op's row in float32."""
    found = call_of(SAMPLES[op], "", "float32", "", SAMPLES[op].cases[0])
    kwargs = {name: as_argument(value) for name, value in found.kwargs.items()} | found.options
    return lambda: OPS[op].function(*as_argument(found.args), **kwargs)


def floats(result: Any) -> list[np.ndarray]:
    """Returns the floating tensors of a result as arrays."""
    leaves = [x for x in result_parts(result) if ops.is_tensor(x) and ops.dtype(x).is_floating]
    return [np.asarray(ops.to_numpy(x), "float64") for x in leaves]


def is_given(op: str) -> bool:
    """Returns whether the arguments of the call hold numbers that are not finite."""
    arrays = [x for x in ops.tree_leaves(list(SAMPLES[op].cases[0].args)) if isinstance(x, np.ndarray)]
    return any(x.dtype.kind in "fc" and not np.isfinite(x).all() for x in arrays)


def with_a_late_nan(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Replaces the last number of the first floating result."""
    found = f(*args, **kwargs)
    several = isinstance(found, (list, tuple))
    results = list(found) if several else [found]
    at = next(i for i, x in enumerate(results) if ops.dtype(x).is_floating)
    results[at] = at_end(float("nan"))(lambda: results[at])
    return tuple(results) if several else results[0]


def test_a_late_nan_of_every_op_is_named(backend: str) -> None:
    count, missed = 0, []
    for op in portion([*SAMPLES], 2 if backend == "numpy" else 4):
        if is_safe(OPS[op]) or is_given(op):
            continue
        try:
            results = floats(call(op)())
        except EmberError:  # a backend may lack the op
            continue
        if not any(x.size for x in results):
            continue
        count += 1
        with Override(faulty(backend, op, with_a_late_nan)), ops.checked("nan", policy="record") as found:
            ops.eval(call(op)())
        if [(each.op, each.backend, each.backward) for each in found] != [(op, backend, False)]:
            missed.append(f"{op}: {found}")
        elif "made 1 NaN of" not in found[0].text or "test_faults.py:" not in found[0].line:
            missed.append(f"{op}: {found[0]}")
    assert not missed, "\n".join(missed)
    assert count > 60


def test_right_calls_raise_no_alarm(backend: str) -> None:
    alarms = []
    for op in portion([*SAMPLES], 2 if backend == "numpy" else 4):
        try:
            results = floats(call(op)())
        except EmberError:
            continue
        born = not is_given(op) and any(not np.isfinite(x).all() for x in results)
        with ops.checked("nan", policy="record") as found:
            ops.eval(call(op)())
        if bool(found) is not born:
            alarms.append(f"{op}: {found}")
    assert not alarms, "\n".join(alarms)


EDGES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e30, 1e-30]


def test_births_of_elementwise_ops_are_counted(backend: str) -> None:
    wrong, births = [], 0
    for op, row in SAMPLES.items():
        count = len(row.cases[0].args)
        if not row.elementwise or count > 2 or is_safe(OPS[op]) or row.cases[0].kwargs:
            continue
        if not all(isinstance(x, np.ndarray) and x.dtype.kind != "i" for x in row.cases[0].args):  # cast, ldexp
            continue
        given = [x.reshape(-1) for x in np.meshgrid(*[np.float32(EDGES)] * count)]
        results = floats(OPS[op].function(*given))
        nan, infinite = (next((found for y in results if (found := kind(y).sum())), 0) for kind in (np.isnan, np.isinf))
        with ops.checked("nan", policy="record") as found:
            ops.eval(OPS[op].function(*map(ops.convert_to_tensor, given)))
        named = [each.op for each in found]
        births += len(found)
        if named != [op] * bool(nan or infinite) or (found and f"made {nan or infinite} " not in found[0].text):
            wrong.append(f"{op}, {nan} NaN and {infinite} infinities: {found}")
    assert not wrong, "\n".join(wrong)
    assert births > 20


def test_gradients_raise_an_alarm_only_if_they_are_not_finite(backend: str) -> None:
    alarms, count = [], 0
    for op in portion([*SAMPLES], 2 if backend == "numpy" else 4):
        row, item = SAMPLES[op], SAMPLES[op].cases[0]
        if not row.differentiable or is_given(op) or not isinstance(item.args[0], np.ndarray):
            continue

        def loss(x: Any, op: str = op, item: Any = item) -> Any:
            found = OPS[op].function(x, *item.args[1:], **item.kwargs)
            return functools.reduce(ops.add, [ops.sum(ops.real(y)) for y in result_parts(found)])

        if item.args[0].dtype.kind != "f":
            continue
        x = ops.convert_to_tensor(item.args[0])
        try:
            gradient = ops.to_numpy(ops.grad(loss)(x))
        except EmberError:
            continue
        count += 1
        with ops.checked("nan", policy="record") as found:
            ops.eval(ops.grad(loss)(x))
        if any(each.backward for each in found) and np.isfinite(gradient).all():
            alarms.append(f"{op}: {found}")
        if not found and not np.isfinite(gradient).all():
            alarms.append(f"{op}: its gradient is not finite")
    assert not alarms, "\n".join(alarms)
    assert count > 50


def test_a_wider_dtype_of_every_op_is_named_and_right_ones_are_not(backend: str) -> None:
    count, wrong = 0, []
    for op in portion([*SAMPLES], 2 if backend == "numpy" else 4):
        try:
            result = call(op)()
        except EmberError:
            continue
        with ops.checked("dtype", "device", "gradients", policy="record") as found:
            call(op)()
        if found:
            wrong.append(f"{op}: {found}")
        if not ops.is_tensor(result) or not floats(result) or _names_its_dtype(op):
            continue
        count += 1
        with Override(faulty(backend, op, as_dtype("float64"))), ops.checked("dtype", policy="record") as found:
            call(op)()
        if [(each.check, each.op) for each in found] != [("dtype", op)] or "float64" not in found[0].text:
            wrong.append(f"{op} of float64: {found}")
    assert not wrong, "\n".join(wrong)
    assert count > 60


def _names_its_dtype(op: str) -> bool:
    item = SAMPLES[op].cases[0]
    given = {parameter.name: value for parameter, value in zip(OPS[op].parameters, item.args, strict=False)}
    return SAMPLES[op].named or (given | item.kwargs).get("dtype") is not None
