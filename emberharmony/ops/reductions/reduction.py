"""Reductions and cumulative ops over axes.

Shape: `axis` is one axis, several, or None for all. Reduced axes are removed unless `keepdims`; reducing all axes gives
a 0-d tensor.

Dtype: `sum`, `prod`, `cumsum` and `cumprod` return int64 for booleans and signed integers, and uint64 for unsigned
ones. Means of integers are the default float; indices are int64.

NaN propagates. Half precision is accumulated in float32. Sums of float32 have an error of a few eps times the sum of
magnitudes, for any length of the axis.

An axis that is out of range, or named twice, raises `AxisError`. Complex tensors raise `DTypeError` if an order is
needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis, require_nonempty
from emberharmony.core.dispatch import alias, op
from emberharmony.core.errors import ArgumentError, AxisError
from emberharmony.core.options import require_scalar
from emberharmony.core.types import Axis, DTypeLike, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.creation import arange
from emberharmony.ops.arrays.indexing import take_along_axis, where
from emberharmony.ops.arrays.shape import pad, ravel, reshape, squeeze
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import cast_option, narrow_like, refuse_complex, widen
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementwise.complex_numbers import imag, real
from emberharmony.ops.elementwise.elementary import exp, log, logaddexp
from emberharmony.ops.flow.control import associative_scan
from emberharmony.ops.logic.comparison import equal, greater, isfinite, isnan, logical_or, not_equal
from emberharmony.ops.math import add, divide, maximum, minimum, multiply, sqrt, square, subtract
from emberharmony.ops.tensor import cast


@op(along="axes", autocast="float32", finite="gradient")
def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the sum over axes; 0 if there are no elements.

    See also: `nansum`, which ignores NaN; `cumsum`, of what came before; `mean`, divided by the number.

    Example:
        >>> ops.sum([[1, 2], [3, 4]], axis=0).tolist()
        [4, 6]
    """
    ...


