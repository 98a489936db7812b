"""Judgement of a recorded call: the error of its results against the op in float64 on NumPy, in units of tolerance."""

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony.backend.shared.random_streams import HOST
from emberharmony.core import selection
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.registry import EMPTY, OPS, OpSpec
from emberharmony.testing.differences.bounds import (
    EDGES,
    MARGIN,
    Bounds,
    allowed_error,
    largest_input,
    sample_rows,
    sum_allowance,
)
from emberharmony.testing.differences.measures import Distance, describe_mismatch, distance, relative_difference
from emberharmony.testing.differences.records import NO_OPTIONS, Array, Host, Record, decode
from emberharmony.testing.differences.runs import STREAM, draws_numbers, separate_streams, with_host_draws
from emberharmony.testing.sample import EPSILON

ORACLE = "the oracle of the op's row"
"""The name of the reference in a verdict by the oracle, which is asked where NumPy's backend and a side disagree."""

_AS_GIVEN = frozenset(("view", "nextafter", "spacing", "frexp", "ldexp", "to_numpy", "finfo", "from_dlpack"))
"""Ops whose results depend on the dtype of the inputs."""

_UNSPECIFIED = frozenset(("empty", "empty_like", "argpartition", "get_device", "to_device", "memory_info"))
"""Ops whose results may differ between backends."""

_ARITHMETIC = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
"""The NumPy functions of the arithmetic ops whose results IEEE 754 prescribes exactly."""

_WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


_CHANGES = 4
"""The number of random changes of the inputs by rounding; the effects of a single change may cancel in a sum."""


class NotJudgedError(Exception):
    """Raised if a call cannot be made again on NumPy; the message has the reason."""


class Judged(NamedTuple):
    """The verdict on a call: its error in units of the tolerance, and the reference that it was compared with."""

    error: float
    by: str
    why: str = ""


class Difference(NamedTuple):
    """The difference of the results of one call on two sides, in units of the allowed error and as a share.

    `units` is the largest difference in units of the allowed one, `share` that difference as a share of the largest
    element, and `why` says what differs in kind: a dtype, a shape, the number of results. `explained` says that the
    noise of the inputs explains the difference, whose units are then not measured. `most` is the largest difference of
    floating elements as it is.
    """

    units: float
    share: float
    why: str = ""
    explained: bool = False
    most: float = 0.0


_EQUAL = Difference(0.0, 0.0)

_NOISE = 1e-4
"""Differences of the inputs up to this share of the largest element count as rounding."""

GROWTH = 4.0
"""Differences of the inputs by rounding explain differences of the results up to this many times as large."""


def is_explained_by_noise(one: Record, other: Record, share: float) -> bool:
    """Returns whether the differences of the arguments are noise, and so large as to explain that of the results.

    A fault that they hide is as small as the noise. Of elementwise ops the largest relative differences of elements
    must explain each other too.

    Args:
        one: the call on the first side.
        other: the call on the second side.
        share: how far the results differ.
    """
    first_arguments, second_arguments = one.inputs(), other.inputs()
    argument_noise = 0.0
    for a, b in zip(first_arguments, second_arguments, strict=False):
        argument_noise += distance(a, b).share
    if (
        not 0.0 < argument_noise <= _NOISE
        or share > GROWTH * argument_noise
        or describe_mismatch(first_arguments, second_arguments)
    ):
        return False
    error_bound = allowed_error(one.op)
    if error_bound.exact or not error_bound.each:
        return True
    largest_deviation = max(_relative_differences(one.results(), other.results()), default=0.0)
    return largest_deviation <= GROWTH * sum(_relative_differences(first_arguments, second_arguments))


def _distance_moved(one: Record, other: Record, result: Host) -> Distance | None:
    """Returns the distance of the two sides' arguments, if the op only moves elements; otherwise None.

    Args:
        one: the call on the first side.
        other: the call on the second side.
        result: the result on the first side.
    """
    if not _only_moves_elements(one.op):
        return None
    first_arguments, second_arguments = one.inputs(), other.inputs()
    if not len(first_arguments) == len(second_arguments) == 1 or (
        first_arguments[0].size,
        first_arguments[0].dtype,
    ) != (
        result.size,
        result.dtype,
    ):
        return None
    return distance(first_arguments[0], second_arguments[0])


@functools.cache
def _only_moves_elements(op: str) -> bool:
    """Returns whether an op only moves the elements of its argument, as reshaping does, and computes nothing."""
    return op in OPS and OPS[op].category in ("shape", "rearranging")


def _relative_differences(first: Sequence[Host], second: Sequence[Host]) -> list[float]:
    """Returns the largest difference of two elements, as a share of the element, of each pair of floating tensors."""
    return [distance(a, b).relative_gap(a, b) for a, b in zip(first, second, strict=True) if a.dtype in EPSILON]


