"""Checks of options that an op reads as Python numbers, so that it has no gradient with respect to them."""

import operator
from typing import Any, TypeVar

from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, UnsupportedOpError, brief
from emberharmony.core.tracing import is_traced

T = TypeVar("T")


def constant(name: str, value: T) -> T:
    """Returns an option unchanged: a number, a tensor, or a nested sequence of them.

    Raises:
        UnsupportedOpError: if it contains a tensor that is being differentiated.
    """
    if value.__class__ is not float and value.__class__ is not int and _holds_traced(value):
        raise UnsupportedOpError(
            f"there is no gradient with respect to {name!r}: pass a number, or ops.stop_gradient(x)"
        )
    return value


def number(name: str, value: Any) -> float:
    """Returns an option as a Python number.

    Raises:
        UnsupportedOpError: if it is a tensor that is being differentiated.
    """
    return float(constant(name, value))


def integer(name: str, value: Any, least: int) -> int:
    """Returns an option as a Python integer, no smaller than the least one allowed.

    Raises:
        ArgumentError: if the integer is too small.
        ArgumentTypeError: if it is not an integer.
    """
    try:
        found = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"expected an integer {name}, got {brief(value)}") from error
    if found < least:
        raise ArgumentError(f"expected {name} of at least {least}, got {brief(found)}")
    return found


def dense(name: str, value: object) -> None:
    """Checks an option of Keras that asks for a tensor that is not dense.

    Raises:
        ArgumentError: if the option is set.
    """
    if value:
        raise ArgumentError(f"{name}={value!r} is not available, because all tensors are dense; leave {name} out")


def _holds_traced(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_traced(item) for item in value)
    if not hasattr(value, "dtype"):
        return False
    if is_traced(value):  # by any backend: a namespace may run an op while another backend is active
        return True
    backend = selection.current()
    return bool(backend.is_tensor(value) and backend.is_traced(value))