@op(along="axes", autocast="float32")
def prod(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the product over axes; 1 if there are no elements.

    See also: `nanprod`, which ignores NaN; `cumprod`, of what came before.

    Example:
        >>> ops.prod([1, 2, 3]).tolist()
        6
    """
    ...


@op(along="axes", autocast="float32", finite="gradient")
def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the arithmetic mean over axes; NaN if there are no elements.

    Args:
        x: a tensor of any shape and dtype; integers and booleans become the default float.

    See also: `nanmean`, which ignores NaN; `average`, with weights; `median`, robust.

    Example:
        >>> ops.mean([1, 2, 3]).tolist()
        2.0
    """
    return narrow_like(divide(sum(widen(x), axis, keepdims), _element_count(x, axis)), x)


@op(along="axes", autocast="float32")
def var(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: Varying = 0) -> Tensor:
    """Returns the variance over axes: the mean squared distance from the mean, computed in two passes.

    Args:
        x: a tensor of any shape and dtype; integers become the default float, and complex ones give real variances.
        correction: subtracted from the number of elements in the divisor; 1 gives the unbiased estimate. If the divisor
            is not positive, the variance is NaN. It is a number, or a tensor without axes.

    See also: `nanvar`, which ignores NaN; `std`, its root; `moments`, with the mean.

    Example:
        >>> ops.var([1.0, 3.0]).tolist()
        1.0
    """
    return narrow_like(_variance(x, axis, keepdims, correction), x)


@op(along="axes", autocast="float32")
def std(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: Varying = 0) -> Tensor:
    """Returns the standard deviation over axes, the square root of `var`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float, and complex ones give real deviations.
        correction: subtracted from the number of elements in the divisor; 1 gives the unbiased variance. It is a
            number, or a tensor without axes.

    See also: `nanstd`, which ignores NaN; `var`, its square.

    Example:
        >>> ops.std([1.0, 3.0]).tolist()
        1.0
    """
    return narrow_like(sqrt(_variance(x, axis, keepdims, correction)), x)


@op(along="axes", finite="yes")
def max(x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: Varying | None = None) -> Tensor:
    """Returns the largest element over axes.

    Args:
        x: a tensor of any shape; booleans, integers or floats.
        initial: a lower bound of the result, which is returned if there are no elements; a number, or a tensor without
            axes. None sets no bound.

    Raises:
        ShapeError: if there are no elements and no `initial`.

    See also: `nanmax`, which ignores NaN; `argmax`, its index; `maximum`, of two tensors; `cummax`, of what came
    before.

    Example:
        >>> ops.max([3, 1, 2]).tolist()
        3
    """
    ...


amax = alias("amax", max)


@op(along="axes", finite="yes")
def min(x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: Varying | None = None) -> Tensor:
    """Returns the smallest element over axes.

    Args:
        x: a tensor of any shape; booleans, integers or floats.
        initial: an upper bound of the result, which is returned if there are no elements; a number, or a tensor without
            axes. None sets no bound.

    Raises:
        ShapeError: if there are no elements and no `initial`.

    See also: `nanmin`, which ignores NaN; `argmin`, its index; `minimum`, of two tensors; `cummin`, of what came
    before.

    Example:
        >>> ops.min([3, 1, 2]).tolist()
        1
    """
    ...


amin = alias("amin", min)


@op(along="axes", gradient="zero", finite="yes")
def any(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns whether any element over axes is non-zero; False if there are no elements.

    Args:
        x: a tensor of any shape and dtype; non-zero numbers, and NaN, count as true.

    See also: `all`, if every element is; `count_nonzero`, how many.

    Example:
        >>> ops.any([0, 1]).tolist()
        True
    """
    return not_equal(max(cast(not_equal(x, 0), "int32"), axis, keepdims, 0), 0)


@op(along="axes", gradient="zero", finite="yes")
def all(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns whether all elements over axes are non-zero; True if there are no elements.

    Args:
        x: a tensor of any shape and dtype; non-zero numbers, and NaN, count as true.

    See also: `any`, if some element is; `count_nonzero`, how many.

    Example:
        >>> ops.all([0, 1]).tolist()
        False
    """
    return not_equal(min(cast(not_equal(x, 0), "int32"), axis, keepdims, 1), 0)


@op(along="axes", gradient="zero", finite="yes")
def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first largest element along an axis, by default of the flattened `x`.

    NaN counts as the largest.

    Args:
        x: a tensor of any shape; booleans, integers or floats. Of equal elements the first one counts.

    Raises:
        ShapeError: if there are no elements.

    See also: `max_and_argmax`, with the element; `nanargmax`, which ignores NaN; `argsort`, of all elements; `top_k`,
    of several.

    Example:
        >>> ops.argmax([3, 1, 2]).tolist()
        0
    """
    return _first_extreme(max, x, axis, keepdims)


@op(along="axes", gradient="zero", finite="yes")
def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first smallest element along an axis, by default of the flattened `x`.

    NaN counts as the smallest.

    Args:
        x: a tensor of any shape; booleans, integers or floats. Of equal elements the first one counts.

    Raises:
        ShapeError: if there are no elements.

    See also: `min_and_argmin`, with the element; `nanargmin`, which ignores NaN; `argsort`, of all elements.

    Example:
        >>> ops.argmin([3, 1, 2]).tolist()
        1
    """
    return _first_extreme(min, x, axis, keepdims)


@op
def max_and_argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the largest element along an axis, by default of all, and its index, as `argmax` gives it.

    NaN counts as the largest. Of equal elements the first one gets the whole gradient, where `max` shares it.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    Raises:
        ShapeError: if there are no elements.

    See also: `max`, the element alone; `argmax`, the index alone; `top_k`, of several.

    Example:
        >>> [part.tolist() for part in ops.max_and_argmax([[3, 2], [1, 4]], axis=1)]
        [[3, 4], [0, 1]]
    """
    return _extreme_and_index(argmax, x, axis, keepdims)


@op
def min_and_argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the smallest element along an axis, by default of all, and its index, as `argmin` gives it.

    NaN counts as the smallest. Of equal elements the first one gets the whole gradient, where `min` shares it.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    Raises:
        ShapeError: if there are no elements.

    See also: `min`, the element alone; `argmin`, the index alone.

    Example:
        >>> [part.tolist() for part in ops.min_and_argmin([[3, 2], [1, 4]], axis=1)]
        [[2, 1], [1, 0]]
    """
    return _extreme_and_index(argmin, x, axis, keepdims)


@op(along="axis", autocast="float32")
def cumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the cumulative sum along an axis, by default of the flattened `x`.

    See also: `diff`, which takes it back; `sum`, over whole axes; `nancumsum`, which ignores NaN; `cumulative_sum`, of
    the standard.

    Example:
        >>> ops.cumsum([1, 2, 3]).tolist()
        [1, 3, 6]
    """
    return _accumulate(add, x, axis, dtype)


@op(along="axis", autocast="float32")
def cumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the cumulative product along an axis, by default of the flattened `x`.

    See also: `prod`, over whole axes; `nancumprod`, which ignores NaN.

    Example:
        >>> ops.cumprod([1, 2, 3]).tolist()
        [1, 2, 6]
    """
    return _accumulate(multiply, x, axis, dtype)


@op
def cumulative_sum(
    x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """Returns the cumulative sum along an axis, with the signature of the array API standard; see `cumsum`.

    Args:
        axis: the axis to work along, from -ndim to ndim - 1; None is the only axis of a vector, and an error for other
            tensors.
        include_initial: whether to begin with a 0, which makes the axis longer by one.

    Raises:
        AxisError: if `x` has several axes and `axis` is None.

    See also: `cumsum`, of NumPy.

    Example:
        >>> ops.cumulative_sum([1, 2, 3], include_initial=True).tolist()
        [0, 1, 3, 6]
    """
    return _prepend(0, cumsum(x, _single_axis(x, axis), dtype), axis, include_initial)


@op
def cumulative_prod(
    x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """Returns the cumulative product along an axis, with the signature of the array API standard; see `cumprod`.

    Args:
        axis: the axis to work along, from -ndim to ndim - 1; None is the only axis of a vector, and an error for other
            tensors.
        include_initial: whether to begin with a 1, which makes the axis longer by one.

    Raises:
        AxisError: if `x` has several axes and `axis` is None.

    See also: `cumprod`, of NumPy.

    Example:
        >>> ops.cumulative_prod([2, 3], include_initial=True).tolist()
        [1, 2, 6]
    """
    return _prepend(1, cumprod(x, _single_axis(x, axis), dtype), axis, include_initial)


def _single_axis(x: Tensor, axis: int | None) -> int | None:
    if axis is None and len(x.shape) > 1:
        raise AxisError(f"expected an axis, because shape {tuple(x.shape)} has several; pass axis")
    return axis


def _prepend(first: int, x: Tensor, axis: int | None, is_wanted: bool) -> Tensor:
    """Returns `x` with a number put before its first element along an axis, if `is_wanted`."""
    if not is_wanted:
        return x
    pad_widths = [(0, 0)] * len(x.shape)
    pad_widths[0 if axis is None else axis] = (1, 0)
    return pad(x, pad_widths, "constant", first)


@op(along="axis", finite="yes")
def cummax(x: TensorLike, axis: int | None = None) -> Tensor:
    """Returns the cumulative maximum along an axis, by default of the flattened `x`; NaN propagates.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    See also: `max`, over whole axes; `cummin`, the other one.

    Example:
        >>> ops.cummax([1, 3, 2]).tolist()
        [1, 3, 3]
    """
    refuse_complex(x)
    return _prefix_results(maximum, x, axis)


@op(along="axis", finite="yes")
def cummin(x: TensorLike, axis: int | None = None) -> Tensor:
    """Returns the cumulative minimum along an axis, by default of the flattened `x`; NaN propagates.

    Args:
        x: a tensor of any shape; booleans, integers or floats.

    See also: `min`, over whole axes; `cummax`, the other one.

    Example:
        >>> ops.cummin([2, 1, 3]).tolist()
        [2, 1, 1]
    """
    refuse_complex(x)
    return _prefix_results(minimum, x, axis)


@op(finite="yes")
def count_nonzero(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the number of non-zero elements over axes (int64).

    See also: `nonzero`, where they are; `any`, if there is one.

    Example:
        >>> ops.count_nonzero([0, 5, 6]).tolist()
        2
    """
    return sum(not_equal(x, 0), axis, keepdims)


@op(along="axes", autocast="float32")
def logsumexp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns `log(sum(exp(x)))` over axes without overflow; -inf if there are no elements.

    Args:
        x: a tensor of any shape, not complex; integers become the default float.

    See also: `logaddexp`, of two tensors; `logcumsumexp`, of what came before; `log_softmax`, to normalize.

    Example:
        >>> ops.logsumexp([0.0, float("-inf")]).tolist()
        0.0
    """
    refuse_complex(x)
    widened_x, axes = widen(x), nonnegative_axes(axis, len(x.shape))
    largest_x = max(widened_x, axes, True, -math.inf)
    # Do not shift by infinities: inf - inf is NaN.
    shift = where(isfinite(largest_x), largest_x, 0.0)
    log_of_sum = add(log(sum(exp(subtract(widened_x, shift)), axes, True)), shift)
    return narrow_like(log_of_sum if keepdims else squeeze(log_of_sum, axes), x)


@op(autocast="float32")
def logcumsumexp(x: TensorLike, axis: int | None = None, reverse: bool = False) -> Tensor:
    """Returns `log(cumsum(exp(x)))` along an axis, by default of the flattened `x`, without overflow and underflow.

    Dtype: that of `x`; integers become the default float.

    Args:
        x: a tensor of any shape, not complex; integers become the default float.
        reverse: whether elements are added from the end of the axis; else from its beginning.

    See also: `logsumexp`, over whole axes; `cumsum`, of the numbers themselves.

    Example:
        >>> ops.logcumsumexp([0.0, float("-inf")]).tolist()
        [0.0, 0.0]
    """
    return narrow_like(_prefix_results(logaddexp, widen(x), axis, reverse), x)


@op(autocast="float32")
def moments(x: TensorLike, axes: Axis, keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the mean and the variance over axes.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        axes: the axis or the axes to reduce, from -ndim to ndim - 1; None reduces all of them.
        synchronized: an option of Keras; only False is accepted, because no other process takes part.

    Raises:
        ArgumentError: if `synchronized` is True.

    See also: `mean`, alone; `var`, alone.

    Example:
        >>> [part.tolist() for part in ops.moments([[1.0, 3.0]], 1)]
        [[2.0], [1.0]]
    """
    if synchronized:
        raise ArgumentError("synchronized=True is not available, because no other process takes part; leave it out")
    return mean(x, axes, keepdims), var(x, axes, keepdims)


@op
def ptp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the range over axes: the largest minus the smallest element.

    Args:
        x: a tensor of any shape; integers or floats.

    See also: `max`, alone; `min`, alone.

    Example:
        >>> ops.ptp([3, 1, 5]).tolist()
        4
    """
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


def _element_count(x: Tensor, axis: Axis) -> int:
    return math.prod([x.shape[a] for a in nonnegative_axes(axis, len(x.shape))])


def _variance(x: Tensor, axis: Axis, keepdims: bool, correction: Varying) -> Tensor:
    """Returns the variance over axes; that of half precision as float32."""
    widened_x, element_count = widen(x), _element_count(x, axis)
    deviations = subtract(widened_x, mean(widened_x, axis, True))
    squares = (
        add(square(real(deviations)), square(imag(deviations)))
        if dtype_of(deviations).is_complex
        else square(deviations)
    )
    sum_of_squares = sum(squares, axis, keepdims)
    degrees_of_freedom = cast_option("correction", require_scalar("correction", correction), sum_of_squares)
    if isinstance(degrees_of_freedom, float):
        return divide(
            sum_of_squares, element_count - degrees_of_freedom if element_count > degrees_of_freedom else math.nan
        )
    degrees_of_freedom = subtract(float(element_count), degrees_of_freedom)
    return divide(sum_of_squares, where(greater(degrees_of_freedom, 0.0), degrees_of_freedom, math.nan))


def _extreme_and_index(
    place_of: Callable[..., Tensor], x: Tensor, axis: int | None, keepdims: bool
) -> tuple[Tensor, Tensor]:
    """Returns the largest or smallest element along an axis, and its index, which `place_of` finds."""
    if axis is None:
        shape = (1,) * len(x.shape) if keepdims else ()
        extreme, extreme_index = _extreme_and_index(place_of, ravel(x), 0, True)
        return reshape(extreme, shape), reshape(extreme_index, shape)
    extreme_index = place_of(x, axis, True)
    extreme = take_along_axis(x, extreme_index, axis)
    return (extreme, extreme_index) if keepdims else (squeeze(extreme, axis), squeeze(extreme_index, axis))


def _first_extreme(reduction: Callable[..., Tensor], x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """Returns the first place of the extreme element along an axis; NaN is extreme."""
    refuse_complex(x)
    require_nonempty(x.shape, axis)
    if axis is None:
        first_index = _first_extreme(reduction, ravel(x), 0, False)
        return reshape(first_index, (1,) * len(x.shape)) if keepdims else first_index
    axis = nonnegative_axis(axis, len(x.shape))
    is_extreme = logical_or(equal(x, reduction(x, axis, True)), isnan(x))
    positions = reshape(arange(x.shape[axis], device=get_device(x)), (-1, *(1,) * (len(x.shape) - axis - 1)))
    return min(where(is_extreme, positions, x.shape[axis]), axis, keepdims)


def _accumulate(combine: Callable[..., Tensor], x: Tensor, axis: int | None, dtype: DTypeLike | None) -> Tensor:
    """Returns cumulative sums or products; half precision is accumulated in float32."""
    x = x if dtype is None else cast(x, dtype)
    x_dtype = dtype_of(x)
    if x_dtype.is_floating or x_dtype.is_complex:
        return narrow_like(_prefix_results(combine, widen(x), axis), x)
    summand = cast(x, "uint64" if x_dtype.kind == "unsigned" else "int64") if dtype is None else x
    return _prefix_results(combine, summand, axis)


def _prefix_results(combine: Callable[..., Tensor], x: Tensor, axis: int | None, reverse: bool = False) -> Tensor:
    """Returns for each place along an axis what an associative op makes of the elements up to it."""
    x, axis = (ravel(x), 0) if axis is None else (x, nonnegative_axis(axis, len(x.shape)))
    prefixes: Tensor = associative_scan(combine, x, reverse, axis) if x.shape[axis] else x
    return prefixes
