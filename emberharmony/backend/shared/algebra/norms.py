"""Checks of the order of a norm, and of whether the powers that it adds can overflow."""

from typing import Any

from emberharmony.core.errors import ArgumentError


def norm_order(order: Any, name: str = "ord") -> float:
    """Returns the order of a norm as a float, checked to be a number.

    Raises:
        ArgumentError: if it is not a number.
    """
    if order.__class__ is float:
        return order
    try:
        # float() would accept the string "2", so pass a string that makes it raise the ValueError.
        return float("a string" if isinstance(order, str) else order)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name} is a number, not {order!r:.60}") from error


def may_leave_float64(order: float, bits: int) -> bool:
    """Returns whether the powers that a norm of this order adds may overflow or underflow in float64."""
    return abs(order) * (308 if bits == 64 else 45) > 290 and order not in (0, 1) and abs(order) != float("inf")


def safe_norm_range(order: float) -> tuple[float, float]:
    """Returns the smallest and the largest norm of this order for which no power overflows or underflows float64."""
    largest_power = 10.0 ** (290 / abs(order))
    return 1 / largest_power, largest_power


def is_euclidean(axis: Any, keepdims: Any, ord: Any) -> bool:
    """Returns whether the arguments of `vector_norm` ask for the Euclidean norm of all elements, without axes."""
    return axis is None and keepdims is False and (ord.__class__ is int or ord.__class__ is float) and ord == 2
