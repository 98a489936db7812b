"""Translation of native errors to typed ones, whose message names the op, the backend, the arguments and a way out."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from emberharmony.core import errors
from emberharmony.core.axes import INDEX_RANGE, broadcast_shape, missing_axis_hint
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import DTypeError, EmberError, ShapeError, brief
from emberharmony.core.registry import OPS, OpSpec

_BY_BUILTIN: tuple[tuple[type[BaseException], type[EmberError]], ...] = (
    (np.linalg.LinAlgError, errors.LinAlgError),
    (np.exceptions.AxisError, errors.AxisError),
    (IndexError, errors.IndexOutOfBoundsError),
    (OverflowError, errors.RangeError),
    (MemoryError, errors.OutOfMemoryError),
    (NotImplementedError, errors.UnsupportedOpError),
    (TypeError, errors.ArgumentTypeError),
    (ValueError, errors.ArgumentError),
)
_TOO_LARGE = "array is too big|Maximum allowed (dimension|size) exceeded"
"""NumPy's messages for shapes too large for memory; every backend may raise them, since all use NumPy on the host."""
_AXES = frozenset(("axis", "axes", "axis1", "axis2", "source", "destination", "spatial_dims"))
_KINDS: dict[str, type] = {"str": str, "Mapping": Mapping}
"""By their annotation, the classes of options that no library checks."""
_OPTIONS = ("Axis", "Shape", "DTypeLike", "int", "bool")
"""How the annotations of parameters begin that are no tensors."""
_WHOLE = ("Axis", "Shape", "int")
"""How the annotations of parameters begin that are integers."""
_MOST_AXES = 2**16
"""A bound far above the number of axes that any library supports."""
_WAY_OUT: dict[type[EmberError], str] = {
    errors.AxisError: "an axis is from -ndim to ndim - 1, and named at most once",
    errors.DTypeError: "cast the tensor first (ops.cast)",
    errors.IndexOutOfBoundsError: INDEX_RANGE,
    errors.LinAlgError: "check the matrix, or add a small multiple of the identity",
    errors.OutOfMemoryError: "compute it in parts, or use a narrower dtype",
}


def typed_error(
    backend: Any, op: str, error: Exception, arguments: tuple[Any, ...], error_class: type[EmberError] | None
) -> EmberError:
    """Returns the typed error for a native error, with a message that names the op, the arguments and a way out.

    Args:
        backend: the backend that ran the op.
        op: the name of the op.
        error: the native error.
        arguments: the arguments of the op, in the declared order.
        error_class: the class that the backend's own table of errors gives, None if it has none.
    """
    spec = OPS[op]
    message_head = f"{op}() on backend {backend.name!r}: "
    if error_class in (None, errors.ShapeError):
        shape_hint = _hint_for_shapes(backend, spec, arguments)
        if shape_hint:
            return errors.ShapeError(f"{message_head}shapes {shape_hint}")
    if isinstance(error, TypeError) and str(error).startswith("unhashable type"):
        dtype_refusal = _refusal_of_dtype(spec, arguments)
        if dtype_refusal:
            return DTypeError(f"{message_head}{dtype_refusal}")
    if isinstance(error, ValueError) and re.search(_TOO_LARGE, str(error)):
        error_class = errors.OutOfMemoryError
    if str(error) == "tuple index out of range":
        error_class = errors.AxisError  # Python's message for `x.shape[axis]` with an axis out of range
    if isinstance(error, (TypeError, ValueError, OverflowError)) and _has_axis_out_of_range(spec, arguments):
        error_class = errors.AxisError  # the libraries only say that the number does not fit their integers
    if error_class is None:
        error_class = next(
            (t for builtin_class, t in _BY_BUILTIN if isinstance(error, builtin_class)), errors.BackendExecutionError
        )
    message = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    description = describe_arguments(backend, spec, arguments)
    way_out = other_library_hint(spec, arguments) or _hint_for_misfit(backend, spec, arguments)
    error_class = errors.ArgumentTypeError if way_out else error_class
    way_out = way_out or _hint_for_misplaced(backend, spec, arguments)
    if not way_out and error_class is errors.ShapeError:
        way_out = _hint_for_axis(backend, spec, arguments) or _hint_for_size(backend, spec, arguments)
    elif not way_out and error_class in _WAY_OUT:
        way_out = f"; {_WAY_OUT[error_class]}"
    return error_class(f"{message_head}{message} (given {description}){way_out}")


