"""Checks of the arguments of norms, and of whether their powers can overflow."""

from typing import Any

from emberharmony.core.errors import ArgumentError


def order_of(order: Any, name: str = "ord") -> float:
    """Returns the order of a norm as a float.

    Raises:
        ArgumentError: if it is not a number.
    """
    if order.__class__ is float:
        return order
    try:
        # float() would accept the string "2", but it raises the ValueError for this one.
        return float("a string" if isinstance(order, str) else order)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name} is a number, not {order!r:.60}") from error


def leaves_float64(order: float, bits: int) -> bool:
    """Returns whether powers of floats of this many bits may overflow or underflow in float64."""
    return abs(order) * (308 if bits == 64 else 45) > 290 and order not in (0, 1) and abs(order) != float("inf")


def safe_norm_range(order: float) -> tuple[float, float]:
    """Returns the smallest and largest norm whose powers certainly fit into float64."""
    largest_power = 10.0 ** (290 / abs(order))
    return 1 / largest_power, largest_power


def is_usual(axis: Any, keepdims: Any, ord: Any) -> bool:
    """Returns whether these arguments mean the Euclidean norm of all elements, as a tensor without axes."""
    return axis is None and keepdims is False and (ord.__class__ is int or ord.__class__ is float) and ord == 2
