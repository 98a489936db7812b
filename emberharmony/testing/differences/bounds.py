"""How large an error may be: the tolerance of the op's sample row, and errors in units of it."""

import functools
import importlib.util
import math
from typing import Any, NamedTuple

import numpy as np

from emberharmony.core.registry import OPS
from emberharmony.testing.differences.measures import PART, largest_finite
from emberharmony.testing.differences.records import Array, Host, Record
from emberharmony.testing.sample import EPSILON, TINY, Sample

MARGIN = 8.0
"""The allowed error is this many times the tolerance of the op's sample row, because the inputs are others."""

_USUAL = 4.0
"""The tolerance, in eps, of an op without a row or whose row has no oracle."""

_SENSITIVE = 16.0
"""The allowed error is this many times the change of the result that rounding of the inputs causes."""

EDGES = frozenset(("isclose", "allclose", "histogram", "matrix_rank", "digitize", "mod", "remainder", "fmod"))
"""Ops without rounding errors of their own, whose results jump where a computed number crosses an edge."""


@functools.cache
def sample_rows() -> dict[str, Sample]:
    """Returns the sample rows, by op; none if SciPy, which they need, is not installed."""
    if importlib.util.find_spec("scipy") is None:
        return {}
    from emberharmony.testing.samples import all_samples  # imported here, because the sample rows need SciPy

    return all_samples()


class Allowed(NamedTuple):
    """The allowed error of an op in eps, its floor, and whether it is relative to each element or to the largest one.

    Attributes:
        eps: the error, in eps.
        floor: below this magnitude it no longer shrinks.
        each: whether it is relative to each element, and not to the largest one.
        exact: whether rounding of the inputs explains no error.
    """

    eps: float
    floor: float
    each: bool
    exact: bool


@functools.cache
def allowed_error(op: str) -> Allowed:
    """Returns the error that is allowed for an op."""
    row = sample_rows().get(op)
    if row is None or row.reference:
        is_exact_category = op in OPS and OPS[op].category in ("comparison", "sorting", "bitwise")
        return Allowed(MARGIN * _USUAL, 1.0, False, is_exact_category)
    if not row.tolerance:
        return Allowed(1.0, 0.0, True, op not in EDGES)
    return Allowed(MARGIN * row.tolerance, row.floor, _is_elementwise(op), False)


@functools.cache
def _is_elementwise(op: str) -> bool:
    """Returns whether an op works element by element: its oracle gives some of the elements the same results."""
    row = sample_rows()[op]
    return row.elementwise or any(_has_same_part(row, item.args, item.kwargs) for item in row.cases)


def _has_same_part(row: Sample, args: Any, kwargs: Any) -> bool:
    array_arguments = [x for x in args if isinstance(x, np.ndarray)]
    if len({x.shape for x in array_arguments}) != 1 or array_arguments[0].size < 4:
        return False

    def call_oracle(part: Any) -> Any:
        partial_arguments = [part(x) if isinstance(x, np.ndarray) else x for x in args]
        return row.oracle(*partial_arguments, **kwargs)

    def every_second_reversed(x: Array) -> Array:
        return x.reshape(-1)[::-2][1:].copy()

    try:
        with np.errstate(all="ignore"):
            whole_result, result_of_part = call_oracle(lambda x: x), call_oracle(every_second_reversed)
    except Exception:  # noqa: BLE001  (an oracle may raise anything for a vector)
        return False
    if isinstance(whole_result, (tuple, list)) or np.shape(whole_result) != array_arguments[0].shape:
        return False
    expected_part = every_second_reversed(np.asarray(whole_result))
    return np.shape(result_of_part) == expected_part.shape and np.allclose(
        result_of_part, expected_part, 1e-12, 0.0, equal_nan=True
    )


def sum_allowance(record: Record) -> float:
    """Returns by how much longer sums allow larger errors: a quarter of the root of the terms of each result.

    There are as many terms as inputs for each result, or as a product of two matrices with so many elements has.
    """
    smallest_result_size = max(1, min((host.size for host in record.results()), default=1))
    float_input_sizes = sorted((host.size for host in record.inputs() if host.dtype in EPSILON), reverse=True)
    term_count = max((host.size for host in record.inputs()), default=1) / smallest_result_size
    if len(float_input_sizes) > 1:
        term_count = max(term_count, math.sqrt(float_input_sizes[0] * float_input_sizes[1] / smallest_result_size))
    return max(1.0, math.sqrt(term_count) / 4)


def largest_input(record: Record) -> float:
    """Returns the largest magnitude of a finite number in the floating inputs."""
    row = sample_rows().get(record.op)
    if row is None or not row.floor or not row.tolerance or not _is_elementwise(record.op):
        return 0.0
    largest_magnitude = 0.0
    with np.errstate(all="ignore"):
        for host in record.inputs():
            for block in host.blocks(PART) if host.dtype in EPSILON else ():
                largest_magnitude = max(largest_magnitude, _largest_finite(block))
    return largest_magnitude


def _largest_finite(part: Array) -> float:
    """Returns the largest magnitude of a finite number in a vector; 0 if there is none."""
    magnitudes = np.abs(part)
    largest_magnitude = float(magnitudes.max())
    return (
        largest_magnitude
        if math.isfinite(largest_magnitude)
        else float(np.max(magnitudes[np.isfinite(magnitudes)], initial=0.0))
    )


