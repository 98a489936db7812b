"""Checks that vary a row: integers of every width, empty axes, `dtype=`, large offsets, extremes, complex infinities.

Tables list the ops that a variation leaves out, each with the reason.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import ArgumentError, EmberError, IndexOutOfBoundsError, RangeError, ShapeError
from emberharmony.core.registry import OPS
from emberharmony.testing.call import Call
from emberharmony.testing.rows import call_of, dtypes_of, error_of_missing_dtype, result_dtype, tensor_roles
from emberharmony.testing.sample import Case, Sample, as_reference, cast_to_dtype, combined_arguments

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REFUSAL: tuple[type[EmberError], ...] = (ShapeError, ArgumentError, IndexOutOfBoundsError)

OFFSET = 1e4


def integer_width_calls(sample: Sample) -> Iterator[Call]:
    """Yields the cases in integer dtypes that the row does not name, if it names another of the same signedness."""
    if sample.reference:
        return
    dtype_kinds = {as_dtype(name).kind for name in sample.integers}
    for same_sign_dtypes, dtype_kind in ((SIGNED, "signed"), (UNSIGNED, "unsigned")):
        for dtype in same_sign_dtypes:
            if dtype_kind in dtype_kinds and dtype not in sample.integers:
                for index, item in enumerate(sample.cases):
                    if not _holds_nan(item.args):
                        yield call_of(sample, "integer widths", dtype, f"case {index}", item, index)


def _holds_nan(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_nan, value))
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc" and bool(np.isnan(value).any())


def empty_axis_calls(sample: Sample) -> Iterator[Call]:
    """Yields the cases with all axes of one length cut to length 0, unless the oracle fails for them."""
    if sample.reference or "empty axes" in sample.left_out:
        return
    for dtype in dtypes_of(sample)[:1]:
        for index, item in enumerate(sample.cases):
            for length in sorted(_axis_lengths(item.args)):
                empty_case = Case(_empty_axes(item.args, length), item.kwargs)
                call = call_of(sample, "empty", dtype, f"case {index} without {length}", empty_case, index)
                if _has_answer(call, sample):
                    allowed_refusals = _REFUSAL if "results of empty axes" in sample.left_out else ()
                    yield dataclasses.replace(call, may_refuse=allowed_refusals)


def _axis_lengths(value: Any) -> set[int]:
    if isinstance(value, (list, tuple)):
        return set().union(*map(_axis_lengths, value))
    return set(value.shape) - {0} if isinstance(value, np.ndarray) else set()


def _empty_axes(value: Any, length: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_empty_axes(item, length) for item in value)
    if isinstance(value, np.ndarray):
        for axis, axis_length in enumerate(value.shape):
            value = np.take(value, [], axis) if axis_length == length else value
    return value


def _has_answer(call: Call, sample: Sample) -> bool:
    try:
        call.oracle_result(sample)
    except Exception:  # noqa: BLE001  (an oracle may raise anything)
        return False
    return True


_READ: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("float32", "float64", (1e8, 1, 1, 1)),
    ("float32", "float64", (1e30, 1e30, 1e-30, 1e-30)),
    ("float16", "float32", (2048, 1, 1, 1)),
    ("float16", "float64", (300, 300, 0.002, 0.004)),
    ("bfloat16", "float32", (256, 1, 1, 1)),
    ("float32", "int8", (0.5, -0.75, 1.5, 2.5)),
    ("float32", "complex64", (0.5, -0.75, 1.5, 1.0)),
    ("int8", "int16", (100, 100, 1, 1)),
    ("int8", "float32", (100, -100, 3, 1)),
    ("int64", "float64", (2**40, 3, 1, 1)),
    ("uint8", "int64", (200, 100, 1, 0)),
    ("uint8", "float16", (1, 3, 2, 1)),
    ("bool", "float32", (1, 1, 0, 1)),
    ("bool", "int8", (1, 1, 1, 1)),
)
"""Triples of a tensor's dtype, the option `dtype`, and the values of the tensor, which are repeated.

The values are such that casting the tensor before the computation and casting the result after it differ.
"""


def early_cast_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls with the option `dtype`: the op must cast the tensor to it before the computation, not after it."""
    parameter_by_name = {p.name: p for p in OPS[sample.op].parameters}
    dtype_parameter = parameter_by_name.get("dtype")
    float_arrays = [value for item in sample.cases for value in item.args[:1] if _is_floating(value)]
    if dtype_parameter is None or not dtype_parameter.optional or sample.named or sample.reference or not float_arrays:
        return
    for source_dtype, read_dtype, sample_numbers in _READ:
        if not _runs_in_dtype(sample, source_dtype) or (
            sample.result == "float" and not as_dtype(read_dtype).is_floating
        ):
            continue
        for index, item in enumerate(sample.cases):
            if item.args and _is_floating(item.args[0]) and "dtype" not in item.kwargs:
                read_array = np.resize(np.array(sample_numbers), item.args[0].shape)
                varied_case = Case((read_array, *item.args[1:]), item.kwargs)
                call = call_of(sample, "dtype", source_dtype, f"case {index} as {read_dtype}", varied_case, index)
                if len(item.args) <= list(parameter_by_name).index("dtype"):
                    yield dataclasses.replace(
                        call,
                        result=read_dtype,
                        read_as=read_dtype,
                        raises=error_of_missing_dtype(read_dtype),
                        options={"dtype": read_dtype},
                    )


