"""Rounding, and the signs, neighbours and exponents of floating-point numbers.

Shape: operands are broadcast. Complex tensors raise `DTypeError`, except in `round`, `nan_to_num` and `saturate_cast`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import DTypeError
from emberharmony.core.numeric.finfo import FloatInfo, IntegerInfo
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.types import DTypeLike, Operand, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.arrays.shape import stack
from emberharmony.ops.dtype import cast_option
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.logic.comparison import equal, greater_equal, isnan, less, less_equal, logical_and, logical_or
from emberharmony.ops.math import absolute, clip, divide, maximum, minimum, multiply, negative, power, subtract
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared import bodies
    from emberharmony.backend.shared.elementwise import rounding as shared_rounding
    from emberharmony.ops.elementwise import complex_numbers
else:
    bodies = Deferred("emberharmony.backend.shared.bodies")
    shared_rounding = Deferred("emberharmony.backend.shared.elementwise.rounding")
    complex_numbers = Deferred("emberharmony.ops.elementwise.complex_numbers")  # it imports this module


@op(elementwise=True, takes="real", gradient="zero", finite="yes")
def floor(x: TensorLike) -> Tensor:
    """Returns the largest integer not above each element; integer tensors are unchanged.

    See also: `ceil`, upwards; `trunc`, towards 0; `round`, to the nearest.

    Example:
        >>> ops.floor([1.5, -1.5]).tolist()
        [1.0, -2.0]
    """
    ...


@op(elementwise=True, takes="real", gradient="zero", finite="yes")
def ceil(x: TensorLike) -> Tensor:
    """Returns the smallest integer not below each element; integer tensors are unchanged.

    See also: `floor`, downwards; `trunc`, towards 0; `round`, to the nearest.

    Example:
        >>> ops.ceil([1.5, -1.5]).tolist()
        [2.0, -1.0]
    """
    return negative(floor(negative(x))) if dtype_of(x).is_floating else x


@op(elementwise=True, takes="real", gradient="zero", finite="yes")
def trunc(x: TensorLike) -> Tensor:
    """Returns each element rounded towards zero; integer tensors are unchanged.

    See also: `floor`, downwards; `round`, to the nearest.

    Example:
        >>> ops.trunc([1.5, -1.5]).tolist()
        [1.0, -1.0]
    """
    return copysign(floor(absolute(x)), x) if dtype_of(x).is_floating else x


@op(elementwise=True, gradient="zero", finite="gradient")
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Returns each element rounded to a number of decimals; halves are rounded to the even neighbour.

    Integer tensors are unchanged. For complex numbers the real and the imaginary part are rounded separately.

    Args:
        x: a tensor of any shape and dtype.
        decimals: the number of digits after the point; a negative one rounds to tens, hundreds and so on.

    See also: `floor`, downwards; `ceil`, upwards; `trunc`, towards 0.

    Example:
        >>> ops.round([0.5, 1.5, 2.4]).tolist()
        [0.0, 2.0, 2.0]
    """
    return shared_rounding.ByOps().round(x, decimals)


@op(elementwise=True, finite="yes")
def nan_to_num(
    x: TensorLike, nan: Varying = 0.0, posinf: Varying | None = None, neginf: Varying | None = None
) -> Tensor:
    """Returns `x` with NaN and infinities replaced, by default by 0 and the largest finite numbers of the dtype.

    Args:
        x: a tensor of any shape and dtype; integers and booleans come back unchanged.
        nan: the value in place of NaN: a number; for a real `x` also a tensor that broadcasts.
        posinf: the value in place of infinity: a number; for a real `x` also a tensor. None is the largest finite
            number.
        neginf: the value in place of minus infinity: a number; for a real `x` also a tensor. None is the least finite
            number.

    See also: `isnan`, to find them; `clip`, to limit all numbers; `nansum`, to ignore them.

    Example:
        >>> ops.nan_to_num([float("nan"), 1.0]).tolist()
        [0.0, 1.0]
    """
    dtype = dtype_of(x)
    if dtype.is_complex:
        if shared_rounding.holds_tensor(nan, posinf, neginf):
            raise DTypeError(f"for a tensor of {dtype.name}, expected numbers as nan, posinf and neginf, got a tensor")
        components = complex_numbers.real(x), complex_numbers.imag(x)
        return complex_numbers.view_as_complex(
            stack([nan_to_num(component, nan, posinf, neginf) for component in components], -1)
        )
    if not dtype.is_floating:
        return x
    dtype_limits = FloatInfo.of_dtype(dtype)
    negative_replacement = dtype_limits.min if neginf is None else cast_option("neginf", neginf, x)
    positive_replacement = dtype_limits.max if posinf is None else cast_option("posinf", posinf, x)
    x_without_infinities = where(
        equal(x, math.inf), positive_replacement, where(equal(x, -math.inf), negative_replacement, x)
    )
    return where(isnan(x), cast_option("nan", nan, x), x_without_infinities)


@op(elementwise=True, takes="real", gives="float", finite="yes")
def copysign(x1: Operand, x2: Operand) -> Tensor:
    """Returns the magnitude of `x1` with the sign of `x2`, always floating.

    See also: `sign`, alone.

    Example:
        >>> ops.copysign([1.0, 2.0], [-0.0, 3.0]).tolist()
        [-1.0, 2.0]
    """
    magnitude = absolute(x1)
    return where(signbit(x2), negative(magnitude), magnitude)


