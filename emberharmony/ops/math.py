"""Elementwise arithmetic.

Shape: operands are broadcast; `ShapeError` is raised if that is impossible. Dtype: operands are promoted. Python
numbers are weak; an integer outside the range of the dtype raises `RangeError`. Booleans raise `DTypeError` in
`subtract`, `negative`, `floor_divide`, `mod` and `power`, because these have no agreed meaning for them.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.dtype import dtype
from emberharmony.ops.logic.comparison import (
    equal,
    greater,
    isfinite,
    isinf,
    isnan,
    less,
    logical_and,
    logical_or,
    not_equal,
)
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.ops.arrays import indexing
else:
    indexing = Deferred("emberharmony.ops.arrays.indexing")  # which imports modules that need this one


@op(elementwise=True, takes="all", finite="gradient")
def add(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 + x2`; for booleans this is `or`.

    See also: `subtract`, the inverse; `sum`, over axes; `logaddexp`, of logarithms.

    Example:
        >>> ops.add([1, 2], [[10], [20]]).tolist()
        [[11, 12], [21, 22]]
    """
    ...


@op(elementwise=True, takes="numeric", finite="gradient")
def subtract(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 - x2`.

    See also: `add`, the inverse; `diff`, of neighbours.

    Example:
        >>> ops.subtract([5, 7], 2).tolist()
        [3, 5]
    """
    ...


@op(elementwise=True, takes="all")
def multiply(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 * x2`; for booleans this is `and`.

    See also: `divide`, the inverse; `prod`, over axes; `matmul`, for matrices.

    Example:
        >>> ops.multiply([1, 2], [3, 4]).tolist()
        [3, 8]
    """
    ...


@op(elementwise=True, takes="all", gives="float")
def divide(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 / x2`, always floating: integers become the default float.

    See also: `multiply`, the inverse; `divide_no_nan`, gradient-safe at 0; `floor_divide`, for integers.

    Example:
        >>> ops.divide([1, 2], 4).tolist()
        [0.25, 0.5]
    """
    ...


true_divide = alias("true_divide", divide)


@op(elementwise=True, takes="real numeric", gradient="zero")
def floor_divide(x1: Operand, x2: Operand) -> Tensor:
    """Returns the largest integer not above `x1 / x2`, in the promoted dtype.

    An integer divided by zero gives 0. The smallest integer divided by -1 wraps to itself. The quotient of two floats
    is exact below `1 / eps`: 1.0 // 0.1 is 9 in float32 too.

    Where an operand is infinite, the result is `floor(x1 / x2)`, as the array API standard prefers: inf // 2 is inf,
    and 1 // -inf is -0.0. Python, NumPy and PyTorch return NaN and -1 there, which is what belongs to `mod`.

    See also: `mod`, the remainder; `divmod`, both; `divide`, for floats.

    Example:
        >>> ops.floor_divide([7, -7], 2).tolist()
        [3, -4]
    """
    ...


@op(elementwise=True, takes="real numeric")
def mod(x1: Operand, x2: Operand) -> Tensor:
    """Returns the remainder of `floor_divide`, with the sign of the divisor.

    An integer modulo zero gives 0. If the remainder of floats is zero, its sign depends on the library. PyTorch returns
    NaN where the quotient overflows.

    See also: `fmod`, with the sign of the dividend; `floor_divide`, the quotient; `divmod`, both.

    Example:
        >>> ops.mod([7, -7], 3).tolist()
        [1, 2]
    """
    ...


remainder = alias("remainder", mod)


@op
def divmod(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Returns `floor_divide(x1, x2)` and `mod(x1, x2)`.

    Args:
        x1: the dividend: a tensor or number, which broadcasts against `x2`. Integers or floats.
        x2: the divisor: a tensor or number, which broadcasts against `x1`. Integers or floats.

    See also: `floor_divide`, the quotient alone; `mod`, the remainder alone.

    Example:
        >>> [part.tolist() for part in ops.divmod([7, -7], 2)]
        [[3, -4], [1, 1]]
    """
    return floor_divide(x1, x2), mod(x1, x2)


@op(elementwise=True, takes="real numeric")
def fmod(x1: Operand, x2: Operand) -> Tensor:
    """Returns the remainder of the division truncated towards zero, with the sign of the dividend.

    An integer modulo zero gives 0. PyTorch returns NaN where the quotient of two floats overflows.

    See also: `mod`, with the sign of the divisor.

    Example:
        >>> ops.fmod([7, -7], 3).tolist()
        [1, -1]
    """
    dtype_kind = dtype(x1).kind
    if dtype_kind == "float":
        # mod(x, inf) is x, but some libraries compute x - inf * 0.
        dividend_magnitude, divisor_magnitude = absolute(x1), absolute(x2)
        remainder = indexing.where(
            logical_and(isinf(x2), isfinite(x1)), dividend_magnitude, mod(dividend_magnitude, divisor_magnitude)
        )
        # A remainder of 0 keeps the sign of the dividend.
        return indexing.where(
            equal(remainder, 0), multiply(x1, 0), indexing.where(less(x1, 0), negative(remainder), remainder)
        )
    remainder = mod(x1, x2)
    if dtype_kind == "unsigned":
        return remainder
    # The magnitude of the smallest integer does not fit the dtype, so correct the sign of the remainder instead.
    has_wrong_sign = logical_and(not_equal(remainder, 0), not_equal(less(x1, 0), less(x2, 0)))
    return indexing.where(has_wrong_sign, subtract(remainder, x2), remainder)


@op(elementwise=True, takes="numeric", autocast="float32")
def power(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 ** x2`.

    An integer to a negative power is `1 / x1**n` truncated towards zero.

    See also: `square`, of exponent 2; `exp2`, of base 2; `matrix_power`, of matrices.

    Example:
        >>> ops.power([1, 2, 3], 2).tolist()
        [1, 4, 9]
    """
    ...


pow = alias("pow", power)


@op(elementwise=True, takes="all", gives="float")
def divide_no_nan(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 / x2`, and 0 where `x2` is 0; the gradient is 0 there too.

    See also: `divide`, infinite or NaN at 0.

    Example:
        >>> ops.divide_no_nan([1.0, 2.0], [0.0, 4.0]).tolist()
        [0.0, 0.5]
    """
    is_zero = equal(x2, 0)
    return indexing.where(is_zero, 0, divide(x1, indexing.where(is_zero, 1, x2)))


@op(elementwise=True, takes="numeric", finite="yes")
def negative(x: TensorLike) -> Tensor:
    """Returns `-x`; unsigned integers wrap.

    See also: `absolute`, without the sign.

    Example:
        >>> ops.negative([1, -2]).tolist()
        [-1, 2]
    """
    ...


@op(elementwise=True, takes="all", finite="yes")
def positive(x: TensorLike) -> Tensor:
    """Returns `x` unchanged.

    See also: `negative`, with the other sign.

    Example:
        >>> ops.positive([1, -2]).tolist()
        [1, -2]
    """
    return x


@op(elementwise=True, takes="all", gives="real")
def absolute(x: TensorLike) -> Tensor:
    """Returns the absolute value; for complex numbers the modulus, in a real dtype.

    See also: `fabs`, always floating; `sign`, what is left; `real`, of complex numbers.

    Example:
        >>> ops.absolute([-1.5, 2.0]).tolist()
        [1.5, 2.0]
    """
    ...


abs = alias("abs", absolute)


@op(elementwise=True, takes="all")
def sign(x: TensorLike) -> Tensor:
    """Returns -1, 0 or 1 (NaN for NaN); for complex numbers `x / abs(x)`.

    See also: `absolute`, without the sign; `signbit`, that tells -0; `copysign`, onto another number.

    Example:
        >>> ops.sign([-3, 0, 5]).tolist()
        [-1, 0, 1]
    """
    x_dtype = dtype(x)
    if x_dtype.kind == "bool":
        return x
    is_zero = equal(x, 0)
    if x_dtype.is_complex:
        return indexing.where(is_zero, 0, divide(x, cast(indexing.where(is_zero, 1, absolute(x)), x_dtype)))
    # NaN is neither above nor below 0, and stays NaN.
    signs = indexing.where(greater(x, 0), 1, indexing.where(is_zero, 0, x))
    return signs if x_dtype.kind == "unsigned" else indexing.where(less(x, 0), -1, signs)


@op(elementwise=True, takes="all")
def square(x: TensorLike) -> Tensor:
    """Returns `x * x`; booleans stay booleans.

    See also: `sqrt`, the inverse; `multiply`, of two tensors.

    Example:
        >>> ops.square([1, -3]).tolist()
        [1, 9]
    """
    return multiply(x, x)


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def reciprocal(x: TensorLike) -> Tensor:
    """Returns `1 / x`; integers become the default float.

    See also: `divide`, of any numerator; `rsqrt`, of the root.

    Example:
        >>> ops.reciprocal([2, 4]).tolist()
        [0.5, 0.25]
    """
    return divide(1.0, x)


@op(elementwise=True, takes="all", gives="float")
def sqrt(x: TensorLike) -> Tensor:
    """Returns the square root; NaN for negative numbers. Integers become the default float.

    See also: `square`, the inverse; `rsqrt`, the reciprocal; `cbrt`, of exponent 1/3; `hypot`, of a sum of squares;
    `vector_norm`, gradient-safe at 0.

    Example:
        >>> ops.sqrt([4.0, 9.0]).tolist()
        [2.0, 3.0]
    """
    ...


@op(elementwise=True, takes="all", gives="float", autocast="float32")
def rsqrt(x: TensorLike) -> Tensor:
    """Returns `1 / sqrt(x)`; integers become the default float.

    See also: `sqrt`, the reciprocal.

    Example:
        >>> ops.rsqrt([4.0]).tolist()
        [0.5]
    """
    return divide(1.0, sqrt(x))


@op(elementwise=True, takes="real", gives="float")
def hypot(x1: Operand, x2: Operand) -> Tensor:
    """Returns `sqrt(x1**2 + x2**2)`; the intermediate squares do not overflow.

    See also: `vector_norm`, over axes; `absolute`, of a complex number.

    Example:
        >>> ops.hypot([3.0], [4.0]).tolist()
        [5.0]
    """
    magnitude1, magnitude2 = absolute(x1), absolute(x2)
    # Divide by the larger magnitude, so that no square overflows.
    larger, smaller = maximum(magnitude1, magnitude2), minimum(magnitude1, magnitude2)
    ratio = divide(smaller, indexing.where(equal(larger, 0), 1, larger))
    hypotenuse = multiply(larger, sqrt(add(multiply(ratio, ratio), 1)))
    return indexing.where(logical_or(isinf(magnitude1), isinf(magnitude2)), inf, hypotenuse)


@op(elementwise=True, takes="real", finite="yes")
def maximum(x1: Operand, x2: Operand) -> Tensor:
    """Returns the larger of the two elements; NaN if either is NaN.

    Raises:
        DTypeError: if an operand is complex, because complex numbers have no order.

    See also: `max`, over axes; `fmax`, which ignores NaN; `minimum`, the other one.

    Example:
        >>> ops.maximum([1, 5], 3).tolist()
        [3, 5]
    """
    ...


@op(elementwise=True, takes="real", finite="yes")
def minimum(x1: Operand, x2: Operand) -> Tensor:
    """Returns the smaller of the two elements; NaN if either is NaN.

    Raises:
        DTypeError: if an operand is complex, because complex numbers have no order.

    See also: `min`, over axes; `fmin`, which ignores NaN; `maximum`, the other one.

    Example:
        >>> ops.minimum([1, 5], 3).tolist()
        [1, 3]
    """
    ...


@op(elementwise=True, takes="real", finite="yes")
def fmax(x1: Operand, x2: Operand) -> Tensor:
    """Returns the larger of the two elements; if one of them is NaN, returns the other.

    See also: `maximum`, which keeps NaN; `nanmax`, over axes.

    Example:
        >>> ops.fmax([1.0, float("nan")], 0.5).tolist()
        [1.0, 0.5]
    """
    return indexing.where(_is_nan(x1), x2, indexing.where(_is_nan(x2), x1, maximum(x1, x2)))


@op(elementwise=True, takes="real", finite="yes")
def fmin(x1: Operand, x2: Operand) -> Tensor:
    """Returns the smaller of the two elements; if one of them is NaN, returns the other.

    See also: `minimum`, which keeps NaN; `nanmin`, over axes.

    Example:
        >>> ops.fmin([1.0, float("nan")], 0.5).tolist()
        [0.5, 0.5]
    """
    return indexing.where(_is_nan(x1), x2, indexing.where(_is_nan(x2), x1, minimum(x1, x2)))


@op(elementwise=True, finite="yes")
def clip(
    x: TensorLike,
    x_min: Tensor | float | None = None,
    x_max: Tensor | float | None = None,
    *,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
) -> Tensor:
    """Returns `x` limited to `[x_min, x_max]`.

    Where `x_min > x_max` the result is `x_max`. A limit of None does not limit that side.

    Args:
        x: a tensor of any shape; booleans, integers or floats.
        x_min: the lower limit: a number, or a tensor that broadcasts against `x`; None sets no lower limit.
        x_max: the upper limit: a number, or a tensor that broadcasts against `x`; None sets no upper limit.
        min: the name of `x_min` in the array API standard, which counts where that is None.
        max: the name of `x_max` in the array API standard, which counts where that is None.

    See also: `maximum`, with a lower limit alone; `minimum`, with an upper limit alone; `nan_to_num`, for NaN and
    infinities.

    Example:
        >>> ops.clip([-2, 1, 5], 0, 3).tolist()
        [0, 1, 3]
    """
    lower_bound, upper_bound = min if x_min is None else x_min, max if x_max is None else x_max
    if lower_bound is not None:
        x = maximum(x, lower_bound)
    return x if upper_bound is None else minimum(x, upper_bound)


@op(elementwise=True, takes="real", gives="float", finite="yes")
def heaviside(x1: Operand, x2: Operand) -> Tensor:
    """Returns 0 where `x1` is negative, `x2` where it is zero, 1 where it is positive; NaN for NaN.

    Dtype: integers become the default float.

    See also: `step`, 0 at 0.

    Example:
        >>> ops.heaviside([-1.5, 0.0, 2.0], 0.5).tolist()
        [0.0, 0.5, 1.0]
    """
    step_values = indexing.where(less(x1, 0), 0, indexing.where(equal(x1, 0), x2, 1))
    return indexing.where(isnan(x1), x1, step_values)


@op(elementwise=True, finite="yes")
def step(x: TensorLike) -> Tensor:
    """Returns 1 where `x` is positive, else 0 (also for NaN), in the dtype of `x`.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    Raises:
        DTypeError: if `x` is complex.

    See also: `heaviside`, with a value at 0.

    Example:
        >>> ops.step([-1.0, 0.0, 2.0]).tolist()
        [0.0, 0.0, 1.0]
    """
    return cast(greater(x, 0), dtype(x))


@op(elementwise=True, takes="integer")
def gcd(x1: Operand, x2: Operand) -> Tensor:
    """Returns the greatest common divisor of two integers, which is never negative; for 0 and n it is `abs(n)`.

    Raises:
        DTypeError: if an operand does not hold integers.

    See also: `lcm`, the multiple.

    Example:
        >>> ops.gcd([12, -18, 0], 8).tolist()
        [4, 2, 8]
    """
    x1_dtype = dtype(x1)
    a, b = (x1, x2) if x1_dtype.kind == "unsigned" else (absolute(x1), absolute(x2))
    # Lamé: the Fibonacci numbers need the most of Euclid's steps, 1.44 for each bit.
    for _ in range(ceil(1.45 * x1_dtype.bits) + 2):
        is_zero = equal(b, 0)
        a, b = indexing.where(is_zero, a, b), indexing.where(is_zero, 0, mod(a, indexing.where(is_zero, 1, b)))
    return absolute(a) if x1_dtype.kind == "signed" else a


@op(elementwise=True)
def lcm(x1: Operand, x2: Operand) -> Tensor:
    """Returns the least common multiple of two integers; 0 if one of them is 0.

    The result wraps if the dtype cannot hold it.

    Args:
        x1: a tensor or number of integers, which broadcasts against `x2`.
        x2: a tensor or number of integers, which broadcasts against `x1`.

    Raises:
        DTypeError: if an operand does not hold integers.

    See also: `gcd`, the divisor.

    Example:
        >>> ops.lcm([4, -6, 0], 10).tolist()
        [20, 30, 0]
    """
    return absolute(multiply(floor_divide(x1, gcd(x1, x2)), x2))


def _is_nan(x: Tensor | float) -> Tensor | bool:
    """Returns where an operand is NaN; False for a Python integer, which may be too large for any dtype."""
    return False if isinstance(x, int) else isnan(x)
