"""Samples along a line: differences, integrals, interpolation, correlation, convolution, polynomials."""

from __future__ import annotations

from typing import Literal

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.axes import as_index
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.numeric.promotion import as_inexact, promote
from emberharmony.core.options import as_number
from emberharmony.core.types import Operand, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.creation import arange, zeros_like
from emberharmony.ops.arrays.indexing import take, where
from emberharmony.ops.arrays.shape import broadcast_to, concatenate, expand_dims, flip, moveaxis, pad, split, unstack
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import cast_option
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementwise.complex_numbers import conj
from emberharmony.ops.logic.comparison import (
    equal,
    greater,
    isfinite,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from emberharmony.ops.math import add, clip, divide, mod, multiply, subtract
from emberharmony.ops.reductions.reduction import sum
from emberharmony.ops.reductions.sorting import argsort, searchsorted
from emberharmony.ops.tensor import cast


@op
def diff(
    a: TensorLike, n: int = 1, axis: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """Returns the n-th differences between neighbouring elements along an axis; booleans differ if they are not equal.

    Args:
        a: a tensor with at least one axis, of any dtype.
        n: how often differences are taken; 0 returns `a` itself.
        prepend: a tensor to put before `a` along the axis before taking differences; None puts nothing.
        append: a tensor to put after `a` along the axis; None puts nothing.

    Raises:
        ArgumentError: if `n` is negative.
        AxisError: if `axis` is out of range.

    See also: `cumsum`, which adds them up.

    Example:
        >>> ops.diff([1, 4, 9]).tolist()
        [3, 5]
    """
    n = as_index(n)
    if n < 0:
        raise ArgumentError(f"expected n of 0 or more, got {n}")
    given_pieces = [piece for piece in (prepend, a, append) if piece is not None and (n or piece is a)]
    a = concatenate(given_pieces, axis) if len(given_pieces) > 1 else a
    (axis_index,) = nonnegative_axes(axis, len(a.shape))
    difference_of = not_equal if dtype_of(a) == "bool" else subtract
    for _ in range(n)[: a.shape[axis_index] or 1]:  # then the axis is empty, and stays so
        later_elements = split(a, [1], axis)[1]
        earlier_elements = split(a, [a.shape[axis] - 1], axis)[0] if a.shape[axis] else a
        a = difference_of(later_elements, earlier_elements)
    return a


@op
def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: Varying = 1.0, axis: int = -1) -> Tensor:
    """Returns the integral along an axis by the trapezoidal rule.

    Args:
        y: the samples: a tensor of any dtype; integers become the default float.
        x: the positions of the samples, as a vector or in the shape of `y`; None for samples that are `dx` apart.
        dx: the distance of the samples, if there is no `x`.

    See also: `cumulative_sum`, of what came before; `sum`, without a width.

    Example:
        >>> ops.trapezoid([1.0, 2.0, 3.0]).tolist()
        4.0
    """
    # Cast to float, because sums and differences of narrow integers would wrap.
    y = cast(moveaxis(y, axis, -1), as_inexact(dtype_of(y)))
    # In the array API standard a slice begins and ends within its axis.
    length = y.shape[-1]
    mean_heights = divide(add(y[..., min(length, 1) :], y[..., : max(length - 1, 0)]), 2.0)
    if x is None:
        return multiply(sum(mean_heights, -1), cast_option("dx", dx, y))
    x = cast(x if len(x.shape) == 1 else moveaxis(x, axis, -1), as_inexact(dtype_of(x)))
    return sum(multiply(mean_heights, diff(x)), -1)


@op(reads="checks")
def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: Operand | None = None,
    right: Operand | None = None,
    period: float | None = None,
) -> Tensor:
    """Returns the values at `x` of the piecewise linear function through the points (xp, fp); NaN where `x` is NaN.

    The gradient by `x` at one of the points is the slope to its right, and 0 outside of the points.

    Shape: that of `x`. Dtype: the promoted dtype; integers become the default float. Half precision is computed in
    float32.

    Args:
        x: where the function is evaluated: a tensor of any shape; integers become the default float.
        xp: a vector in ascending order, which is not checked; with a period, in any order.
        fp: a vector of the same length, real or complex.
        left: the value below `xp[0]`; None is `fp[0]`.
        right: the value above `xp[-1]`; None is `fp[-1]`.
        period: if given, the function repeats with this period, and `left` and `right` have no effect; None does not
            repeat it.

    Raises:
        ShapeError: if `xp` and `fp` are not vectors of the same length, or are empty.
        ArgumentError: if `period` is 0.

    See also: `map_coordinates`, along several axes; `searchsorted`, the interval.

    Example:
        >>> ops.interp([0.5, 2.5, 9.0], [0.0, 1.0, 2.0, 3.0], [0.0, 10.0, 20.0, 30.0]).tolist()
        [5.0, 25.0, 30.0]
    """
    if len(xp.shape) != 1 or tuple(xp.shape) != tuple(fp.shape) or not xp.shape[0]:
        raise ShapeError(
            f"expected two vectors of the same length, at least 1, got xp of shape {tuple(xp.shape)} and fp of shape "
            f"{tuple(fp.shape)}"
        )
    axis_dtype = as_inexact(promote(dtype_of(x), dtype_of(xp)))
    result_dtype = as_inexact(promote(axis_dtype, dtype_of(fp)))
    x, xp = (cast(operand, "float32" if axis_dtype.bits == 16 else axis_dtype) for operand in (x, xp))
    fp = cast(fp, "float32" if result_dtype.bits == 16 else result_dtype)
    if period is not None:
        x, xp, fp = _wrap_into_period(x, xp, fp, abs(as_number("period", period)))
        left = right = None
    last_index = xp.shape[0] - 1
    lower_index = clip(subtract(searchsorted(xp, x, "right"), 1), 0, last_index)
    upper_index = clip(add(lower_index, 1), 0, last_index)
    lower_x, lower_values = take(xp, lower_index), take(fp, lower_index)
    x_step, upper_values = subtract(take(xp, upper_index), lower_x), take(fp, upper_index)
    x_fraction, value_step = (
        divide(subtract(x, lower_x), where(equal(x_step, 0), 1.0, x_step)),
        subtract(upper_values, lower_values),
    )
    # Beside an infinite point, inf - inf would be NaN: take its value at its place and between two equal ones, and
    # elsewhere start from the finite point.
    is_flat = logical_and(
        logical_not(isfinite(value_step)), logical_or(equal(x_fraction, 0), equal(upper_values, lower_values))
    )
    is_forward = logical_or(is_flat, isfinite(lower_values))
    signed_weight = where(is_forward, x_fraction, subtract(x_fraction, 1))
    interpolated_values = add(
        where(is_forward, lower_values, upper_values), multiply(where(is_flat, 0.0, value_step), signed_weight)
    )
    interpolated_values = where(less(x, xp[0]), fp[0] if left is None else left, interpolated_values)
    interpolated_values = where(
        greater(x, xp[last_index]), fp[last_index] if right is None else right, interpolated_values
    )
    return cast(where(isnan(x), float("nan"), interpolated_values), result_dtype)