class Judge:
    """Compares the calls of two sides, and measures the error of one call against float64 on NumPy.

    Args:
        tolerance: how many times the tolerance of its row an op may be off.
    """

    def __init__(self, tolerance: float | None = None) -> None:
        self._bounds = Bounds(1.0 if tolerance is None else tolerance / MARGIN)
        self.fallbacks: set[str] = set()

    def difference(self, one: Record, other: Record, explain: bool = False) -> Difference:
        """Returns how the results of the same call on two sides differ.

        Args:
            one: the call on the first side.
            other: the call on the second side.
            explain: whether noise of the inputs may explain it.
        """
        first_results, second_results = one.results(), other.results()
        # The encoded results of most calls are one shared object, so a test for identity comes first.
        is_same_result = one.result is other.result or one.plain_results() == other.plain_results()
        mismatch_text = describe_mismatch(first_results, second_results) or (
            "" if is_same_result else "the numbers returned differ"
        )
        if mismatch_text or one.op in _UNSPECIFIED:
            for a, b in zip(first_results, second_results, strict=False):
                distance(a, b)  # `Nearby.refresh` needs the distances of earlier results
            return _EQUAL if one.op in _UNSPECIFIED else Difference(math.inf, math.inf, mismatch_text)
        bounds, error_bound = self._bounds, allowed_error(one.op)
        worst_error = largest_gap = sum_factor = largest_absolute_gap = 0.0
        pairs_to_examine = []
        for a, b in zip(first_results, second_results, strict=True):
            tensor_distance = distance(a, b, error_bound.each, _distance_moved(one, other, a))
            if not tensor_distance.share:
                continue
            largest_gap = max(largest_gap, tensor_distance.share)
            largest_absolute_gap = max(
                largest_absolute_gap, tensor_distance.most if tensor_distance.most < math.inf else 0.0
            )
            sum_factor = sum_factor or (1.0 if error_bound.each else sum_allowance(one))
            if a.dtype not in EPSILON or not math.isfinite(tensor_distance.share):
                pairs_to_examine.append((a, b))
            elif not error_bound.each:
                worst_error = max(worst_error, tensor_distance.share / bounds.limit(one.op, a.dtype, sum_factor))
            elif not bounds.covers(
                one.op, a.dtype, tensor_distance.most, tensor_distance.most / tensor_distance.share
            ) and tensor_distance.relative_gap(a, b) > bounds.limit(one.op, a.dtype, sum_factor):
                pairs_to_examine.append((a, b))
        if not largest_gap:
            return _EQUAL
        if (worst_error > 1 or pairs_to_examine) and explain and is_explained_by_noise(one, other, largest_gap):
            return Difference(math.inf, largest_gap, explained=True, most=largest_absolute_gap)
        if pairs_to_examine:
            input_magnitude = largest_input(one)
            worst_error = max(
                worst_error, *(bounds.error(one.op, a, b, sum_factor, input_magnitude) for a, b in pairs_to_examine)
            )
        return Difference(worst_error, largest_gap, most=largest_absolute_gap)

    def judge(self, record: Record, kinds: bool = True) -> Judged:
        """Returns the error of a call in units of the allowed one.

        Args:
            record: the call.
            kinds: whether the dtypes of the result are judged too.

        Raises:
            NotJudgedError: if NumPy cannot make the call.
        """
        if record.op in _UNSPECIFIED:
            raise NotJudgedError("its result is not specified")
        if _is_correctly_rounded(record):
            return Judged(0.0, "IEEE 754")
        references = self.reference_results(record)
        results = record.results()
        if record.error:
            return Judged(math.inf, "NumPy in float64", record.error)
        if len(references) != len(results):
            return Judged(math.inf, "NumPy in float64", f"{len(results)} results in the place of {len(references)}")
        largest_error, reason_text, deviating_indices = 0.0, "", []
        for index, (actual, expected_value) in enumerate(zip(results, references, strict=True)):
            if actual.shape != expected_value.shape:
                return Judged(
                    math.inf, "NumPy in float64", f"its shape is {actual.shape}, expected {expected_value.shape}"
                )
            error_units = self._error_in_units(record, actual, expected_value)
            if not error_units <= 1:
                deviating_indices.append(index)
            largest_error = max(largest_error, error_units)
        fault_text = self._dtype_fault_text(record) if kinds else ""
        if fault_text:
            return Judged(math.inf, "NumPy", fault_text)
        reference_name = "NumPy in float64"
        if deviating_indices:
            largest_error = min(largest_error, self._error_beyond_rounding(record, references))
        if not largest_error <= 1:
            oracle_error = self._oracle_error(record)
            if oracle_error is None:
                self.fallbacks.add(record.op)
            else:
                return Judged(min(oracle_error, largest_error) if oracle_error <= 1 else largest_error, ORACLE)
        return Judged(largest_error, reference_name, reason_text)

    def _error_in_units(self, record: Record, actual: Host, expected_array: Array, allowance: Any = 0.0) -> float:
        expected = Host(expected_array, expected_array.dtype.name)
        return self._bounds.error(record.op, actual, expected, sum_allowance(record), largest_input(record), allowance)

    def reference_results(self, record: Record, change: float = 0.0, seed: int = 0) -> list[Array]:
        """Returns the results of a recorded call that is repeated on NumPy in float64.

        Args:
            record: the call.
            change: by which share of themselves the floating inputs are changed.
            seed: draws the signs of the changes.
        """
        is_wide = record.op not in _AS_GIVEN and not draws_numbers(OPS[record.op])
        rng = np.random.default_rng(seed)

        def reference_array(place: int) -> Any:
            host = record.tensors[place]
            array = host.wide_array() if is_wide else host.as_array()
            if change and array.dtype.kind in "fc":
                array = array * (1.0 + change * np.where(rng.random(array.shape) < 0.5, -1.0, 1.0))
            return np.asarray(array)

        def reference_dtype(name: str) -> Any:
            return as_dtype(_WIDE.get(name, name) if is_wide else name)

        return [np.asarray(x) for x in self._results_of(record, reference_array, reference_dtype)]

    def _results_of(self, record: Record, tensor: Callable[[int], Any], dtype: Callable[[str], Any]) -> list[Any]:
        """Repeats a recorded call on NumPy and returns the tensors and the numbers of its result as arrays."""
        try:
            args, kwargs = decode(record.args, tensor, dtype), decode(record.kwargs, tensor, dtype)
            stream_context = separate_streams() if record.streams else contextlib.nullcontext()
            with stream_context, selection.Override(with_host_draws("numpy")), np.errstate(all="ignore"):
                if record.streams:
                    STREAM.get().load_state_dict(record.streams[0])
                    HOST.get().load_state_dict(record.streams[1])
                result = OPS[record.op].function(*_without_devices(args, OPS[record.op]), **kwargs)
        except Exception as error:  # an op may raise anything for the arguments of a damaged call
            raise NotJudgedError(f"NumPy raises {type(error).__name__}: {error}"[:200]) from error
        return list(_leaves_of_result(result))

    def _dtype_fault_text(self, record: Record) -> str:
        """Returns a text that says how the dtypes of a call's results differ from NumPy's; "" if they do not."""
        result_dtypes = [host.dtype for host in record.results()]
        if all(name in ("bool", "float32", "int64") for name in result_dtypes) and not record.inputs():
            return ""
        try:
            numpy_results = self._results_of(record, lambda place: record.tensors[place].as_array(), as_dtype)
        except NotJudgedError:
            return ""
        expected_dtype_names = [np.asarray(x).dtype.name for x in numpy_results]
        if expected_dtype_names == result_dtypes or any(
            name not in EPSILON and name not in _WHOLE for name in expected_dtype_names
        ):
            return ""
        differing_dtypes = [(a, b) for a, b in zip(result_dtypes, expected_dtype_names, strict=False) if a != b]
        row = sample_rows().get(record.op)
        if (row is not None and row.narrows) or all({a, b} == {"complex64", "complex128"} for a, b in differing_dtypes):
            return ""  # a backend without complex128 may compute in single precision
        return f"its dtype is {differing_dtypes[0][0]}, expected {differing_dtypes[0][1]}" if differing_dtypes else ""

    def _error_beyond_rounding(self, record: Record, expected_results: Sequence[Array]) -> float:
        """Returns the error of a call, where an error that rounding of its inputs explains is allowed."""
        float_dtype_names = [host.dtype for host in (*record.inputs(), *record.results()) if host.dtype in EPSILON]
        if not float_dtype_names or (allowed_error(record.op).exact and record.op not in EDGES):
            return math.inf
        relative_change = max(EPSILON[name] for name in float_dtype_names) / 2
        explained_errors: list[Any] = [0.0] * len(expected_results)
        for seed in range(_CHANGES):
            try:
                moved_results = self.reference_results(record, relative_change, seed)
            except NotJudgedError:
                return math.inf
            for index, (expected_value, moved_result) in enumerate(zip(expected_results, moved_results, strict=True)):
                with np.errstate(all="ignore"):
                    deviation: Any = np.abs(
                        np.subtract(
                            expected_value, moved_result, dtype=None if expected_value.dtype.kind == "c" else np.float64
                        )
                    )
                    explained_errors[index] = np.fmax(explained_errors[index], deviation)
        largest_error = 0.0
        for actual, expected_value, explained_error in zip(
            record.results(), expected_results, explained_errors, strict=True
        ):
            if not allowed_error(record.op).each and explained_error.size and actual.dtype in EPSILON:
                explained_error = np.nanmax(np.where(np.isfinite(explained_error), explained_error, 0.0))
            if actual.dtype not in EPSILON and not allowed_error(record.op).exact and np.any(explained_error):
                continue
            largest_error = max(largest_error, self._error_in_units(record, actual, expected_value, explained_error))
        return largest_error

    def verdict_by_oracle(self, record: Record) -> Judged | None:
        """Returns the verdict on a call by the oracle of the sample row; None if no oracle takes the arguments."""
        oracle_error = self._oracle_error(record)
        return None if oracle_error is None else Judged(oracle_error, ORACLE)

    def condition_number(self, record: Record) -> float:
        """Returns how much the op enlarges relative errors of its inputs, by one change of them; NaN if unknown."""
        try:
            expected_results, moved_results = self.reference_results(record), self.reference_results(record, 2.0**-26)
        except NotJudgedError:
            return math.nan
        error_growths = [
            relative_difference(a, b) / 2.0**-26
            for a, b in zip(expected_results, moved_results, strict=True)
            if a.dtype.kind in "fc"
        ]
        return max(error_growths, default=math.nan)

    def _oracle_error(self, record: Record) -> float | None:
        """Returns the error against the oracle of the op's row; None if there is none that takes these arguments."""
        row = sample_rows().get(record.op)
        if row is None or row.reference:
            return None
        try:
            args = decode(record.args, lambda place: record.tensors[place].wide_array())
            kwargs = decode(record.kwargs, lambda place: record.tensors[place].wide_array())
            oracle_args, keyword_args = _without_defaults(OPS[record.op], args, kwargs)
            with np.errstate(all="ignore"):
                expected_results = [np.asarray(x) for x in _leaves_of_result(row.oracle(*oracle_args, **keyword_args))]
            results = record.results()
            if [x.shape for x in expected_results] != [host.shape for host in results]:
                return None
            return max(self._error_in_units(record, g, w) for g, w in zip(results, expected_results, strict=True))
        except Exception:  # noqa: BLE001  (an oracle may raise anything for arguments that its row does not have)
            return None


