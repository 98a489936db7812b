"""Normalization of axis arguments, and broadcasting of shapes."""

import operator
from collections.abc import Sequence
from typing import Any

from emberharmony.core.errors import ArgumentTypeError, AxisError, ShapeError, brief

INDEX_RANGE = "on an axis of length n an index is from -n to n - 1, and an embedding needs a row for each id"
"""What is said of an index that is out of bounds."""


def as_index(value: Any) -> int:
    """Returns an integer of any library, such as a tensor without axes, as a Python integer.

    Raises:
        ArgumentTypeError: if it is a tensor of booleans, which PyTorch takes for an integer.
        TypeError: if it is not an integer.
    """
    if value.__class__ is int:
        return value
    if str(getattr(value, "dtype", "")).endswith("bool"):
        raise ArgumentTypeError(f"expected an integer, got a boolean: {brief(value)}; cast it (ops.cast)")
    try:
        return operator.index(value)
    except RuntimeError:
        return int(value.item())  # PyTorch 2.13 refuses an integer of 2**63 or more


def python_integers(name: str, value: Any) -> Any:
    """Returns an option that is an integer, or a sequence of them, with Python integers in place of tensors.

    Anything else, such as a word or a Python number, is unchanged, and left to the op.

    Raises:
        TypeError: if a tensor in it is not one of integers; dispatch makes it an ArgumentTypeError.
    """
    if value.__class__ in (list, tuple):
        return value.__class__([python_integers(name, item) for item in value])
    dtype_text = "" if value.__class__ is int else str(getattr(value, "dtype", ""))
    if dtype_text and "int" not in dtype_text:
        raise TypeError(f"{name} must be an integer, or a sequence of integers, not {brief(value)}")
    if not dtype_text or not hasattr(value, "ndim"):
        return value
    return as_index(value) if not value.ndim else [python_integers(name, item) for item in value]


def as_length(n: Any) -> int:
    """Returns a length of a shape as an integer.

    Raises:
        ArgumentTypeError: if it is a boolean, which Python takes for an integer.
        TypeError: if it is neither an integer nor a boolean.
    """
    if n.__class__ is bool:
        raise ArgumentTypeError(f"a length of a shape must be an integer, not a boolean: got {n}")
    return as_index(n)


def nonnegative_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Returns the axes as a tuple of integers from 0 to ndim - 1.

    Args:
        axis: one axis, a tuple or list of axes, or None for all axes; negative axes count from the end.

    Raises:
        AxisError: if an axis is out of range or repeated.
        ArgumentTypeError: if an axis is a boolean.
        TypeError: if an axis is neither an integer nor a boolean.
    """
    if axis.__class__ is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if axis is None:
        return tuple(range(ndim))
    axis_tuple = axis if isinstance(axis, (tuple, list)) else (axis,)
    if bool in map(type, axis_tuple):
        raise ArgumentTypeError(f"an axis must be an integer, not a boolean: got {axis}")
    axes = tuple(as_index(a) for a in axis_tuple)
    for a in axes:
        if not -ndim <= a < ndim:
            raise AxisError(f"axis {a} is out of range for a tensor of {ndim} axes")
    wrapped_axes = tuple(a % ndim for a in axes)
    if len(set(wrapped_axes)) != len(wrapped_axes):
        raise AxisError(f"axes {axis} name one axis more than once")
    return wrapped_axes


def broadcast_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Returns the shape to which the shapes broadcast.

    Raises:
        ShapeError: if they do not broadcast.
    """
    # Not np.broadcast_shapes: this layer imports no array library.
    result_shape = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(shape, len(result_shape) - len(shape)):
            if n != 1 and result_shape[i] not in (1, n):
                raise ShapeError(f"shapes {' and '.join(str(tuple(s)) for s in shapes)} do not broadcast")
            if n != 1:
                result_shape[i] = n
    return tuple(result_shape)


def missing_axis_hint(shapes: Sequence[tuple[int, ...]], axis: Any) -> str:
    """Returns a hint that a tensor lacks one axis, and how to add it; an empty string if no shape lacks just one.

    Args:
        shapes: those of the tensors that are joined.
        axis: along which.
    """
    largest_axis_count = max(map(len, shapes), default=0)
    if not isinstance(axis, int) or not -largest_axis_count <= axis < largest_axis_count:
        return ""
    axis %= largest_axis_count
    operand_index = next((i for i, shape in enumerate(shapes) if len(shape) == largest_axis_count - 1), None)
    longest_shape = next(shape for shape in shapes if len(shape) == largest_axis_count)
    if operand_index is None or shapes[operand_index] != longest_shape[:axis] + longest_shape[axis + 1 :]:
        return ""
    return f"; ops.expand_dims(xs[{operand_index}], {axis}) has the axis that is missing"
