"""Programs that repeat one wrong call alone, with the smallest inputs for which it is still wrong."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.core.errors import ArgumentError
from emberharmony.core.registry import OPS
from emberharmony.core.state.files import replace_bytes, replace_text
from emberharmony.testing.differences.descent import repeat_call
from emberharmony.testing.differences.judge import Judge, NotJudgedError
from emberharmony.testing.differences.records import Host, Record, decode, encode, tensor_numbers, to_host
from emberharmony.testing.repr_source import source, spell_op
from emberharmony.testing.sample import EPSILON

if TYPE_CHECKING:
    from emberharmony.testing.differences.report import Divergence

_TRIALS = 200
"""The largest number of smaller inputs that are tried."""

_PROGRAM = """\
# {message}
import numpy as np
{imports}
from emberharmony import ops
with np.load({data!r}) as file:
    data = dict(file)

def call(wide):
    x = [ops.convert_to_tensor(data[f"x{{i}}"]) for i in range({count})]
    x = [ops.cast(a, "float64" if wide and d in {narrow} else d) for a, d in zip(x, {dtypes})]
    return {call}

with ops.use_backend({backend!r}):
    got = [np.asarray(ops.to_numpy({cast}), {kind!r}) for y in {results}]
with ops.use_backend("numpy"):
    want = [np.asarray(y, {kind!r}) for y in {wanted}]
