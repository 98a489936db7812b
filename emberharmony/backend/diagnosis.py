"""From a native error to a typed one that names op, backend, what was seen, what was wanted and the way out."""

import re
from typing import Any

import numpy as np

from emberharmony.core import errors
from emberharmony.core.axes import broadcast
from emberharmony.core.errors import DTypeError, EmberError, ShapeError, brief
from emberharmony.core.errors import says as says
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
_TOO_LARGE = re.compile("array is too big|Maximum allowed (dimension|size) exceeded")
"""The messages of NumPy, which every backend uses on the host, for shapes that memory does not hold."""
_AXES = frozenset(("axis", "axes", "axis1", "axis2", "source", "destination", "spatial_dims"))
_MOST_AXES = 2**16
_WAY_OUT: dict[type[EmberError], str] = {
    errors.AxisError: "axes count from -ndim to ndim - 1, each at most once",
    errors.DTypeError: "cast the tensor first (ops.cast)",
    errors.IndexOutOfBoundsError: "indices count from -n to n - 1",
    errors.LinAlgError: "check the matrix, or add a small multiple of the identity",
    errors.OutOfMemoryError: "make it in parts, or of a narrower dtype",
}


def explain(
    backend: Any, op: str, error: Exception, arguments: tuple[Any, ...], typed: type[EmberError] | None
) -> EmberError:
    """Returns the typed error; `typed` is the class the backend's own table found, if any."""
    spec = OPS[op]
    head = f"{op}() on backend {backend.name!r}: "
    if typed in (None, errors.ShapeError):
        unfit = _unfit_shapes(backend, spec, arguments)
        if unfit:
            return errors.ShapeError(f"{head}shapes {unfit} do not broadcast; each axis must be equal or 1")
    if isinstance(error, ValueError) and _TOO_LARGE.search(str(error)):
        typed = errors.OutOfMemoryError
    if str(error) == "tuple index out of range":
        typed = errors.AxisError  # of a shape, asked for the length of an axis
    if isinstance(error, (TypeError, ValueError, OverflowError)) and _names_a_far_axis(spec, arguments):
        typed = errors.AxisError  # the libraries report the width of their own integers
    if typed is None:
        typed = next((t for kind, t in _BY_BUILTIN if isinstance(error, kind)), errors.BackendExecutionError)
    message = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    given = describe(backend, spec, arguments)
    way_out = _WAY_OUT.get(typed)
    return typed(f"{head}{message} (given {given})" + (f"; {way_out}" if way_out else ""))


def _names_a_far_axis(spec: OpSpec, arguments: tuple[Any, ...]) -> bool:
    """Returns whether an argument names an axis that no tensor has."""
    for parameter, value in zip(spec.parameters, arguments, strict=False):
        if parameter.name in _AXES:
            axes = value if isinstance(value, (tuple, list)) else (value,)
            if any(isinstance(axis, int) and not -_MOST_AXES <= axis < _MOST_AXES for axis in axes):
                return True
    return False


def describe(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns the arguments in short: `x=float32(2, 3), axis=5`."""
    names = [p.name for p in spec.parameters]
    names += [""] * (len(arguments) - len(names))
    return ", ".join(f"{name}={_brief(backend, value)}" for name, value in zip(names, arguments, strict=False))


def _brief(backend: Any, value: Any) -> str:
    if backend.is_tensor(value):
        try:
            dtype = backend.dtype_of(value)
        except DTypeError:  # on NumPy an array of strings, which is what the error tells
            dtype = value.dtype
        return f"{dtype}{tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and any(backend.is_tensor(item) for item in value):
        shown = ", ".join(_brief(backend, item) for item in value[:4])
        return f"[{shown}{', …' if len(value) > 4 else ''}]"
    return brief(value)


def _unfit_shapes(backend: Any, spec: OpSpec, arguments: tuple[Any, ...]) -> str:
    """Returns the operands' shapes, "(2, 3) and (4,)", if they do not broadcast, else an empty string."""
    shapes = [
        tuple(value.shape)
        for parameter, value in zip(spec.parameters, arguments, strict=False)
        if parameter.role == "Operand" and backend.is_tensor(value)
    ]
    try:
        broadcast(shapes)
    except ShapeError:
        return " and ".join(str(shape) for shape in shapes)
    return ""
