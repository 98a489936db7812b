"""The checks: each is a function that yields the calls to make for a row. `CHECKS` lists them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import AxisError, BackendMismatchError, DTypeError, EmberError, RangeError, ShapeError
from emberharmony.core.numeric.promotion import promote, promote_weak
from emberharmony.core.registry import OPS
from emberharmony.testing.call import Call
from emberharmony.testing.gradient_rows import gradient_calls
from emberharmony.testing.inputs import Stranger, Strided, holds_strided
from emberharmony.testing.rows import call_of, dtypes_of, error_of_missing_dtype, result_dtype, tensor_roles
from emberharmony.testing.sample import Case, Sample, cast_to_dtype, combined_arguments, variants
from emberharmony.testing.variations import VARIATIONS

Calls = Callable[[Sample], Iterator[Call]]
_MIXED = (
    *(("int32", "float32"), ("float32", "float64"), ("float16", "bfloat16"), ("int64", "float16")),
    *(("uint8", "int8"), ("uint8", "int64"), ("int32", "int64"), ("bool", "float32"), ("bool", "int32")),
    *(("complex64", "float64"), ("int64", "complex64")),
)
_NUMBERS: tuple[tuple[str, type], ...] = (("float32", int), ("float64", float), ("float16", float), ("int32", int))
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5])


def value_calls(sample: Sample) -> Iterator[Call]:
    """Yields every case in every dtype; for elementwise ops 0-d, empty and strided inputs too."""
    for dtype in dtypes_of(sample):
        for index, (label, item) in enumerate(variants(sample)):
            yield call_of(sample, _case_kind(item), dtype, label, item, index)


def _case_kind(item: Case) -> str:
    arrays = [value for value in item.args if isinstance(value, np.ndarray)]
    if any(array.size == 0 for array in arrays):
        return "empty"
    return "0-d" if arrays and all(array.ndim == 0 for array in arrays) else "value"


def non_contiguous_calls(sample: Sample) -> Iterator[Call]:
    """Yields every case with native tensors that are not contiguous."""
    roles = tensor_roles(sample)
    for dtype in dtypes_of(sample)[:1]:
        for index, item in enumerate(sample.cases):
            call = call_of(sample, "non-contiguous", dtype, f"case {index}", item, index)
            strided_args = tuple(
                _as_strided(value) if position in roles else value for position, value in enumerate(call.args)
            )
            if any(holds_strided(value) for value in strided_args):
                yield Call(**{**vars(call), "args": strided_args})


def _as_strided(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_as_strided(item) for item in value)
    return Strided(value) if isinstance(value, np.ndarray) and value.size else value


def special_value_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls of elementwise ops with all combinations of NaN, infinities and both zeros."""
    if not sample.elementwise or "special values" in sample.left_out:
        return
    for dtype in dtypes_of(sample):
        if as_dtype(dtype).is_floating:
            yield call_of(
                sample,
                "NaN and infinity",
                dtype,
                "all combinations",
                Case(combined_arguments(sample.cases[0], _SPECIAL)),
            )


