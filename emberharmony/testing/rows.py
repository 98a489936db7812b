"""Facts derived from a sample row: the dtypes it is run in, the dtype of its result, which arguments are tensors."""

from collections.abc import Callable

from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import DTypeError, EmberError
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.registry import OPS
from emberharmony.core.selection import current
from emberharmony.testing.call import Call
from emberharmony.testing.sample import Case, Sample, cast_to_dtype
from emberharmony.testing.verify import result_parts


def dtypes_of(sample: Sample) -> list[str]:
    """Returns the dtypes in which a row is run on the active backend: those that the backend has."""
    available_dtypes = current().dtypes.available
    return [dtype for dtype in (*sample.dtypes, *sample.integers) if as_dtype(dtype) in available_dtypes]


_RULES: dict[str, Callable[[str], str]] = {
    "any": lambda name: "",
    "promoted": lambda name: name,
    "float": lambda name: as_inexact(as_dtype(name)).name,
    "real": lambda name: {"complex64": "float32", "complex128": "float64"}.get(name, name),
    "complex": lambda name: "complex128" if name in ("float64", "complex128") else "complex64",
    "wide": lambda name: {"float16": "float32", "bfloat16": "float32"}.get(name, name),
    "sum": lambda name: {"signed": "int64", "unsigned": "uint64", "bool": "int64"}.get(as_dtype(name).kind, name),
}


def result_dtype(sample: Sample, dtype: str) -> str | tuple[str, ...]:
    """Returns the dtype that the result must have for inputs of `dtype`; "" for any, a tuple for several results."""
    if isinstance(sample.result, tuple):
        return tuple(_result_dtype(words, dtype) for words in sample.result)
    return _result_dtype(sample.result, dtype)


def _result_dtype(words: str, dtype: str) -> str:
    for word in words.split():
        dtype = _RULES[word](dtype) if word in _RULES else word
    return dtype


def call_of(sample: Sample, check: str, dtype: str, label: str, item: Case, index: int = 0) -> Call:
    """Returns a call of a row's op with its floating arrays cast to a dtype."""
    casts_floats = not sample.fixed
    args = cast_to_dtype(item.args, dtype, casts_floats)
    kwargs = {name: cast_to_dtype(value, dtype, casts_floats) for name, value in item.kwargs.items()}
    is_computed_in_float32 = sample.narrows and "complex128" not in current().dtypes.available
    wanted_dtype = result_dtype(sample, "float32" if is_computed_in_float32 and dtype == "float64" else dtype)
    dtype_option = {"dtype": dtype} if sample.named else {}
    return Call(
        check,
        dtype,
        label,
        args,
        kwargs,
        wanted_dtype,
        sample.tolerance,
        error_of_missing_dtype(wanted_dtype),
        index,
        dtype_option,
    )


def error_of_missing_dtype(result: str | tuple[str, ...]) -> type[EmberError] | None:
    """Returns the error that is expected because the active backend lacks a dtype of the result; None if it has all."""
    available_dtypes = current().dtypes.available
    return None if all(name in ("", *available_dtypes) for name in result_parts(result)) else DTypeError


def tensor_roles(sample: Sample) -> dict[int, str]:
    """Returns the role ("TensorLike", "Operand" or "Tensors") by position of the arguments that are tensors."""
    role_by_position: dict[int, str] = {}
    for position, parameter in enumerate(OPS[sample.op].parameters):
        if parameter.role in ("TensorLike", "Operand", "Tensors"):
            role_by_position |= dict.fromkeys(
                range(position, 99) if parameter.variadic else (position,), parameter.role
            )
    return role_by_position