def _is_correctly_rounded(record: Record) -> bool:
    """Returns whether the result of an op of arithmetic on tensors of one dtype is the one that IEEE 754 prescribes.

    Differences of inputs grow most often where such an op cancels, and float64 would take more time and memory.
    """
    numpy_function = _ARITHMETIC.get(record.op)
    results = record.results()
    if numpy_function is None or record.error or len(results) != 1 or record.kwargs != NO_OPTIONS:
        return False
    dtype = results[0].dtype
    if dtype not in ("float32", "float64") or any(host.dtype != dtype for host in record.inputs()):
        return False
    args = decode(record.args, lambda place: record.tensors[place].bits)
    if len(args) != 2:
        return False
    with np.errstate(all="ignore"):
        expected_array = numpy_function(*args)
    return expected_array.dtype == results[0].bits.dtype and np.array_equal(expected_array, results[0].bits)


_WHOLE = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))


def _without_devices(args: Sequence[Any], spec: OpSpec) -> list[Any]:
    """Returns arguments without devices, which NumPy lacks."""
    positional_parameters = [p for p in spec.parameters if not p.keyword_only]
    return [
        None
        if position < len(positional_parameters)
        and "Device" in positional_parameters[position].annotation
        and isinstance(arg, str)
        else arg
        for position, arg in enumerate(args)
    ]


def _without_defaults(spec: OpSpec, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns arguments without those that have their default, because oracles take few options."""
    if any(p.variadic for p in spec.parameters):
        return list(args), kwargs
    value_by_name: dict[str, Any] = {}
    positional_args: list[Any] = []
    parameter_by_name = {p.name: p for p in spec.parameters}
    has_left_out = False
    for parameter, value in zip(spec.parameters, args, strict=False):
        if parameter.default is not EMPTY and _is_default(value, parameter.default):
            has_left_out = True
        elif has_left_out:
            value_by_name[parameter.name] = value
        else:
            positional_args.append(value)
    value_by_name |= {
        n: v
        for n, v in kwargs.items()
        if n not in parameter_by_name or not _is_default(v, parameter_by_name[n].default)
    }
    return positional_args, value_by_name


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, np.ndarray) and value == default)


def _leaves_of_result(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from _leaves_of_result(item)
    elif isinstance(result, (np.ndarray, np.generic)):
        yield result