error = max(float(np.max(np.abs(g - w), initial=0)) for g, w in zip(got, want, strict=True))
print("got     ", got, "\\nexpected", want, "\\nlargest error", error)
assert error <= {bound:.3g} and all(np.array_equal(np.isnan(g), np.isnan(w)) for g, w in zip(got, want))
"""


def write_program(path: str, divergence: "Divergence", record: Record, backend: Any, tolerance: float | None) -> None:
    """Writes a program that repeats a wrong call, and beside it an npz file with the inputs.

    Args:
        path: the file of the program.
        divergence: what is wrong.
        record: the call.
        backend: the backend on which it is wrong; None if this machine lacks it, so that the inputs stay as they are.
        tolerance: see `compare`.

    Raises:
        ArgumentError: if an argument has no source, or the op draws random numbers.
    """
    record = minimize(record, backend, Judge(tolerance)) if backend is not None else record
    program_source, arrays_by_name = program_of(path, divergence, record, Judge(tolerance))
    with replace_bytes(_arrays_path(path)) as stream:
        np.savez(stream, **arrays_by_name)
    replace_text(path, program_source)


def program_of(path: str, divergence: "Divergence", record: Record, judge: Judge) -> tuple[str, dict[str, Any]]:
    """Returns the source of a program that repeats a wrong call, and the arrays of its inputs by name.

    Raises:
        ArgumentError: if an argument has no source, or the op draws random numbers.
    """
    if record.streams:
        raise ArgumentError(
            f"{record.op}() cannot be written as a program: outside of a comparison each backend draws other numbers"
        )
    input_numbers = [*tensor_numbers(record.args), *tensor_numbers(record.kwargs)]
    input_hosts = [record.tensors[i] for i in input_numbers]
    argument_sources = _argument_sources(record, {argument_index: i for i, argument_index in enumerate(input_numbers)})
    results = record.results()
    has_several_results = len(results) != 1
    has_floats = any(host.dtype in EPSILON for host in input_hosts)
    wide_dtype = (
        "complex128" if any(host.dtype.startswith("complex") for host in (*input_hosts, *results)) else "float64"
    )
    call_source = f"{spell_op(record.op)}({', '.join(argument_sources)})"
    call_source = (
        call_source if call_source.startswith("ops.") else f"OPS[{record.op!r}].function({', '.join(argument_sources)})"
    )
    program_source = _PROGRAM.format(
        message=divergence.message.replace("\n", " ")[:110],
        imports="from numpy import inf, nan"
        + ("\nfrom emberharmony.core.registry import OPS" if "OPS[" in call_source else ""),
        data=os.path.basename(_arrays_path(path)),
        count=len(input_hosts),
        dtypes=[host.dtype for host in input_hosts],
        narrow=("float16", "bfloat16", "float32"),
        call=call_source,
        backend=record.backend,
        cast='ops.cast(y, "float32")' if any(host.dtype == "bfloat16" for host in results) else "y",
        results="call(False)" if has_several_results else "[call(False)]",
        wanted=f"call({has_floats})" if has_several_results else f"[call({has_floats})]",
        kind=wide_dtype,
        bound=_error_bound(record, judge),
    )
    return program_source, {f"x{i}": host.values() for i, host in enumerate(input_hosts)}


def _argument_sources(record: Record, numbers: dict[int, int]) -> list[str]:
    """Returns the source of each argument, with `x[i]` for the tensor that has the number i."""

    class Name(str):
        """The source text of an argument, which `repr` returns unchanged."""

    def value_source(value: Any) -> str:
        if isinstance(value, Name):
            return str(value)
        if isinstance(value, (list, tuple)):
            items_text = ", ".join(map(value_source, value))
            return f"[{items_text}]" if isinstance(value, list) else f"({items_text}{',' if len(value) == 1 else ''})"
        return source(value)

    try:
        args = decode(record.args, lambda place: Name(f"x[{numbers[place]}]"), lambda name: Name(repr(name)))
        kwargs = decode(record.kwargs, lambda place: Name(f"x[{numbers[place]}]"), lambda name: Name(repr(name)))
        return [value_source(value) for value in args] + [
            f"{name}={value_source(value)}" for name, value in kwargs.items()
        ]
    except (LookupError, TypeError) as error:
        raise ArgumentError(f"{record.op}() cannot be written as a program: {error}") from error


def _error_bound(record: Record, judge: Judge) -> float:
    """Returns the geometric mean of the allowed error and of the error that a call has."""
    try:
        expected, error_units = judge.reference_results(record), judge.judge(record).error
    except NotJudgedError:
        return 0.0
    largest_deviation = 0.0
    for actual, expected_value in zip(record.results(), expected, strict=False):
        if actual.shape == expected_value.shape and actual.size:
            with np.errstate(all="ignore"):
                deviations = np.abs(
                    actual.wide_array()
                    - (expected_value.astype(np.float64) if expected_value.dtype.kind == "b" else expected_value)
                )
                largest_deviation = max(
                    largest_deviation, float(np.max(np.where(np.isfinite(deviations), deviations, 0.0)))
                )
    return largest_deviation / error_units**0.5 if 1 < error_units < float("inf") else largest_deviation / 2


def minimize(record: Record, backend: Any, judge: Judge) -> Record:
    """Returns the call with the smallest inputs for which it is still wrong.

    Axes of equal length are cut together, to their first or last half, as long as the call is wrong.
    """
    if not _is_wrong(record, judge) or _record_again(record, backend, judge, record.tensors) is None:
        return record
    trial_count, was_reduced = 0, True
    while was_reduced and trial_count < _TRIALS:
        was_reduced = False
        for tensors in _smaller_inputs(record):
            trial_count += 1
            smaller_record = _record_again(record, backend, judge, tensors)
            if smaller_record is not None:
                record, was_reduced = smaller_record, True
                break
            if trial_count >= _TRIALS:
                break
    return record


def _smaller_inputs(record: Record) -> Iterator[list[Host]]:
    input_numbers = {*tensor_numbers(record.args), *tensor_numbers(record.kwargs)}
    input_hosts = [record.tensors[i] for i in sorted(input_numbers)]
    axis_lengths = sorted({n for host in input_hosts for n in host.shape if n > 1}, reverse=True)
    axes = sorted({i for host in input_hosts for i in range(len(host.shape))})
    lengths_and_axes: list[tuple[int, int | None]] = [(n, None) for n in axis_lengths] + [
        (n, axis) for n in axis_lengths for axis in axes
    ]
    for length, axis in lengths_and_axes:
        for kept_slice in (slice(0, length // 2), slice(length // 2, length), slice(0, length - 1), slice(1, length)):
            cut_tensors = [
                host if i not in input_numbers else Host(_cut_axis(host.bits, length, axis, kept_slice), host.dtype)
                for i, host in enumerate(record.tensors)
            ]
            if any(a.shape != b.shape for a, b in zip(cut_tensors, record.tensors, strict=True)):
                yield cut_tensors


def _cut_axis(bits: Any, length: int, axis: int | None, part: slice) -> Any:
    axis_slices = tuple(part if n == length and axis in (None, i) else slice(None) for i, n in enumerate(bits.shape))
    return np.asarray(bits[axis_slices])


def _record_again(record: Record, backend: Any, judge: Judge, tensors: Sequence[Host]) -> Record | None:
    """Returns a call with other inputs, if it is wrong on its backend as well."""
    smaller_record = record.with_tensors(list(tensors), error="", result={"u": []})
    try:
        result = repeat_call(smaller_record, backend, OPS[record.op].function)
    except Exception as error:  # noqa: BLE001  (smaller inputs may be refused, by any error)
        if not record.error or type(error).__name__ != record.error.partition(":")[0]:
            return None
        smaller_record.error = record.error
        return smaller_record if _is_wrong(smaller_record, judge) else None
    if record.error:
        return None

    def add_tensor(tensor: Any) -> int:
        smaller_record.tensors.append(to_host(tensor, backend))
        return len(smaller_record.tensors) - 1

    smaller_record.result = encode(result, backend, add_tensor)
    return smaller_record if _is_wrong(smaller_record, judge) else None


def _is_wrong(record: Record, judge: Judge) -> bool:
    try:
        return not judge.judge(record).error <= 1
    except NotJudgedError:
        return False


def _arrays_path(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.npz"
