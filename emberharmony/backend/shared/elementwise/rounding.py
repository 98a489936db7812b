"""Rounding to a number of decimals, by the same steps on every backend, and the replacements of `nan_to_num`."""

from __future__ import annotations

# ruff: noqa: D102  (the declarations have the docstrings)
from typing import TYPE_CHECKING, Any, ClassVar

from emberharmony.core import op_globals
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentTypeError, brief
from emberharmony.core.numeric.finfo import IntegerInfo

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

_LIMITS = {4: (38, 2.0**23), 8: (308, 2.0**52)}
"""For floats of 4 and 8 bytes, the largest power of ten, and the number from which all floats are integers."""
_DIGITS = 40
"""From this many decimals beyond those of its largest power of ten, a dtype has no significant digits to round off."""
_LONGEST = 20
"""The largest number of decimal digits of any integer dtype."""


class Decimals:
    """The op `round` of every backend, over the methods `_round_to_integers` and `_round_scaled` of each for floats.

    The body of `round` does the same over ops; it takes 8.5 times as long on NumPy, for few elements.
    """

    dtypes: ClassVar[Any]
    dtype_of: Any
    kind_of: Any
    cast: Any
    add: Any
    multiply: Any
    divide: Any
    floor_divide: Any
    mod: Any
    absolute: Any
    less: Any
    greater: Any
    not_equal: Any
    logical_and: Any
    logical_or: Any
    isfinite: Any
    where: Any
    zeros_like: Any
    stop_gradient: Any
    real: Any
    imag: Any
    stack: Any
    view_as_complex: Any

    _round_to_integers: Any
    """The native function that rounds floats to integers, halves to the even one."""

    def _element_bytes(self, x: Any) -> int:
        """Returns the number of bytes of an element of a tensor."""
        return int(x.itemsize)

    def _round_scaled(self, x: Any, decimals: int, bound: float) -> Any:
        """Returns floats of 32 or 64 bits rounded to a number of decimals, by scaling with a power of ten that fits.

        If `decimals` is positive, numbers of magnitude `bound` or more have no such decimals, so they are returned
        unchanged: scaling them could change their last digit, or overflow.
        """
        raise NotImplementedError

    def round(self, x: Any, decimals: int = 0) -> Any:
        dtype_kind = self.kind_of(x)
        if dtype_kind == "float" and decimals.__class__ is int and decimals == 0:
            return self._round_to_integers(x)
        try:
            decimals = as_index(decimals)
        except TypeError as error:
            raise ArgumentTypeError(f"decimals is an integer, not {decimals!r:.60}") from error
        if dtype_kind == "bool":
            return x
        if dtype_kind == "complex":
            components = [self.round(self.real(x), decimals), self.round(self.imag(x), decimals)]
            return self.view_as_complex(self.stack(components, -1))
        if dtype_kind != "float":
            return x if decimals >= 0 else self._round_integers(x, -decimals)
        if self._element_bytes(x) > 2:
            return self._round_floats(x, decimals)
        return self.cast(self._round_floats(self.cast(x, self.dtypes["float32"]), decimals), x.dtype)

    def _round_floats(self, x: Any, decimals: int) -> Any:
        largest_scale, integer_limit = _LIMITS[self._element_bytes(x)]
        if -largest_scale <= decimals <= largest_scale:
            return self._round_scaled(x, decimals, integer_limit / 10.0**decimals)
        # Rounding has derivative 0 everywhere, so numbers that it returns unchanged must have derivative 0 too.
        constant_x = self.stop_gradient(x)
        if decimals < 0:
            # At so few decimals every finite number rounds to 0, with the sign of the number.
            return self.where(self.isfinite(constant_x), self.multiply(x, 0.0), constant_x)
        if decimals > largest_scale + _DIGITS:
            return constant_x
        # The power of ten would overflow, so multiply and divide by two smaller ones.
        scale_factors = 10.0**largest_scale, 10.0 ** (decimals - largest_scale)
        scaled_x = self.multiply(self.multiply(x, scale_factors[0]), scale_factors[1])
        rounded_x = self.divide(self.divide(self._round_to_integers(scaled_x), scale_factors[1]), scale_factors[0])
        return self.where(self.less(self.absolute(scaled_x), integer_limit), rounded_x, constant_x)

    def _round_integers(self, x: Any, places: int) -> Any:
        """Returns integers rounded to a multiple of `10**places`, halves to the even multiple.

        It counts in units of half the power of ten, since the power itself may not fit into the dtype.
        """
        dtype_limits = IntegerInfo.of_dtype(self.dtype_of(x))
        if places > _LONGEST or 5 * 10 ** (places - 1) > dtype_limits.max:
            return self.zeros_like(x)
        half_unit = 5 * 10 ** (places - 1)
        half_unit_count, remainder = self.floor_divide(x, half_unit), self.mod(x, half_unit)
        unit_count = self.floor_divide(half_unit_count, 2)
        is_beyond_half = self.logical_or(self.greater(remainder, 0), self.not_equal(self.mod(unit_count, 2), 0))
        rounds_up = self.logical_and(self.not_equal(self.mod(half_unit_count, 2), 0), is_beyond_half)
        # A power of ten that does not fit into the integer dtype wraps around, as the result then does.
        unit = (2 * half_unit - dtype_limits.min) % 2**dtype_limits.bits + dtype_limits.min
        return self.multiply(self.add(unit_count, self.cast(rounds_up, x.dtype)), unit)