class Bounds:
    """Measures the errors of tensors in units of the error that is allowed for their op.

    Args:
        share: by how much larger the allowed errors are than usual.
    """

    def __init__(self, share: float) -> None:
        self._share = share

    def limit(self, op: str, dtype: str, sum_factor: float) -> float:
        """Returns the allowed error of the largest element, as a share of that element.

        Args:
            op: the op.
            dtype: that of the result.
            sum_factor: by how much sums allow larger errors.
        """
        return self._share * allowed_error(op).eps * sum_factor * EPSILON[dtype]

    def covers(self, op: str, dtype: str, off: float, most: float) -> bool:
        """Returns whether an error is allowed for each element of a tensor, however small the element is.

        Args:
            op: the op.
            dtype: that of the tensor.
            off: the error.
            most: the largest element.
        """
        relative_floor = min(allowed_error(op).floor, most)
        return off <= self._share * allowed_error(op).eps * EPSILON[dtype] * relative_floor

    def error(
        self, op: str, actual: Host, expected: Host, sum_factor: float, input_magnitude: float, allowance: Any = 0.0
    ) -> float:
        """Returns the error of a tensor in units of the allowed one.

        Args:
            op: the name of the op.
            actual: the tensor.
            expected: what it should be, perhaps in a wider dtype.
            sum_factor: by how much sums allow larger errors.
            input_magnitude: the magnitude of the inputs.
            allowance: the error that rounding of the inputs explains: a number, or one for each element.
        """
        error_bound = allowed_error(op)
        if actual.dtype not in EPSILON:
            if op in EDGES and actual.shape == expected.shape and np.any(allowance):
                return 0.0
            is_same_shape = actual.shape == expected.shape and all(
                np.array_equal(x, y) for x, y in zip(actual.blocks(PART), expected.blocks(PART), strict=True)
            )
            return 0.0 if is_same_shape else math.inf
        if not actual.size:
            return 0.0
        with np.errstate(all="ignore"):
            magnitude = max(_largest_finite(block) for block in expected.blocks(PART))
            if not error_bound.exact:
                allowance = _SENSITIVE * np.where(np.isfinite(allowance), allowance, 0.0)
            else:
                allowance = 0.0
            floor = min(error_bound.floor, max(magnitude, input_magnitude))
            unit = self._share * error_bound.eps * (1.0 if error_bound.each else sum_factor) * EPSILON[actual.dtype]
            tiny, limit = TINY.get(actual.dtype, 2.0**-1022), largest_finite(actual.dtype)
            worst_units, start = 0.0, 0
            allowance = allowance.reshape(-1) if np.ndim(allowance) else allowance
            for result_block, expected_block in zip(actual.blocks(PART), expected.blocks(PART), strict=True):
                allowance_part = allowance[start : start + PART] if np.ndim(allowance) else allowance
                start += PART
                block_error = _error_units(
                    result_block, expected_block, error_bound.each, magnitude, floor, unit, tiny + allowance_part
                )
                if not math.isfinite(block_error) or magnitude > limit:
                    block_error = _error_with_nonfinite(
                        result_block,
                        expected_block,
                        error_bound.each,
                        magnitude,
                        floor,
                        unit,
                        tiny + allowance_part,
                        limit,
                    )
                worst_units = max(worst_units, block_error)
        return worst_units


def _error_units(
    actual: Array,
    expected: Array,
    by_element: bool,
    largest_magnitude: float,
    magnitude_floor: float,
    unit: float,
    allowance: Any,
) -> float:
    """Returns the largest error of an array in units of the allowed one; not finite if a number is not finite."""
    deviation = np.abs(actual - expected)
    if by_element or np.ndim(allowance):
        magnitude_scale = (
            np.maximum(np.abs(expected), magnitude_floor) if by_element else max(largest_magnitude, magnitude_floor)
        )
        return float(np.max(deviation / (unit * magnitude_scale + allowance)))
    return float(np.max(deviation)) / (unit * max(largest_magnitude, magnitude_floor) + float(allowance))


def _error_with_nonfinite(
    actual: Array,
    expected: Array,
    by_element: bool,
    largest_magnitude: float,
    magnitude_floor: float,
    unit: float,
    allowance: Any,
    limit: float,
) -> float:
    """Returns the largest error of two arrays with infinities or NaN, in units of the allowed one."""
    if actual.dtype.kind in "fc":
        wide_dtype = np.complex128 if actual.dtype.kind == "c" else np.float64
        actual = actual.astype(wide_dtype)
    is_equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    if is_equal.all():
        return 0.0
    deviation = np.where(is_equal, 0.0, np.abs(actual - expected))
    is_too_large = (np.abs(expected) > limit) & ~np.isfinite(
        actual
    )  # the result is too large for the dtype on every side
    if expected.dtype.kind == actual.dtype.kind == "f":
        is_too_large &= np.signbit(expected) == np.signbit(actual)
    deviation = np.where(is_too_large & ~np.isnan(actual) & ~np.isnan(expected), 0.0, deviation)
    finite_magnitudes = np.abs(np.where(np.isfinite(expected), expected, 0.0))
    error_units = deviation / (
        unit * np.maximum(finite_magnitudes if by_element else largest_magnitude, magnitude_floor) + allowance
    )
    return float(np.where(np.isnan(deviation) | np.isinf(deviation), math.inf, error_units).max())
