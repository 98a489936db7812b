"""Comparison of an op's result with the oracle's: number of results, dtype, shape and values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.choice import current
from emberharmony.testing.sample import error_in_eps


class DisagreementError(AssertionError):
    """Raised when a result differs from the expected one; `error` is its largest error in units of the tolerance."""

    def __init__(self, message: str, error: float = 0.0) -> None:
        super().__init__(message)
        self.error = error


def verify(
    result: Any, expected: Any, dtype: str | tuple[str, ...] = "", tolerance: float = 0.0, floor: float = 1.0
) -> float:
    """Checks a result (or each of several) of the active backend; returns its largest error in units of the tolerance.

    Args:
        expected: host arrays, floating ones in float64.
        dtype: the name of the dtype that each tensor must have, or a tuple with one name for each; "" for any.
        tolerance: the largest allowed error in eps of the result's dtype, times `max(|expected|, floor)`.

    Raises:
        DisagreementError: if the number of results, a dtype, a shape or a value is not as expected.
    """
    actual_results, expected_results = result_parts(result), result_parts(expected)
    if len(actual_results) != len(expected_results):
        raise DisagreementError(f"returns {len(actual_results)} results, expected {len(expected_results)}")
    wanted_dtypes = dtype if isinstance(dtype, tuple) else (dtype,) * len(actual_results)
    return max(
        (
            _error_of_part(*result_triple, tolerance, floor)
            for result_triple in zip(actual_results, expected_results, wanted_dtypes, strict=True)
        ),
        default=0.0,
    )


def _error_of_part(result: Any, expected: Any, dtype: str, tolerance: float, floor: float) -> float:
    dtype_name = ops.dtype(result).name if current().is_tensor(result) else ""
    if dtype and dtype_name != dtype:
        raise DisagreementError(f"result has dtype {dtype_name or 'none'}, expected {dtype}")
    host_array = to_host(result)
    if host_array.shape != np.shape(expected):
        raise DisagreementError(f"result has shape {host_array.shape}, expected {np.shape(expected)}")
    error_in_eps_units = error_in_eps(host_array, expected, dtype_name, floor)
    error_in_tolerances = error_in_eps_units / tolerance if tolerance else error_in_eps_units and np.inf
    if not error_in_eps_units <= tolerance:
        comparison_text = f"got {host_array!r:.200}, expected {np.asarray(expected)!r:.200}"
        raise DisagreementError(
            f"error {error_in_eps_units:.3g} eps exceeds the tolerance of {tolerance:g} eps: {comparison_text}",
            error_in_tolerances,
        )
    return float(error_in_tolerances)


def result_parts(result: Any) -> Sequence[Any]:
    """Returns the results of an op as a sequence, even if there is only one."""
    return result if isinstance(result, (tuple, list)) else [result]


def to_host(value: Any) -> np.ndarray[Any, Any]:
    """Returns a tensor or number as a host array."""
    return np.asarray(ops.to_numpy(value)) if hasattr(value, "dtype") else np.asarray(value)
