"""Elementwise arithmetic and rounding.

Shape: operands are broadcast. Dtype: operands are promoted; Python numbers are weak; an integer out of range raises
`RangeError`. Shapes that do not broadcast raise `ShapeError`. Booleans are refused with a `DTypeError` where arithmetic
on them has no one meaning (`subtract`, `negative`, `floor_divide`, `mod`, `power`).
"""

from __future__ import annotations

from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Operand, Tensor, TensorLike
from emberharmony.ops.comparison import equal, isnan, less
from emberharmony.ops.indexing import where


@op
def add(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 + x2`; booleans are added as `or`.

    Example:
        >>> ops.add([1, 2], [[10], [20]]).tolist()
        [[11, 12], [21, 22]]
    """
    ...


@op
def subtract(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 - x2`.

    Example:
        >>> ops.subtract([5, 7], 2).tolist()
        [3, 5]
    """
    ...


@op
def multiply(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 * x2`; booleans are multiplied as `and`.

    Example:
        >>> ops.multiply([1, 2], [3, 4]).tolist()
        [3, 8]
    """
    ...


@op
def divide(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 / x2`, always floating: integers take the default float.

    Example:
        >>> ops.divide([1, 2], 4).tolist()
        [0.25, 0.5]
    """
    ...


true_divide = alias("true_divide", divide)


@op
def floor_divide(x1: Operand, x2: Operand) -> Tensor:
    """Returns the largest integer not above `x1 / x2`, in the promoted dtype.

    Integers divided by zero give 0; the smallest integer divided by -1 wraps to itself.

    Example:
        >>> ops.floor_divide([7, -7], 2).tolist()
        [3, -4]
    """
    ...


@op
def mod(x1: Operand, x2: Operand) -> Tensor:
    """Returns the remainder of `floor_divide`, with the sign of the divisor.

    Integers modulo zero give 0.

    Example:
        >>> ops.mod([7, -7], 3).tolist()
        [1, 2]
    """
    ...


remainder = alias("remainder", mod)


@op
def fmod(x1: Operand, x2: Operand) -> Tensor:
    """Returns the remainder of the division truncated to zero, with the sign of the dividend.

    Integers modulo zero give 0.

    Example:
        >>> ops.fmod([7, -7], 3).tolist()
        [1, -1]
    """
    ...


@op
def power(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 ** x2`.

    Integers to negative powers are truncated to zero, as `1 / x1**n` is.

    Example:
        >>> ops.power([1, 2, 3], 2).tolist()
        [1, 4, 9]
    """
    ...


pow = alias("pow", power)


@op
def divide_no_nan(x1: Operand, x2: Operand) -> Tensor:
    """Returns `x1 / x2`, and 0 where `x2` is 0.

    Example:
        >>> ops.divide_no_nan([1.0, 2.0], [0.0, 4.0]).tolist()
        [0.0, 0.5]
    """
    zero = equal(x2, 0)
    return where(zero, 0.0, divide(x1, where(zero, 1, x2)))


@op
def negative(x: TensorLike) -> Tensor:
    """Returns `-x`; unsigned integers wrap.

    Example:
        >>> ops.negative([1, -2]).tolist()
        [-1, 2]
    """
    ...


@op
def positive(x: TensorLike) -> Tensor:
    """Returns `x`."""
    ...


@op
def absolute(x: TensorLike) -> Tensor:
    """Returns the absolute value, of a complex number the modulus as a real one.

    Example:
        >>> ops.absolute([-1.5, 2.0]).tolist()
        [1.5, 2.0]
    """
    ...


abs = alias("abs", absolute)


@op
def sign(x: TensorLike) -> Tensor:
    """Returns -1, 0 or 1 (NaN for NaN), of a complex number `x / abs(x)`.

    Example:
        >>> ops.sign([-3, 0, 5]).tolist()
        [-1, 0, 1]
    """
    ...


@op
def square(x: TensorLike) -> Tensor:
    """Returns `x * x`.

    Example:
        >>> ops.square([1, -3]).tolist()
        [1, 9]
    """
    ...


@op
def reciprocal(x: TensorLike) -> Tensor:
    """Returns `1 / x`; integers take the default float.

    Example:
        >>> ops.reciprocal([2, 4]).tolist()
        [0.5, 0.25]
    """
    ...


@op
def sqrt(x: TensorLike) -> Tensor:
    """Returns the square root; NaN below zero. Integers take the default float.

    Example:
        >>> ops.sqrt([4.0, 9.0]).tolist()
        [2.0, 3.0]
    """
    ...


@op
def rsqrt(x: TensorLike) -> Tensor:
    """Returns `1 / sqrt(x)`; integers take the default float.

    Example:
        >>> ops.rsqrt([4.0]).tolist()
        [0.5]
    """
    ...


@op
def maximum(x1: Operand, x2: Operand) -> Tensor:
    """Returns the larger of the two; NaN if either is NaN.

    Example:
        >>> ops.maximum([1, 5], 3).tolist()
        [3, 5]
    """
    ...


@op
def minimum(x1: Operand, x2: Operand) -> Tensor:
    """Returns the smaller of the two; NaN if either is NaN.

    Example:
        >>> ops.minimum([1, 5], 3).tolist()
        [1, 3]
    """
    ...


@op
def fmax(x1: Operand, x2: Operand) -> Tensor:
    """Returns the larger of the two, of a NaN and a number the number.

    Example:
        >>> ops.fmax([1.0, float("nan")], 0.5).tolist()
        [1.0, 0.5]
    """
    return where(isnan(x1), x2, where(isnan(x2), x1, maximum(x1, x2)))


@op
def fmin(x1: Operand, x2: Operand) -> Tensor:
    """Returns the smaller of the two, of a NaN and a number the number.

    Example:
        >>> ops.fmin([1.0, float("nan")], 0.5).tolist()
        [0.5, 0.5]
    """
    return where(isnan(x1), x2, where(isnan(x2), x1, minimum(x1, x2)))


@op
def clip(x: TensorLike, x_min: Tensor | float | None = None, x_max: Tensor | float | None = None) -> Tensor:
    """Returns `x` limited to `[x_min, x_max]`; where `x_min > x_max` that is `x_max`. None leaves a side open.

    Example:
        >>> ops.clip([-2, 1, 5], 0, 3).tolist()
        [0, 1, 3]
    """
    if x_min is not None:
        x = maximum(x, x_min)
    return x if x_max is None else minimum(x, x_max)


@op
def heaviside(x1: Operand, x2: Operand) -> Tensor:
    """Returns 0 where `x1` is negative, `x2` where it is zero, 1 where it is positive; NaN for NaN.

    Example:
        >>> ops.heaviside([-1.5, 0.0, 2.0], 0.5).tolist()
        [0.0, 0.5, 1.0]
    """
    x1 = add(x1, 0.0)
    return where(equal(x1, 0), x2, where(less(x1, 0), 0.0, where(isnan(x1), x1, 1.0)))


@op
def step(x: TensorLike) -> Tensor:
    """Returns 1 where `x` is positive, else 0, in the dtype of `x`.

    Example:
        >>> ops.step([-1.0, 0.0, 2.0]).tolist()
        [0.0, 0.0, 1.0]
    """
    return maximum(sign(x), 0)


@op
def floor(x: TensorLike) -> Tensor:
    """Returns the largest integer not above each element; integers stay what they are.

    Example:
        >>> ops.floor([1.5, -1.5]).tolist()
        [1.0, -2.0]
    """
    ...


@op
def ceil(x: TensorLike) -> Tensor:
    """Returns the smallest integer not below each element; integers stay what they are.

    Example:
        >>> ops.ceil([1.5, -1.5]).tolist()
        [2.0, -1.0]
    """
    ...


@op
def trunc(x: TensorLike) -> Tensor:
    """Returns each element rounded towards zero; integers stay what they are.

    Example:
        >>> ops.trunc([1.5, -1.5]).tolist()
        [1.0, -1.0]
    """
    ...


@op
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Returns each element rounded to so many decimals, halves to the even neighbour; integers stay what they are.

    Example:
        >>> ops.round([0.5, 1.5, 2.4]).tolist()
        [0.0, 2.0, 2.0]
    """
    ...


@op
def hypot(x1: Operand, x2: Operand) -> Tensor:
    """Returns `sqrt(x1**2 + x2**2)` without overflow on the way.

    Example:
        >>> ops.hypot([3.0], [4.0]).tolist()
        [5.0]
    """
    ...


@op
def arctan2(x1: Operand, x2: Operand) -> Tensor:
    """Returns the angle of the point (x2, x1) from the first axis, in radians from -pi to pi.

    Example:
        >>> ops.arctan2([0.0], [1.0]).tolist()
        [0.0]
    """
    ...


atan2 = alias("atan2", arctan2)


@op
def copysign(x1: Operand, x2: Operand) -> Tensor:
    """Returns the magnitude of `x1` with the sign of `x2`, always floating.

    Example:
        >>> ops.copysign([1.0, 2.0], [-0.0, 3.0]).tolist()
        [-1.0, 2.0]
    """
    ...


@op
def signbit(x: TensorLike) -> Tensor:
    """Returns whether the sign is negative, of -0.0 too.

    Example:
        >>> ops.signbit([-1.0, 2.0]).tolist()
        [True, False]
    """
    ...


@op
def conj(x: TensorLike) -> Tensor:
    """Returns the complex conjugate; real tensors are returned as they are."""
    ...


conjugate = alias("conjugate", conj)


@op
def real(x: TensorLike) -> Tensor:
    """Returns the real part; real tensors are returned as they are."""
    ...


@op
def imag(x: TensorLike) -> Tensor:
    """Returns the imaginary part, of real tensors zeros."""
    ...


@op
def angle(x: TensorLike) -> Tensor:
    """Returns the angle of each complex number in radians, from -pi to pi."""
    return arctan2(imag(x), real(x))


@op
def nan_to_num(x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Returns `x` with NaN and infinities replaced, by default by 0 and the largest finite numbers of the dtype.

    Example:
        >>> ops.nan_to_num([float("nan"), 1.0]).tolist()
        [0.0, 1.0]
    """
    ...
