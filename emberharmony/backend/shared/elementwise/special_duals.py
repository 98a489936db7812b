"""Derivatives of special functions by arguments that have no short formula: the functions, computed with dual numbers.

A dual number is a value and its derivative. The functions of `special` and its siblings take a namespace, so with one
that computes with dual numbers they differentiate themselves, without the loss of digits of a difference.
"""

from collections.abc import Callable
from typing import Any

Slope = Any
"""A derivative: a tensor, or None for that of a constant, so that 0 is never multiplied by infinity."""


class Dual:
    """A dual number: a tensor or number, and its derivative."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Any, slope: Slope = None) -> None:
        self.value, self.slope = value, slope

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dual number's tensor."""
        return tuple(self.value.shape)

    def __add__(self, other: Any) -> "Dual":
        b = _as_dual(other)
        return Dual(self.value + b.value, _add_slopes(self.slope, b.slope))

    def __sub__(self, other: Any) -> "Dual":
        b = _as_dual(other)
        return Dual(self.value - b.value, _add_slopes(self.slope, _scaled_slope(b.slope, -1.0)))

    def __rsub__(self, other: Any) -> "Dual":
        return _as_dual(other) - self

    def __mul__(self, other: Any) -> "Dual":
        b = _as_dual(other)
        return Dual(
            self.value * b.value, _add_slopes(_scaled_slope(self.slope, b.value), _scaled_slope(b.slope, self.value))
        )

    def __truediv__(self, other: Any) -> "Dual":
        b = _as_dual(other)
        ratio = self.value / b.value
        numerator_slope = _add_slopes(self.slope, _scaled_slope(b.slope, -ratio))
        return Dual(ratio, None if numerator_slope is None else numerator_slope / b.value)

    def __rtruediv__(self, other: Any) -> "Dual":
        return _as_dual(other) / self

    def __neg__(self) -> "Dual":
        return Dual(-self.value, _scaled_slope(self.slope, -1.0))

    def __lt__(self, other: Any) -> Any:
        return self.value < _as_dual(other).value

    def __le__(self, other: Any) -> Any:
        return self.value <= _as_dual(other).value

    def __gt__(self, other: Any) -> Any:
        return self.value > _as_dual(other).value

    def __ge__(self, other: Any) -> Any:
        return self.value >= _as_dual(other).value

    def __eq__(self, other: object) -> Any:
        return self.value == _as_dual(other).value

    __hash__ = None  # type: ignore[assignment]
    __radd__, __rmul__ = __add__, __mul__


def _as_dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(x)


def _scaled_slope(slope: Slope, factor: Any) -> Slope:
    return None if slope is None else slope * factor


def _add_slopes(a: Slope, b: Slope) -> Slope:
    return b if a is None else a if b is None else a + b


class _Duals:
    """A namespace of functions of dual numbers, over a namespace of functions of tensors."""

    picks = False

    def __init__(self, xp: Any) -> None:
        self._xp, self.digits = xp, xp.digits

    @staticmethod
    def pick(mask: Any, function: Callable[..., Dual], *arguments: Dual) -> Dual:
        """Returns a function of dual numbers for all elements, whatever the mask."""
        return function(*arguments)

    def column(self, numbers: Any, x: Dual) -> Dual:
        """Returns numbers along a new axis in front of the axes of `x`."""
        return Dual(self._xp.column(numbers, x.value))

    def entries(self, table: Any, index: Dual) -> Dual:
        """Returns the entries of a table of numbers at whole indices, as constants."""
        return Dual(self._xp.entries(table, index.value))

    def where(self, mask: Any, x1: Any, x2: Any) -> Dual:
        """Returns elements of one of two dual numbers, with their derivatives."""
        a, b = _as_dual(x1), _as_dual(x2)
        slope = None
        if a.slope is not None or b.slope is not None:
            slope = self._xp.where(mask, *(0.0 if s is None else s for s in (a.slope, b.slope)))
        return Dual(self._xp.where(mask, a.value, b.value), slope)

    def isnan(self, x: Dual) -> Any:
        """Returns a mask of the elements whose value is NaN."""
        return self._xp.isnan(x.value)

    def floor(self, x: Dual) -> Dual:
        """Returns the largest integer not above the value, a constant."""
        return Dual(self._xp.floor(x.value))

    def sum(self, x: Dual, axis: int) -> Dual:
        """Returns the sum over an axis."""
        return Dual(self._xp.sum(x.value, axis), None if x.slope is None else self._xp.sum(x.slope, axis))

    def abs(self, x: Dual) -> Dual:
        """Returns the absolute value of a dual number."""
        slope = None if x.slope is None else self._xp.where(x.value < 0.0, -x.slope, x.slope)
        return Dual(self._xp.abs(x.value), slope)

    def exp(self, x: Dual) -> Dual:
        """Returns the exponential of a dual number."""
        value = self._xp.exp(x.value)
        return Dual(value, _scaled_slope(x.slope, value))

    def expm1(self, x: Dual) -> Dual:
        """Returns the exponential of a dual number less 1."""
        value = self._xp.expm1(x.value)
        return Dual(value, _scaled_slope(x.slope, value + 1.0))

    def log(self, x: Dual) -> Dual:
        """Returns the logarithm of a dual number."""
        return Dual(self._xp.log(x.value), None if x.slope is None else x.slope / x.value)

    def log1p(self, x: Dual) -> Dual:
        """Returns the logarithm of 1 plus a dual number."""
        return Dual(self._xp.log1p(x.value), None if x.slope is None else x.slope / (x.value + 1.0))

    def sqrt(self, x: Dual) -> Dual:
        """Returns the square root of a dual number."""
        value = self._xp.sqrt(x.value)
        if x.slope is None:
            return Dual(value)
        # The root of 0, which occurs where a range is cut off, gets the derivative 0 instead of infinity.
        is_zero = value == 0.0
        return Dual(value, self._xp.where(is_zero, 0.0, x.slope / (2.0 * self._xp.where(is_zero, 1.0, value))))

    def power(self, x1: Any, x2: Any) -> Dual:
        """Returns a dual number to the power of another one."""
        a, b = _as_dual(x1), _as_dual(x2)
        value = self._xp.power(a.value, b.value)
        base_slope = None if a.slope is None else a.slope * (b.value / a.value)
        exponent_slope = None if b.slope is None else b.slope * self._xp.log(a.value)
        return Dual(value, _scaled_slope(_add_slopes(base_slope, exponent_slope), value))


def partial_derivative_of(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Returns the partial derivative by one argument of a function that takes a namespace and tensors."""

    def derivative(xp: Any, *arguments: Any) -> Any:
        duals = [Dual(x, 0.0 * arguments[0] + 1.0 if i == place else None) for i, x in enumerate(arguments)]
        return function(_Duals(xp), *duals).slope

    return derivative