def _is_floating(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _runs_in_dtype(sample: Sample, dtype: str) -> bool:
    """Returns whether the active backend has a dtype, and the row is run in it or in one of the same integer kind."""
    if error_of_missing_dtype(dtype) is not None:
        return False
    dtype_kind = as_dtype(dtype).kind
    return dtype in sample.dtypes or (
        dtype_kind != "float" and dtype_kind in {as_dtype(name).kind for name in sample.integers}
    )


def large_offset_calls(sample: Sample) -> Iterator[Call]:
    """Yields the cases with `OFFSET` added to their tensors; the result must stay within the tolerance."""
    if sample.reference or sample.fixed or "large offsets" in sample.left_out or "float32" not in dtypes_of(sample):
        return
    for index, item in enumerate(sample.cases):
        call = call_of(
            sample, "large offset", "float32", f"case {index}", Case(_add_offset(item.args), item.kwargs), index
        )
        if any(_is_inexact_array(value) for value in _flat_leaves(item.args)) and _has_answer(call, sample):
            yield call


def _flat_leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _flat_leaves(item)] if isinstance(value, (list, tuple)) else [value]


def _is_inexact_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def _add_offset(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_add_offset(item) for item in value)
    return np.asarray(value + OFFSET) if _is_inexact_array(value) else value


def integer_extreme_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls of elementwise ops with the extremes of the integer dtypes, in all combinations with a result."""
    if not sample.elementwise or sample.reference or "extremes" in sample.left_out:
        return
    dtype_kinds = {as_dtype(name).kind for name in sample.integers}
    for dtype in (*SIGNED, *UNSIGNED):
        if as_dtype(dtype).kind in dtype_kinds:
            numbers = _extreme_numbers(dtype, exact="float" in str(sample.result))
            yield from _element_calls(sample, "huge integers", dtype, numbers)


def _extreme_numbers(dtype: str, exact: bool) -> np.ndarray[Any, Any]:
    """Returns the extremes of an integer dtype and numbers near them; if `exact`, only those that float32 can hold."""
    integer_limits = np.iinfo(dtype)
    numbers = [
        integer_limits.min,
        integer_limits.min + 1,
        -1,
        0,
        1,
        2,
        integer_limits.max - 1,
        integer_limits.max,
        2**24,
        2**53,
        2**53 + 1,
        2**62,
    ]
    exact_numbers = {
        n for n in numbers if integer_limits.min <= n <= integer_limits.max and not (exact and int(np.float32(n)) != n)
    }
    return np.array(sorted(exact_numbers), dtype)


def huge_integer_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls of elementwise ops with a tensor and a Python integer that only floating dtypes can hold."""
    if not sample.elementwise or sample.reference or list(tensor_roles(sample).values()) != ["Operand", "Operand"]:
        return
    first_numbers = sample.cases[0].args[0][:3]
    for dtype in dtypes_of(sample):
        if dtype in ("float32", "float64"):
            call = call_of(sample, "huge integers", dtype, f"{dtype} and 2**70", Case((first_numbers, 2**70)))
            with np.errstate(all="ignore"):
                if np.isfinite(np.asarray(sample.oracle(first_numbers, 2.0**70)).astype(np.float32)).all():
                    yield dataclasses.replace(call, numbers_as=float)
        elif dtype in SIGNED and sample.result == "promoted":
            yield Call(
                "huge integers",
                dtype,
                f"{dtype} and 2**70",
                (cast_to_dtype(first_numbers, dtype), 2**70),
                raises=RangeError,
            )


def complex_infinity_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls of elementwise ops with infinite parts of complex numbers, in all combinations that have a limit."""
    if not sample.elementwise or sample.reference or "complex infinities" in sample.left_out:
        return
    special_numbers = (np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5)
    for dtype in dtypes_of(sample):
        if as_dtype(dtype).is_complex:
            numbers = np.array([complex(a, b) for a in special_numbers for b in special_numbers], dtype)
            yield from _element_calls(sample, "complex infinities", dtype, numbers)


def _element_calls(sample: Sample, check: str, dtype: str, numbers: np.ndarray[Any, Any]) -> Iterator[Call]:
    """Yields one call with all combinations of `numbers` whose result is not NaN and does not overflow float32."""
    args = combined_arguments(sample.cases[0], numbers)
    wanted_dtype = result_dtype(sample, dtype)
    call = call_of(sample, check, dtype, "all combinations", Case(args))
    if call.raises is not None or not isinstance(wanted_dtype, str) or not _has_answer(call, sample):
        return
    expected_result = np.asarray(call.oracle_result(sample))
    with np.errstate(all="ignore"):
        is_testable = ~np.isnan(expected_result)
        if wanted_dtype and (as_dtype(wanted_dtype).is_floating or as_dtype(wanted_dtype).is_complex):
            is_testable &= ~(
                np.isfinite(expected_result) & ~np.isfinite(as_reference(expected_result).astype(np.complex64))
            )
    if is_testable.any():
        yield dataclasses.replace(
            call, args=tuple(arg[is_testable] if isinstance(arg, np.ndarray) else arg for arg in args)
        )


VARIATIONS = [
    integer_width_calls,
    empty_axis_calls,
    early_cast_calls,
    large_offset_calls,
    integer_extreme_calls,
    huge_integer_calls,
    complex_infinity_calls,
]