@op(elementwise=True, finite="yes")
def fabs(x: TensorLike) -> Tensor:
    """Returns the absolute value, always floating: integers become the default float.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    Raises:
        DTypeError: if `x` is complex.

    See also: `absolute`, in any dtype.

    Example:
        >>> ops.fabs([-3, 2]).tolist()
        [3.0, 2.0]
    """
    return copysign(x, 1.0)


@op(elementwise=True, takes="real", gives="bool")
def signbit(x: TensorLike) -> Tensor:
    """Returns whether the sign bit is set, which includes -0.0.

    See also: `sign`, as a number.

    Example:
        >>> ops.signbit([-1.0, 2.0]).tolist()
        [True, False]
    """
    is_negative = less(x, 0)
    if not dtype_of(x).is_floating:
        return is_negative
    # The reciprocal of a zero tells its sign; the sign of NaN is lost.
    return logical_or(is_negative, logical_and(equal(x, 0), less(divide(1.0, x), 0)))


@op(elementwise=True, takes="real", gives="float", reads="data")
def nextafter(x1: Operand, x2: Operand) -> Tensor:
    """Returns the next number of the dtype after `x1` towards `x2`, or `x2` itself if they are equal.

    Dtype: integers become the default float.

    See also: `finfo`, with the spacing at 1.

    Example:
        >>> ops.nextafter([1.0, 2.0], [2.0, 2.0]).tolist()
        [1.0000001192092896, 2.0]
    """
    return bodies.tensor_like_from_host(
        shared_rounding.next_floats(bodies.to_host_array(x1), bodies.to_host_array(x2)), x1
    )


@op(elementwise=True)
def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Returns `x1 * 2**x2`; the power itself does not overflow.

    Dtype: that of `x1`; integers become the default float.

    Args:
        x1: a tensor that broadcasts against `x2`; integers become the default float.
        x2: the exponents: a tensor of integers or booleans that broadcasts against `x1`.

    Raises:
        DTypeError: if `x2` does not hold integers.

    See also: `exp2`, of the exponent alone.

    Example:
        >>> ops.ldexp([0.75, 3.0], [2, -1]).tolist()
        [3.0, 1.5]
    """
    x1_dtype, exponent_dtype = dtype_of(x1), dtype_of(x2)
    if exponent_dtype.is_floating or exponent_dtype.is_complex:
        raise DTypeError(f"the exponents x2 are integers, not {exponent_dtype.name}; cast them first (ops.cast)")
    x = cast(x1, as_inexact(x1_dtype))
    widest_x = bodies.cast_to_widest(x)
    if exponent_dtype.is_integer:
        dtype_limits = IntegerInfo.of_dtype(exponent_dtype)
        x2 = minimum(maximum(x2, max(dtype_limits.min, -5000)), min(dtype_limits.max, 5000))
    remaining_shift = cast(cast(x2, "int32"), dtype_of(widest_x))
    for _ in range(12):
        # No step but the last one may leave the range of normal numbers downwards, where digits are lost.
        step_exponent = minimum(maximum(remaining_shift, -500.0), 500.0)
        widest_x, remaining_shift = (
            multiply(widest_x, power(2.0, step_exponent)),
            subtract(remaining_shift, step_exponent),
        )
    return cast(widest_x, dtype_of(x))


@op(elementwise=True, finite="yes")
def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Returns `x` in another dtype, clipped to the range of that dtype; NaN becomes 0 in an integer dtype.

    Complex tensors, and casts from or to bool or to a complex dtype, behave like `cast`.

    Args:
        x: a tensor of any shape and dtype.

    See also: `cast`, without limits.

    Example:
        >>> ops.saturate_cast([-5, 100, 300], "uint8").tolist()
        [0, 100, 255]
    """
    source_dtype, target_dtype = dtype_of(x), as_dtype(dtype)
    if source_dtype.is_complex or target_dtype.is_complex or target_dtype.kind == "bool" or source_dtype.kind == "bool":
        return cast(x, dtype)
    if target_dtype.is_floating:
        largest_float = FloatInfo.of_dtype(target_dtype).max
        is_narrower = source_dtype.is_floating and FloatInfo.of_dtype(source_dtype).max > largest_float
        return cast(clip(x, -largest_float, largest_float) if is_narrower else x, dtype)
    lowest_integer, highest_integer = IntegerInfo.of_dtype(target_dtype).min, IntegerInfo.of_dtype(target_dtype).max
    if source_dtype.is_integer:
        source_limits = IntegerInfo.of_dtype(source_dtype)
        return cast(
            clip(
                x,
                lowest_integer if lowest_integer > source_limits.min else None,
                highest_integer if highest_integer < source_limits.max else None,
            ),
            dtype,
        )
    # A float may not represent `high` exactly, but it represents the powers of two `high + 1` and `low`.
    is_above, is_below = greater_equal(x, float(highest_integer + 1)), less_equal(x, float(lowest_integer))
    inside_x = where(logical_or(logical_or(is_above, is_below), isnan(x)), 0.0, x)
    return where(is_above, highest_integer, where(is_below, lowest_integer, cast(inside_x, dtype)))
