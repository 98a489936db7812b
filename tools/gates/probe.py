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
from gates.record import stable_text

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


def probe_op(name: str, each_dtype: bool = True) -> dict[str, Outcome]:
    """Returns, by the name of the call, what an op gives on the active backend.

    Args:
        own_dtypes: whether to call it with operands of each dtype; else only its sample row is run.
    """
    spec, sample = OPS[name], all_samples().get(name)
    calls: Iterator[tuple[str, Callable[[], Any]]] = iter(())
    if each_dtype:
        calls = _dtype_calls(spec)
    if sample is not None:
        calls = chain(calls, _row_calls(sample))
    return {label: _call_outcome(call, name not in UNSET) for label, call in calls}


def program_outcomes() -> dict[str, dict[str, Outcome]]:
    """Returns what the programs give that the tests have for the ops whose rows have no cases."""
    program_by_ops: dict[str, Callable[[], Any]] = importlib.import_module("tests.conformance.uncased").PROGRAMS
    return {names: {"program": _call_outcome(program)} for names, program in program_by_ops.items()}


def _dtype_calls(spec: OpSpec) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields calls of an op whose required parameters are up to three tensors."""
    required_parameters = [p for p in spec.parameters if p.default is EMPTY and not p.keyword_only]
    if not 0 < len(required_parameters) <= MOST or not all(p.is_tensor for p in required_parameters):
        return
    count, function = len(required_parameters), spec.function
    for dtype in DTYPES:
        if dtype not in current().dtypes.available:
            continue
        first, *rest = (_make_tensor(dtype, i % 2 == 1) for i in range(count))
        yield f"{dtype}", _bind_call(function, first, *rest)
        if count == 1:
            yield f"{dtype} matrix", _bind_call(function, ops.reshape(first, (2, 2)))
        if count == 2:
            for number in NUMBERS:
                yield f"{dtype}, {number}", _bind_call(function, first, number)
                yield f"{number}, {dtype}", _bind_call(function, number, first)
            for other in SECOND:
                if other != dtype and other in current().dtypes.available:
                    yield f"{dtype}, {other}", _bind_call(function, first, _make_tensor(other, True))
    for number in ALONE:
        yield f"number {number}", _bind_call(function, *[number] * count)
    for label, strange in (("list", [1, 2, 3]), ("string", "a"), ("None", None), ("object", object())):
        yield label, _bind_call(function, *[strange] * count)


def _bind_call(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _make_tensor(dtype: str, reverse: bool) -> Any:
    kind = "bool" if dtype == "bool" else dtype.strip("0123456789")
    operand_values = VALUES.get(kind, (0.25, 0.5, 0.75, 1.0))
    host_array = np.array(
        operand_values[::-1] if reverse else operand_values, "complex64" if kind == "complex" else None
    )
    return OPS["cast"].function(ops.convert_to_tensor(host_array), dtype)


def _row_calls(sample: Sample) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields each case in the row's first dtype, the first case in the others, its shapes alone, and gradients."""
    seen_dtypes: set[str] = set()
    first_calls: list[Call] = []
    for call in value_calls(sample):
        if not first_calls:
            first_calls.append(call)
        if call.dtype == first_calls[0].dtype or call.dtype not in seen_dtypes:
            seen_dtypes.add(call.dtype)
            yield f"row, {call.dtype}, {call.label}", _bind_row_call(call, sample)
    for call in first_calls:
        yield "row, shapes alone", _bind_shape_call(call, sample)
    for call in islice(gradient_rows.gradient_calls(sample), 2):
        yield f"gradient, {call.label}", _bind_gradient_call(call, sample)


def _bind_row_call(call: Call, sample: Sample) -> Callable[[], Any]:
    return lambda: call.make(sample)


def _bind_shape_call(call: Call, sample: Sample) -> Callable[[], Any]:
    # The arrays are arguments, because a tensor that is closed over keeps its values.
    function = OPS[sample.op].function
    return lambda: ops.eval_shape(
        lambda args, kwargs: function(*args, **kwargs, **call.options), call.args, call.kwargs
    )


def _bind_gradient_call(call: Call, sample: Sample) -> Callable[[], Any]:
    function = gradient_rows.gradient_function(sample)
    return lambda: gradient_check.gradients(
        lambda args, kwargs: function(*args, **kwargs), (call.args, call.kwargs), dtype=call.dtype
    )


def _call_outcome(call: Callable[[], Any], with_values: bool = True) -> Outcome:
    """Returns what a call gives: `["tensor", dtype, shape, values]`, `["error", class, message]` or the like."""
    try:
        ops.random_seed(0)
        return _value_outcome(call(), with_values)
    except Exception as error:  # noqa: BLE001  (the gate records every error)
        return ["error", type(error).__name__, stable_text(error)[:300]]


def _value_outcome(value: Any, with_values: bool) -> Outcome:
    if isinstance(value, (tuple, list)):
        return ["several", type(value).__name__, [_value_outcome(item, with_values) for item in value]]
    if isinstance(value, dict):
        return ["several", "dict", [_value_outcome(item, with_values) for item in value.items()]]
    if current().is_tensor(value):
        dtype = str(ops.dtype(value).name)
        host_array = np.asarray(ops.to_numpy(ops.cast(value, "float32") if dtype == "bfloat16" else value))
        return ["tensor", dtype, list(host_array.shape), _join_values(host_array) if with_values else ""]
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.name, list(value.shape), _join_values(value) if with_values else ""]
    return ["object", type(value).__name__, stable_text(repr(value))]


def _join_values(host: Any) -> str:
    return " ".join(host.astype(str).ravel().tolist())


def ops_to_probe(names: Iterable[str]) -> list[str]:
    """Returns the ops to probe, in the order of their names: these, or all.

    Raises:
        KeyError: if no op has such a name.
    """
    return sorted(OPS[name].name for name in names) or sorted(OPS)