class ByOps(Decimals):
    """The rounding of a backend that has no function for it, by its `floor`.

    The body of `round` does the same over ops; it takes 8.5 times as long on NumPy, for few elements.
    """

    def __getattr__(self, name: str) -> Any:
        bound = op_globals.active()
        return getattr(bound.backend if name in ("dtypes", "dtype_of", "kind_of") else bound, name)

    def _element_bytes(self, x: Any) -> int:
        return int(self.dtype_of(x).bits) // 8

    def _round_to_integers(self, x: Any) -> Any:
        floor = self.floor(x)
        fraction = self.subtract(x, floor)
        is_odd = self.not_equal(self.multiply(self.floor(self.divide(floor, 2.0)), 2.0), floor)
        rounds_up = self.logical_or(self.greater(fraction, 0.5), self.logical_and(self.equal(fraction, 0.5), is_odd))
        return self.copysign(self.where(rounds_up, self.add(floor, 1.0), floor), x)

    def _round_scaled(self, x: Any, decimals: int, bound: float) -> Any:
        scale = 10.0 ** abs(decimals)
        if decimals < 0:
            return self.multiply(self._round_to_integers(self.divide(x, scale)), scale)
        is_small = self.less(self.absolute(x), bound)
        rounded_x = self.divide(self._round_to_integers(self.multiply(self.where(is_small, x, 0.0), scale)), scale)
        return self.where(is_small, rounded_x, x)


def next_floats(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Returns, for host arrays of one dtype, the number next to each element of `x1` in the direction of `x2`."""
    return np.asarray(np.nextafter(x1, x2))


def holds_tensor(*replacements: Any) -> bool:
    """Returns whether one of the replacements of `nan_to_num` is a tensor or a list, and not a number or None."""
    return any(hasattr(value, "shape") or isinstance(value, (list, tuple)) for value in replacements)


def replacement_numbers(nan: Any, posinf: Any, neginf: Any) -> tuple[float, float | None, float | None]:
    """Returns the numbers by which `nan_to_num` replaces NaN and the infinities; None stands for the default.

    Raises:
        ArgumentTypeError: if one is not a real number.
    """
    positive_replacement = None if posinf is None else _real_number("posinf", posinf)
    negative_replacement = None if neginf is None else _real_number("neginf", neginf)
    return _real_number("nan", nan), positive_replacement, negative_replacement


def _real_number(name: str, value: Any) -> float:
    if not hasattr(value, "__float__"):
        raise ArgumentTypeError(f"{name} is a real number or a tensor, not {brief(value)}")
    return float(value)
