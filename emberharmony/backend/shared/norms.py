"""Checks of the norms' arguments and of the range that their powers stay in."""

from typing import Any

from emberharmony.core.errors import ArgumentError


def order_of(order: Any, name: str = "ord") -> float:
    """Returns the order of a norm.

    Raises: ArgumentError for one that is no number.
    """
    if order.__class__ is float:
        return order
    try:
        return float("a string" if isinstance(order, str) else order)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name} is a number, not {order!r:.60}") from error


def leaves_float64(order: float, bits: int) -> bool:
    """Returns whether powers of numbers of so many bits may overflow or vanish in float64."""
    return abs(order) * (308 if bits == 64 else 45) > 290 and order not in (0, 1) and abs(order) != float("inf")


def range_of(order: float) -> tuple[float, float]:
    """Returns the least and largest norm whose powers float64 certainly holds."""
    far = 10.0 ** (290 / abs(order))
    return 1 / far, far