def _wrap_into_period(x: Tensor, xp: Tensor, fp: Tensor, period: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the positions within one period, and the points of the period with one more at each end.

    Raises:
        ArgumentError: if the period is 0.
    """
    if not period:
        raise ArgumentError("expected a period other than 0")
    x, xp = mod(x, period), mod(xp, period)
    sorting_indices = argsort(xp)
    xp, fp = take(xp, sorting_indices), take(fp, sorting_indices)
    extended_xp = [subtract(xp[-1:], period), xp, add(xp[:1], period)]
    return x, concatenate(extended_xp), concatenate([fp[-1:], fp, fp[:1]])


@op
def correlate(x1: TensorLike, x2: TensorLike, mode: Literal["valid", "same", "full"] = "valid") -> Tensor:
    """Returns the cross-correlation of two vectors, `sum(x1[n + k] * conj(x2[n]))` for each shift k.

    The memory needed grows with the product of the lengths.

    Args:
        x1: a vector of any dtype.
        x2: a vector of any dtype, which is shifted.
        mode: "full" keeps all shifts with an overlap, "valid" those with a full overlap, and "same" as many as the
            longer vector has elements.

    Raises:
        ArgumentError: if `mode` is unknown.
        ShapeError: if an operand is empty or is not a vector.

    See also: `convolve`, with reversal; `conv`, of batches with channels.

    Example:
        >>> ops.correlate([1, 2, 3], [0, 1]).tolist()
        [2, 3]
    """
    if mode not in ("valid", "same", "full"):
        raise ArgumentError(f"expected mode 'valid', 'same' or 'full', got {mode!r}")
    if len(x1.shape) != 1 or len(x2.shape) != 1 or not x1.shape[0] or not x2.shape[0]:
        raise ShapeError(f"expected two vectors that are not empty, got shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    long_length, short_length = x1.shape[0], x2.shape[0]
    if long_length < short_length:
        return flip(conj(correlate(x2, x1, mode)), 0)
    padded_x1 = pad(x1, (short_length - 1, short_length - 1))
    first_index = {"full": 0, "same": (short_length - 1) // 2, "valid": short_length - 1}[mode]
    shift_count = {
        "full": long_length + short_length - 1,
        "same": long_length,
        "valid": long_length - short_length + 1,
    }[mode]
    device = get_device(x1)
    shift_indices = add(
        expand_dims(arange(first_index, first_index + shift_count, device=device), 1),
        arange(short_length, device=device),
    )
    return sum(multiply(take(padded_x1, shift_indices), conj(x2)), -1, False, promote(dtype_of(x1), dtype_of(x2)))


@op
def convolve(x1: TensorLike, x2: TensorLike, mode: Literal["valid", "same", "full"] = "full") -> Tensor:
    """Returns the convolution of two vectors, `sum(x1[n] * x2[k - n])` for each k.

    The memory needed grows with the product of the lengths.

    Args:
        x1: a vector of any dtype.
        x2: a vector of any dtype.
        mode: "full" keeps all k with an overlap, "valid" those with a full overlap, and "same" as many as the longer
            vector has elements.

    Raises:
        ArgumentError: if `mode` is unknown.
        ShapeError: if an operand is empty or is not a vector.

    See also: `correlate`, without reversal; `conv`, of batches with channels.

    Example:
        >>> ops.convolve([1, 2, 3], [0, 1]).tolist()
        [0, 1, 2, 3]
    """
    if len(x1.shape) == len(x2.shape) == 1 and x1.shape[0] < x2.shape[0]:
        x1, x2 = x2, x1
    return correlate(x1, conj(flip(x2)), mode)


@op
def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """Returns the values at `x` of the polynomial `p[0] * x**(n - 1) + … + p[n - 1]`, by Horner's method.

    Shape: that of `x`. Dtype: promoted. Half precision is computed in float32.

    Args:
        p: the coefficients, a vector that begins with that of the highest power; without any, the result is 0.
        x: where the polynomial is evaluated: a tensor of any shape and dtype.

    Raises:
        ShapeError: if `p` is not a vector.

    See also: `vander`, the powers.

    Example:
        >>> ops.polyval([3, 0, 1], [0, 5]).tolist()
        [1, 76]
    """
    if len(p.shape) != 1:
        raise ShapeError(f"expected a vector of coefficients, got shape {tuple(p.shape)}")
    result_dtype = promote(dtype_of(p), dtype_of(x))
    wide_dtype = "float32" if result_dtype.bits == 16 and result_dtype.is_floating else result_dtype
    p, x = cast(p, wide_dtype), cast(x, wide_dtype)
    horner_value = broadcast_to(p[0], x.shape) if p.shape[0] else zeros_like(x)
    for coefficient in unstack(p)[1:]:
        horner_value = add(multiply(horner_value, x), coefficient)
    return cast(horner_value, result_dtype)
