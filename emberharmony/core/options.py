"""Checks of the options of ops, and which of them have no gradient because the op reads them as Python numbers."""

from typing import Any, TypeGuard, TypeVar

from emberharmony.core import selection
from emberharmony.core.axes import as_index
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedOpError, brief
from emberharmony.core.tracing import TensorProxy, is_traced

T = TypeVar("T")

USUAL_POOL = (
    "{1}.__class__ is int and {2} is None and {3}.__class__ is str and {3} == 'valid' and {4} is None "
    "and {5}.__class__ is int and {5} == 1 and {6} is False"
)
"""When the windows of `max_pool` are adjacent, and of one length on all axes."""


def constant(name: str, value: T, reason: str = "") -> T:
    """Returns an option unchanged, after a check that it holds no tensor that is being differentiated.

    Args:
        reason: why there is no gradient, for the message.

    Raises:
        UnsupportedOpError: if it contains a tensor that is being differentiated.
    """
    if value.__class__ is not float and value.__class__ is not int and holds_traced(value):
        raise UnsupportedOpError(
            f"there is no gradient with respect to {name!r}{', because ' * bool(reason)}{reason}: pass a number, or "
            f"ops.stop_gradient(x)"
        )
    return value


def as_number(name: str, value: Any) -> float:
    """Returns an option as a Python number.

    Raises:
        UnsupportedOpError: if it is a tensor that is being differentiated.
    """
    return float(constant(name, value))


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether an option is a Python number, so that a native function may take it, and not a tensor or list."""
    return isinstance(value, (int, float))


def require_scalar(name: str, value: Any) -> Any:
    """Returns an option unchanged, after a check that it is a number or a tensor without axes.

    Raises:
        ShapeError: if it is a list, or a tensor with axes.
    """
    shape = (len(value),) if isinstance(value, (list, tuple)) else tuple(getattr(value, "shape", ()))
    if shape:
        raise ShapeError(f"{name} is a number or a tensor without axes, got shape {shape}")
    return value


def as_integer(name: str, value: Any, least: int) -> int:
    """Returns an option as a Python integer, no smaller than the least one allowed.

    Raises:
        ArgumentError: if the integer is too small.
        ArgumentTypeError: if it is not an integer.
    """
    try:
        number = as_index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"expected an integer {name}, got {brief(value)}") from error
    if number < least:
        raise ArgumentError(f"expected {name} of at least {least}, got {brief(number)}")
    return number


def refuse_sparse(name: str, value: object) -> None:
    """Raises an error if an option of Keras is set that asks for a sparse or ragged tensor.

    Raises:
        ArgumentError: if the option is set.
    """
    if value:
        raise ArgumentError(f"{name}={value!r} is not available, because all tensors are dense; leave {name} out")


def holds_traced(value: Any) -> bool:
    """Returns whether an option is, or contains, a tensor that is being differentiated."""
    if isinstance(value, (list, tuple)):
        return any(holds_traced(item) for item in value)
    if not hasattr(value, "dtype"):
        return False
    if is_traced(value):  # by any backend: a namespace may run an op while another backend is active
        return True
    if isinstance(value, TensorProxy):
        return False
    backend = selection.current()
    return bool(backend.is_tensor(value) and backend.is_traced(value))
