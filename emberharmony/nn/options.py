"""Functions that check the options of layers' constructors and return them converted."""

from typing import Any

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief, suggest
from emberharmony.nn.locate import fault


def length_option(name: str, value: Any, least: int = 1) -> int:
    """Returns an option of a layer as an integer after a check that it is at least a minimum.

    Raises:
        ArgumentError: if it is too small.
        ArgumentTypeError: if it is not an integer.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or len(getattr(value, "shape", ())):
        shape = getattr(value, "shape", ())
        hint = f"; make the layer first, and then call it with the tensor, of shape {tuple(shape)}" if shape else ""
        if isinstance(value, str):
            hint = "; is it in the place of another option? pass options by name"
        raise fault(ArgumentTypeError(f"{name} must be an integer, got {brief(value)}{hint}"))
    number = int(value.__index__())
    if number < least:
        raise fault(ArgumentError(f"{name} must be at least {least}, got {number}"))
    return number


def flag_option(name: str, value: Any) -> bool:
    """Returns an option of a layer after a check that it is True or False.

    Raises:
        ArgumentTypeError: if it is a text, a layer or a function, which would count as True.
    """
    if isinstance(value, str) or callable(value):
        hint = "; an activation is a layer of its own, in nn.Sequential" if name == "bias" else ""
        raise fault(ArgumentTypeError(f"{name} is True or False, got {brief(value)}{hint}"))
    return bool(value)


def lengths_option(name: str, value: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """Returns an option of a layer as a tuple of integers, one for each axis, after a check.

    Raises:
        ArgumentError: if one is too small, or their number is wrong.
        ArgumentTypeError: if one is not an integer.
    """
    if not isinstance(value, (tuple, list)):
        return (length_option(name, value, least),) * axes
    if len(value) != axes:
        raise fault(ArgumentError(f"{name} must be one integer or {axes}, got {brief(value)}"))
    return tuple(length_option(name, axis_value, least) for axis_value in value)


def choice_option(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Returns an option of a layer after a check that it is one of the known names.

    Raises:
        ArgumentError: if it is not; the message has the nearest name.
    """
    if value not in known:
        hint = suggest(value, known)
        raise fault(ArgumentError(f"{name} must be one of {', '.join(map(repr, known))}, got {brief(value)}{hint}"))
    return str(value)


def share_option(name: str, value: Any) -> float:
    """Returns an option of a layer as a float after a check that it is from 0 to 1.

    Raises:
        ArgumentError: if it is not within 0 and 1.
        ArgumentTypeError: if it is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault(ArgumentTypeError(f"{name} must be a number, got {brief(value)}"))
    if not 0 <= value <= 1:
        raise fault(ArgumentError(f"{name} must be a probability from 0 to 1, got {value}"))
    return float(value)


def number_option(name: str, value: Any) -> float:
    """Returns an option of a layer as a float after a check that it is a number.

    Raises:
        ArgumentTypeError: if it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault(ArgumentTypeError(f"{name} must be a number, got {brief(value)}"))
    return float(value)
