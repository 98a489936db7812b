"""Checks of the arguments of random draws: the parameters of distributions, shapes and dtypes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from emberharmony.backend.host import is_integer
from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType, as_dtype, default_float
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, RangeError, ShapeError, brief
from emberharmony.core.numeric.finfo import FloatInfo
from emberharmony.core.numeric.promotion import check_fits

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

Array: TypeAlias = "np.ndarray[Any, Any]"


def element_count(n: Any) -> int | None:
    """Returns a number of elements as an int; None if it is not an integer.

    Raises:
        ArgumentError: if it is negative.
    """
    if not is_integer(n):
        return None
    if n < 0:
        raise ArgumentError(f"a number of elements is at least 0, not {n}")
    return int(n)


class Domain:
    """The finite values that a parameter may have: from `low`, which is excluded if `above` is True, to `high`."""

    def __init__(self, low: float = -math.inf, high: float = math.inf, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    def check(self, name: str, value: float) -> None:
        """Checks that a number is in the domain.

        Raises:
            ArgumentError: if it is not; the message has the name of the parameter and the domain.
        """
        if not (self.low <= value <= self.high and math.isfinite(value)) or (self.above and value == self.low):
            raise ArgumentError(f"{name} is {self}, not {brief(value)}")

    def check_all(self, name: str, values: Array) -> None:
        """Checks that all numbers of an array are in the domain.

        Raises:
            ArgumentError: if they are not; the message has the name of the parameter and the domain.
        """
        is_inside = values > self.low if self.above else values >= self.low
        if not np.all(is_inside & (values <= self.high) & np.isfinite(values)):
            raise ArgumentError(f"{name} is {self}, not {brief(values)}")

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"a number from {self.low:g} to {self.high:g}"
        if self.low == -math.inf:
            return "a finite number"
        return f"a finite number {'above' if self.above else 'of at least'} {self.low:g}"


ANY, POSITIVE, FROM_ZERO, CHANCE = Domain(), Domain(0.0, above=True), Domain(0.0), Domain(0.0, 1.0)


def check_shape_first(signature: str, shape: Any, second: Any) -> None:
    """Checks that a shape comes first, unlike in NumPy and PyTorch: `normal(0, 1, 5)` would be an empty tensor.

    Args:
        signature: the function with its first parameters.
        shape: the argument for the shape.
        second: the next argument.

    Raises:
        ArgumentError: if the shape is 0 and something other than 0 follows.
    """
    if shape.__class__ in (int, float) and not shape and not (second.__class__ in (int, float) and not second):
        raise ArgumentError(
            f"the shape is {shape!r}, which gives an empty tensor; the order is {signature}, and an empty tensor on "
            f"purpose has shape=(0,)"
        )


def as_number(name: str, value: Any, domain: Domain = ANY) -> float | None:
    """Returns a distribution's parameter as a float if it is one number; None if it is a tensor, array or list.

    Raises:
        ArgumentError: if the number is outside the domain.
    """
    if value.__class__ not in (int, float) and not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    domain.check(name, float(value))
    return float(value)


def check_fits_shape(name: str, own_shape: Sequence[int], shape: Sequence[int]) -> None:
    """Checks that a parameter broadcasts to the shape of the result.

    Raises:
        ShapeError: if it does not; the message has the name of the parameter.
    """
    try:
        is_fitting = broadcast_shape([own_shape, shape]) == tuple(shape)
    except ShapeError:
        is_fitting = False
    if not is_fitting:
        raise ShapeError(f"{name} of shape {tuple(own_shape)} does not broadcast to shape {tuple(shape)}")


def as_array(name: str, value: Array, shape: Any, domain: Domain) -> Array:
    """Returns a distribution's parameter, given as a host array, in float64, checked against its domain and the shape.

    Raises:
        ArgumentError: if a value is outside the domain.
        DTypeError: if the values are complex.
        ShapeError: if the parameter does not broadcast to the shape.
    """
    if value.dtype.kind == "c":
        raise DTypeError(f"{name} is real, not {value.dtype}")
    check_fits_shape(name, value.shape, as_shape(shape))
    wide_value = value.astype(np.float64)
    domain.check_all(name, wide_value)
    return wide_value


def integer_parameter(name: str, value: Any, shape: Any) -> Any:
    """Returns an integer parameter, given as a number or host array, checked.

    Raises:
        ArgumentTypeError: if the values are not integers.
        ShapeError: if the parameter does not broadcast to the shape.
    """
    if isinstance(value, int):
        return value
    if value.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} is an integer, or a tensor of them, not {value.dtype}")
    check_fits_shape(name, value.shape, as_shape(shape))
    return value


def trial_counts(counts: Any, shape: Any) -> Any:
    """Returns the numbers of trials of a binomial distribution, given as a number or host array, as integers.

    Raises:
        ArgumentError: if a number is negative or has a fraction.
        ShapeError: if they do not broadcast to the shape.
    """
    if isinstance(counts, int):
        FROM_ZERO.check("counts", counts)
        return counts
    integer_counts = counts.astype(np.int64)
    check_fits_shape("counts", integer_counts.shape, as_shape(shape))
    if not np.array_equal(counts, integer_counts):
        raise ArgumentError(f"counts are whole numbers, not {brief(counts)}")
    FROM_ZERO.check_all("counts", integer_counts)
    return integer_counts


def check_bounds(low: float, high: float, dtype: DType) -> None:
    """Checks that a floating dtype can hold uniform numbers from `low` to `high`.

    Raises:
        ArgumentError: if `high` is less than `low`.
        RangeError: if the dtype cannot hold both.
    """
    if low > high:
        raise ArgumentError(f"minval must not exceed maxval, got minval {low} and maxval {high}")
    largest_number = FloatInfo.of_dtype(dtype).max
    for name, bound in (("minval", low), ("maxval", high)):
        if abs(bound) > largest_number:
            raise RangeError(
                f"{name} {bound:g} does not fit {dtype.name}, which holds {-largest_number:g} to {largest_number:g}"
            )


def check_between(low: Any, high: Any, dtype: DType) -> None:
    """Checks that a dtype can hold the integers in [low, high).

    Raises:
        DTypeError: if it is not an integer dtype.
        RangeError: if it cannot hold all of them.
    """
    if not dtype.is_integer:
        raise DTypeError(f"random integers are of an integer dtype, not {dtype.name}; cast them (ops.cast)")
    for end in (int(np.min(low)), int(np.max(high)) - 1):
        check_fits(end, dtype)


def floating_dtype(dtype: Any) -> DType:
    """Returns the floating dtype of random numbers, checked; None stands for the default float.

    Raises:
        DTypeError: if it is not a floating dtype.
    """
    float_dtype = default_float() if dtype is None else as_dtype(dtype)
    if not float_dtype.is_floating:
        raise DTypeError(
            f"random numbers of this distribution are floating, not {float_dtype.name}; cast them (ops.cast)"
        )
    return float_dtype


def largest_below(high: float, dtype: DType) -> float:
    """Returns a number of a floating dtype that is less than `high` by at most twice the spacing of the dtype there."""
    if high == 0.0:
        return -FloatInfo.of_dtype(dtype).smallest_normal
    float_info = FloatInfo.of_dtype(dtype)
    # Below the smallest normal number, the spacing stays that of the smallest normal number.
    exponent = (
        max(math.frexp(high)[1], math.frexp(float_info.smallest_normal)[1]) - 1 + round(math.log2(float_info.eps))
    )
    return math.ldexp(math.ceil(math.ldexp(high, -exponent)) - 1, exponent)
