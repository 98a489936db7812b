"""The gate `probe`: what every op gives for operands of each dtype, and for the inputs of its sample row."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.registry import EMPTY, OPS, OpSpec
from emberharmony.core.selection import current
from emberharmony.testing import gradient_check, gradient_rows
from emberharmony.testing.call import Call
from emberharmony.testing.checks import value_calls
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples
from gates.record import text

DTYPES = (
    *("bool", "int8", "uint8", "int32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
SECOND = ("bool", "int32", "uint8", "float16", "float32", "complex64")
"""The dtypes of the second operand, beside that of the first one."""
NUMBERS = (2, 2.5, True, 1j, 300, -1, 2**70)
"""The numbers beside a tensor: weak ones, and integers that few dtypes hold."""
ALONE = (True, 2, 0.5, 0.5j)
VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False, True, True),
    "int": (1, 2, 3, 5),
    "uint": (1, 2, 3, 5),
    "complex": (0.25 + 0.5j, 0.5, 0.75 - 0.25j, 1j),
}
"""The values of the operands by kind of dtype; other kinds are floating."""
UNSET = frozenset(("empty", "empty_like"))
"""The ops whose results have no defined values."""
MOST = 3
"""The largest number of tensors for which an op is called with each dtype."""

Outcome = list[Any]


def probe_op(name: str, own_dtypes: bool = True) -> dict[str, Outcome]:
    """Returns, by the name of the call, what an op gives on the active backend.

    Args:
        own_dtypes: whether to call it with operands of each dtype; else only its sample row is run.
    """
    spec, sample = OPS[name], all_samples().get(name)
    calls: Iterator[tuple[str, Callable[[], Any]]] = iter(())
    if own_dtypes:
        calls = _with_dtypes(spec)
    if sample is not None:
        calls = chain(calls, _of_row(sample))
    return {label: _outcome(call, name not in UNSET) for label, call in calls}


def programs() -> dict[str, dict[str, Outcome]]:
    """Returns what the programs give that the tests have for the ops whose rows have no cases."""
    calls_by_ops: dict[str, Callable[[], Any]] = importlib.import_module("tests.conformance.uncased").PROGRAMS
    return {names: {"program": _outcome(program)} for names, program in calls_by_ops.items()}


def _with_dtypes(spec: OpSpec) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields calls of an op whose required parameters are up to three tensors."""
    given = [p for p in spec.parameters if p.default is EMPTY and not p.keyword_only]
    if not 0 < len(given) <= MOST or not all(p.is_tensor for p in given):
        return
    count, function = len(given), spec.function
    for dtype in DTYPES:
        if dtype not in current().dtypes.available:
            continue
        first, *rest = (_tensor(dtype, i % 2 == 1) for i in range(count))
        yield f"{dtype}", _call(function, first, *rest)
        if count == 1:
            yield f"{dtype} matrix", _call(function, ops.reshape(first, (2, 2)))
        if count == 2:
            for number in NUMBERS:
                yield f"{dtype}, {number}", _call(function, first, number)
                yield f"{number}, {dtype}", _call(function, number, first)
            for other in SECOND:
                if other != dtype and other in current().dtypes.available:
                    yield f"{dtype}, {other}", _call(function, first, _tensor(other, True))
    for number in ALONE:
        yield f"number {number}", _call(function, *[number] * count)
    for label, strange in (("list", [1, 2, 3]), ("string", "a"), ("None", None), ("object", object())):
        yield label, _call(function, *[strange] * count)


def _call(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _tensor(dtype: str, reverse: bool) -> Any:
    kind = "bool" if dtype == "bool" else dtype.strip("0123456789")
    given = VALUES.get(kind, (0.25, 0.5, 0.75, 1.0))
    host = np.array(given[::-1] if reverse else given, "complex64" if kind == "complex" else None)
    return OPS["cast"].function(ops.convert_to_tensor(host), dtype)


def _of_row(sample: Sample) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields each case in the row's first dtype, the first case in the others, its shapes alone, and gradients."""
    seen: set[str] = set()
    first: list[Call] = []
    for call in value_calls(sample):
        if not first:
            first.append(call)
        if call.dtype == first[0].dtype or call.dtype not in seen:
            seen.add(call.dtype)
            yield f"row, {call.dtype}, {call.label}", _row_call(call, sample)
    for call in first:
        yield "row, shapes alone", _abstract(call, sample)
    for call in islice(gradient_rows.gradient_calls(sample), 2):
        yield f"gradient, {call.label}", _gradient(call, sample)


def _row_call(call: Call, sample: Sample) -> Callable[[], Any]:
    return lambda: call.make(sample)


def _abstract(call: Call, sample: Sample) -> Callable[[], Any]:
    # The arrays are arguments, because a tensor that is closed over keeps its values.
    function = OPS[sample.op].function
    return lambda: ops.eval_shape(
        lambda args, kwargs: function(*args, **kwargs, **call.options), call.args, call.kwargs
    )


def _gradient(call: Call, sample: Sample) -> Callable[[], Any]:
    function = gradient_rows.gradient_function(sample)
    return lambda: gradient_check.gradients(
        lambda args, kwargs: function(*args, **kwargs), (call.args, call.kwargs), dtype=call.dtype
    )


def _outcome(call: Callable[[], Any], with_values: bool = True) -> Outcome:
    """Returns what a call gives: `["tensor", dtype, shape, values]`, `["error", class, message]` or the like."""
    try:
        ops.random_seed(0)
        return _outcome_of(call(), with_values)
    except Exception as error:  # noqa: BLE001  (the gate records every error)
        return ["error", type(error).__name__, text(error)[:300]]


def _outcome_of(value: Any, with_values: bool) -> Outcome:
    if isinstance(value, (tuple, list)):
        return ["several", type(value).__name__, [_outcome_of(item, with_values) for item in value]]
    if isinstance(value, dict):
        return ["several", "dict", [_outcome_of(item, with_values) for item in value.items()]]
    if current().is_tensor(value):
        dtype = str(ops.dtype(value).name)
        host = np.asarray(ops.to_numpy(ops.cast(value, "float32") if dtype == "bfloat16" else value))
        return ["tensor", dtype, list(host.shape), _join_values(host) if with_values else ""]
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.name, list(value.shape), _join_values(value) if with_values else ""]
    return ["object", type(value).__name__, text(repr(value))]


def _join_values(host: Any) -> str:
    return " ".join(host.astype(str).ravel().tolist())


def ops_to_probe(names: Iterable[str]) -> list[str]:
    """Returns the ops to probe, in the order of their names: these, or all.

    Raises:
        KeyError: if no op has such a name.
    """
    return sorted(OPS[name].name for name in names) or sorted(OPS)
