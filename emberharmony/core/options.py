"""Options that an op reads as numbers on the host, by which it has no gradient."""

import operator
from typing import Any, TypeVar

from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, UnsupportedOpError, brief

T = TypeVar("T")


def constant(name: str, value: T) -> T:
    """Returns an option as it is: a number, a tensor, or a nested sequence of them.

    Raises: UnsupportedOpError if a tensor in it is being differentiated.
    """
    if value.__class__ is not float and value.__class__ is not int and _holds_traced(value):
        raise UnsupportedOpError(f"there is no gradient by {name!r}: pass it a number, or ops.stop_gradient(x)")
    return value


def number(name: str, value: Any) -> float:
    """Returns an option as a Python number.

    Raises: UnsupportedOpError if it is a tensor that is being differentiated.
    """
    return float(constant(name, value))


def integer(name: str, value: Any, least: int) -> int:
    """Returns an option as a Python integer, no smaller than the least one allowed.

    Raises: ArgumentTypeError for what is no integer; ArgumentError for an integer that is too small.
    """
    try:
        found = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"expected an integer {name}, got {brief(value)}") from error
    if found < least:
        raise ArgumentError(f"expected {name} of at least {least}, got {brief(found)}")
    return found


def _holds_traced(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_traced(item) for item in value)
    if not hasattr(value, "dtype"):
        return False
    backend = selection.current()
    return bool(backend.is_tensor(value) and backend.is_traced(value))