def _refusal_of_dtype(spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns why an argument denotes no dtype, such as a tensor, which no mapping looks up; else an empty string."""
    for parameter, argument in zip(spec.parameters, arguments, strict=False):
        if parameter.annotation.startswith("DTypeLike") and argument is not None:
            try:
                as_dtype(argument)
            except DTypeError as error:
                return str(error)
    return ""


def other_library_hint(spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a hint if a call passes arguments as another library takes them, else an empty string.

    `zeros(2, 3)` gives 3 as the dtype, `concatenate(a, b)` gives b as the axis, and `where(condition)` gives indices in
    other libraries.
    """
    parameters = spec.parameters
    if len(parameters) < 2 or len(arguments) < 2:
        return ""
    first_parameter, second_parameter = parameters[:2]
    x1, x2 = arguments[:2]
    if first_parameter.name == "shape" and second_parameter.role == "DTypeLike" and type(x1) is type(x2) is int:
        return f"; a shape of several lengths is one argument, as in {spec.name}({(x1, x2)})"
    if spec.name == "where" and (x2 is None or arguments[-1] is None):
        return "; where takes three tensors, and ops.nonzero(condition) gives the indices of the true elements"
    has_several = isinstance(x2, (list, tuple)) or _has_axes(x2)
    if has_several and first_parameter.role == "Tensors" and second_parameter.name == "axis":
        return f"; several tensors are one argument, as in {spec.name}([x1, x2])"
    return ""


def _has_axes(value: Any) -> bool:
    shape = getattr(value, "shape", ())  # a function, if the value is a library
    return isinstance(shape, tuple) and len(shape) > 0


def _hint_for_misfit(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a hint about an argument that is not the text or mapping that the op declares, else an empty string."""
    for parameter, argument in zip(spec.parameters, arguments, strict=False):
        expected_class = _KINDS.get(parameter.annotation.partition("[")[0].removesuffix(" | None"))
        if expected_class is not None and argument is not None and not isinstance(argument, expected_class):
            expected_text = "text" if expected_class is str else "mapping"
            return f"; {parameter.name} is a {expected_text}, not {_brief_value(backend, argument)}"
    return ""


def _hint_for_misplaced(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a hint with the order of arguments if a tensor stands for an option, or a text for a tensor; else ""."""
    for parameter, argument in zip(spec.parameters, arguments, strict=False):
        is_tensor = hasattr(argument, "dtype") and _has_axes(argument)
        is_option, is_of_tensor = parameter.annotation.startswith(_OPTIONS), parameter.role in ("Operand", "TensorLike")
        if (is_tensor and is_option) or (isinstance(argument, str) and is_of_tensor):
            names_text = ", ".join(parameter.name for parameter in spec.parameters)
            return (
                f"; {parameter.name} is {_brief_value(backend, argument)}, but the order is {spec.name}({names_text})"
            )
        elements = argument if isinstance(argument, (tuple, list)) else (argument,)
        if parameter.annotation.startswith(_WHOLE) and any(isinstance(element, (float, str)) for element in elements):
            return f"; {parameter.name} is made of integers: int(n) makes one, and n // 2 divides to one"
    return ""


def _has_axis_out_of_range(spec: OpSpec, arguments: tuple[Any, ...]) -> bool:
    """Returns whether an argument names an axis that no tensor can have."""
    for parameter, argument in zip(spec.parameters, arguments, strict=False):
        if parameter.name in _AXES:
            axes = argument if isinstance(argument, (tuple, list)) else (argument,)
            if any(isinstance(axis, int) and not -_MOST_AXES <= axis < _MOST_AXES for axis in axes):
                return True
    return False


def describe_arguments(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a short description of the arguments: `x=float32(2, 3), axis=5`."""
    parameter_names = [p.name for p in spec.parameters]
    parameter_names += [""] * (len(arguments) - len(parameter_names))
    return ", ".join(
        f"{name}={_brief_value(backend, argument)}" for name, argument in zip(parameter_names, arguments, strict=False)
    )


def _brief_value(backend: Any, value: Any) -> str:
    if backend.is_tensor(value):
        try:
            dtype = backend.dtype_of(value)
        except DTypeError:  # a NumPy array of strings or objects, whose dtype is often the cause of the error
            dtype = value.dtype
        return f"{dtype}{tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}"
    if isinstance(value, (list, tuple)) and any(backend.is_tensor(item) for item in value):
        items_text = ", ".join(_brief_value(backend, item) for item in value[:4])
        return f"[{items_text}{', …' if len(value) > 4 else ''}]"
    return brief(value)


def _hint_for_shapes(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a hint if the shapes of the operands do not broadcast, such as (2, 3) and (2,), else an empty string."""
    shape_by_name = {
        parameter.name: tuple(argument.shape)
        for parameter, argument in zip(spec.parameters, arguments, strict=False)
        if parameter.role == "Operand" and backend.is_tensor(argument)
    }
    if _can_broadcast(shape_by_name.values()):
        return ""
    hint = f"{' and '.join(map(str, shape_by_name.values()))} do not broadcast; each axis must be equal or 1"
    for name, shape in shape_by_name.items():
        if 0 < len(shape) < max(map(len, shape_by_name.values())) and _can_broadcast(
            {**shape_by_name, name: (*shape, 1)}.values()
        ):
            return f"{hint}: axes are compared from the last one, and ops.expand_dims({name}, -1) would fit"
    return hint


def _can_broadcast(shapes: Iterable[tuple[int, ...]]) -> bool:
    try:
        broadcast_shape(list(shapes))
    except ShapeError:
        return False
    return True


def _hint_for_axis(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a hint with the only axis along which the tensors could be joined, else an empty string."""
    arguments_by_name = {parameter.name: value for parameter, value in zip(spec.parameters, arguments, strict=False)}
    tensors = next(
        (arguments_by_name[parameter.name] for parameter in spec.parameters if parameter.role == "Tensors"), None
    )
    if (
        "axis" not in arguments_by_name
        or not isinstance(tensors, (list, tuple))
        or not all(map(backend.is_tensor, tensors))
    ):
        return ""
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if spec.name == "stack" and len(set(shapes)) > 1:
        return "; pad them to one shape (ops.pad), or join them along an axis (ops.concatenate)"
    if len({len(shape) for shape in shapes}) != 1:
        return missing_axis_hint(shapes, arguments_by_name["axis"]) if spec.name == "concatenate" else ""
    unequal_axes = [axis for axis, lengths in enumerate(zip(*shapes, strict=True)) if len(set(lengths)) > 1]
    return (
        f"; with axis={unequal_axes[0]} they would fit" if spec.name == "concatenate" and len(unequal_axes) == 1 else ""
    )


def _hint_for_size(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns a hint with a fitting shape if that given to `reshape` has another number of elements; else ""."""
    if spec.name != "reshape" or not backend.is_tensor(arguments[0]):
        return ""
    old_shape = tuple(arguments[0].shape)
    new_shape = arguments[1] if isinstance(arguments[1], (list, tuple)) else (arguments[1],)
    if (
        not old_shape
        or old_shape[0] < 1
        or new_shape.count(-1) > 1
        or not all(isinstance(n, int) and n >= -1 for n in new_shape)
    ):
        return ""
    size, given_size = math.prod(old_shape), math.prod(n for n in new_shape if n != -1)
    rows_text = f"({old_shape[0]}, -1) keeps the {old_shape[0]} rows, with {size // old_shape[0]} elements each"
    if -1 in new_shape and given_size:
        return f"; the {size} elements are no multiple of the {given_size} of the other axes; {rows_text}"
    return f"; the new shape has {given_size} elements, the tensor {size}; {rows_text}"