def promotion_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls of elementwise ops with two dtypes, a tensor and a number, and booleans where the op takes them."""
    argument_roles = list(tensor_roles(sample).values())
    if not sample.elementwise or "promotion" in sample.left_out:
        return
    args = sample.cases[0].args
    takes_booleans = OPS[sample.op].facts.takes and "bool" not in OPS[sample.op].facts.refuses
    if (takes_booleans or sample.result == "float") and "bool" not in dtypes_of(sample):
        yield _promotion_call(sample, "bool", "booleans", tuple(_cast_input(value, "bool") for value in args))
    if argument_roles != ["Operand", "Operand"]:
        return
    for dtype_pair in _MIXED:
        if set(dtype_pair) - {"bool"} <= set(dtypes_of(sample)):
            for dtype_names in (dtype_pair, dtype_pair[::-1]):
                common_dtype = promote(*map(as_dtype, dtype_names)).name
                mixed_args = tuple(
                    _cast_input(value, dtype_name) for value, dtype_name in zip(args, dtype_names, strict=True)
                )
                yield _promotion_call(sample, common_dtype, " and ".join(dtype_names), mixed_args)
    for dtype_name, number_class in _NUMBERS:
        if dtype_name in dtypes_of(sample):
            number = number_class(round(float(args[1][1]) * 4) / 4)
            common_dtype = promote_weak(as_dtype(dtype_name), number_class).name
            yield _promotion_call(
                sample, common_dtype, f"{dtype_name} and a number", (_cast_input(args[0], dtype_name), number)
            )


def _promotion_call(sample: Sample, common_dtype: str, label: str, args: tuple[Any, ...]) -> Call:
    wanted_dtype = result_dtype(sample, common_dtype)
    return Call(
        "promotion", common_dtype, label, args, {}, wanted_dtype, sample.tolerance, error_of_missing_dtype(common_dtype)
    )


def _cast_input(array: Any, dtype: str) -> Any:
    return array > 0 if dtype == "bool" else cast_to_dtype(array, dtype)


def error_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls that must raise a typed error: those that every op must refuse, and those that the row names."""
    if not dtypes_of(sample):
        return
    for number, (error_class, item) in enumerate(sample.refuses):
        yield Call("error", "", f"refusal {number}", item.args, item.kwargs, raises=error_class)
    if not sample.cases:
        return
    first_case, roles = sample.cases[0], tensor_roles(sample)
    position = next(
        (position for position, role in roles.items() if role != "Tensors" and position < len(first_case.args)), None
    )
    if position is not None:
        yield _error_call(
            sample, BackendMismatchError, "a foreign tensor", _replace_argument(first_case, position, Stranger())
        )
        yield _error_call(sample, DTypeError, "strings", _replace_argument(first_case, position, ["a", "b"]))
    if sample.elementwise and list(roles.values()) == ["Operand", "Operand"]:
        a, b = (np.resize(value, shape) for value, shape in zip(first_case.args, ((2, 3), (4,)), strict=True))
        yield _error_call(sample, ShapeError, "shapes that do not broadcast", Case((a, b)))
        if "uint8" in sample.integers and sample.result == "promoted":
            yield _error_call(sample, RangeError, "a number that does not fit", Case((np.ones(3, np.uint8), 300)))
    facts = OPS[sample.op].facts
    refused_kinds = facts.refuses
    if not facts.takes and sample.elementwise and "complex refusals" not in sample.left_out:
        refused_kinds = () if any(as_dtype(dtype).is_complex for dtype in sample.dtypes) else ("complex",)
    for kind in refused_kinds:
        dtype = {"bool": "bool", "float": "float32", "complex": "complex64"}[kind]
        args = tuple(
            np.asarray(value * 1j if kind == "complex" else value, dtype) if isinstance(value, np.ndarray) else value
            for value in first_case.args
        )
        yield Call("error", dtype, f"{kind} numbers", args, raises=DTypeError)
    axis_position = next((i for i, p in enumerate(OPS[sample.op].parameters) if p.name == "axis"), None)
    if axis_position is not None:
        bad_axis_case = (
            _replace_argument(first_case, axis_position, 99)
            if axis_position < len(first_case.args)
            else Case(first_case.args, {**first_case.kwargs, "axis": 99})
        )
        yield _error_call(sample, AxisError, "an axis out of bounds", bad_axis_case)


def _replace_argument(item: Case, position: int, value: Any) -> Case:
    return Case((*item.args[:position], value, *item.args[position + 1 :]), item.kwargs)


def _error_call(sample: Sample, kind: type[EmberError], label: str, item: Case) -> Call:
    first_dtype = dtypes_of(sample)[0]
    args, kwargs = (
        cast_to_dtype(item.args, first_dtype),
        {k: cast_to_dtype(v, first_dtype) for k, v in item.kwargs.items()},
    )
    return Call("error", first_dtype, label, args, kwargs, raises=kind)


CHECKS: list[Calls] = [
    value_calls,
    non_contiguous_calls,
    special_value_calls,
    promotion_calls,
    error_calls,
    *VARIATIONS,
    gradient_calls,
]
