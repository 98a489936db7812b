"""Statistics: quantiles, averages, histograms, correlations, and reductions that ignore NaN.

Shape and dtype follow the reductions. If all elements are NaN, then means, quantiles and extremes are NaN. Means and
quantiles of an empty tensor are NaN too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.statistics import digits, places
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import bfloat16, default_float, float16, float32
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.numeric.promotion import as_inexact, promote
from emberharmony.core.options import constant, number
from emberharmony.core.types import Axis, DTypeLike, Tensor, TensorLike
from emberharmony.ops.comparison import equal, greater, isnan, logical_not
from emberharmony.ops.complex_numbers import conj
from emberharmony.ops.creation import arange, full
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.indexing import diagonal, take, take_along_axis, where
from emberharmony.ops.math import add, clip, divide, multiply, sqrt, square, subtract
from emberharmony.ops.products import matmul
from emberharmony.ops.reduction import all, argmax, argmin, cumprod, cumsum, max, mean, min, prod, sum
from emberharmony.ops.shape import (
    broadcast_to,
    concatenate,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    pad,
    reshape,
    split,
    squeeze,
    transpose,
)
from emberharmony.ops.sorting import searchsorted, sort
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]


@op
def quantile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th quantiles over axes, with `q` from 0 to 1; NaN if an element is NaN.

    Shape: that of `q`, then that of the reduction.

    Args:
        q: a number, a list or a tensor; a tensor is read on the host, as float64.
        method: how to choose a value between two neighbouring elements.

    Raises:
        ArgumentError: if `method` is unknown or a value of `q` is outside [0, 1].

    Example:
        >>> ops.quantile([1.0, 2.0, 4.0], 0.5).tolist()
        2.0
    """
    return _quantile(x, _host(q), axis, method, keepdims, False)


@op
def nanquantile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th quantiles over axes of the elements that are not NaN; forces evaluation on MLX.

    Shape, arguments and errors are those of `quantile`.

    Example:
        >>> ops.nanquantile([1.0, float("nan"), 2.0, 4.0], 0.5).tolist()
        2.0
    """
    return _quantile(x, _host(q), axis, method, keepdims, True)


@op
def percentile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th percentiles over axes, with `q` from 0 to 100; otherwise like `quantile`.

    Example:
        >>> ops.percentile([1.0, 2.0, 4.0], 50).tolist()
        2.0
    """
    return _quantile(x, _host(q) / 100, axis, method, keepdims, False)


@op
def nanpercentile(
    x: TensorLike,
    q: float | Sequence[float] | Tensor,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th percentiles over axes of the elements that are not NaN, with `q` from 0 to 100.

    Otherwise it is like `nanquantile`.
    """
    return _quantile(x, _host(q) / 100, axis, method, keepdims, True)


@op
def median(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the median over axes; NaN if an element is NaN.

    The median of an even number of elements is the mean of the two in the middle.

    Example:
        >>> ops.median([3, 1, 2, 4]).tolist()
        2.5
    """
    return _quantile(x, digits(0.5), axis, "linear", keepdims, False)


@op
def nanmedian(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the median over axes of the elements that are not NaN; forces evaluation on MLX.

    Example:
        >>> ops.nanmedian([1.0, float("nan"), 3.0]).tolist()
        2.0
    """
    return _quantile(x, digits(0.5), axis, "linear", keepdims, True)


def _host(q: Any) -> Any:
    """Returns quantiles as a float64 host array; Python numbers skip the tensor, which would round them to float32."""
    return digits(q if isinstance(q, (int, float, list, tuple)) else to_numpy(constant("q", q)))


def _quantile(x: Tensor, q: Any, axis: Axis, method: Method, keepdims: bool, skip: bool) -> Tensor:
    result = as_inexact(dtype_of(x))
    axes = normalized(axis, len(x.shape))
    kept = [a for a in range(len(x.shape)) if a not in axes]
    shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes]
    length = math.prod([x.shape[a] for a in axes])  # a list, because torch.compile does not trace a generator here
    if not math.prod(x.shape):
        places(q, 1, method)
        return full((*q.shape, *shape), float("nan"), dtype=result, device=get_device(x))
    rows = reshape(transpose(_wide(x), [*kept, *axes]), (-1, length))
    ordered = sort(rows)
    counts = to_numpy(sum(logical_not(isnan(rows)), -1, True)) if skip else length
    low, high, weight = places(q.reshape(-1), counts, method)
    pick = take_along_axis if skip else take
    below, above = pick(ordered, low, -1), pick(ordered, high, -1)
    share = convert_to_tensor(weight, dtype_of(ordered), device=get_device(x))
    between = add(below, multiply(subtract(above, below), share))
    # Two equal infinities would give NaN, because inf - inf is NaN.
    found = where(equal(below, above), below, between)
    if not skip:
        last = ordered[:, -1:]
        found = where(isnan(last), last, found)
    return cast(reshape(moveaxis(found, -1, 0), (*q.shape, *shape)), result)


def _wide(x: Tensor) -> Tensor:
    """Returns a tensor in the dtype that its statistics use: float32 for halves, the default float for integers."""
    dtype = dtype_of(x)
    if dtype in (float16, bfloat16):
        return cast(x, float32)
    return x if dtype.is_floating or dtype.is_complex else cast(x, default_float())


@op
def average(x: TensorLike, axis: Axis = None, weights: TensorLike | None = None, keepdims: bool = False) -> Tensor:
    """Returns the weighted mean over axes; NaN or infinite where the weights sum to 0.

    Args:
        weights: broadcast against `x`; a vector of weights applies along `axis`. None gives the plain mean.

    Raises:
        ShapeError: if the length of a vector of weights differs from that of `axis`.

    Example:
        >>> ops.average([1.0, 3.0], weights=[3.0, 1.0]).tolist()
        1.5
    """
    if weights is None:
        return mean(x, axis, keepdims)
    if len(weights.shape) == 1 and len(x.shape) > 1 and isinstance(axis, int):
        shape = [1] * len(x.shape)
        shape[axis] = -1
        weights = reshape(weights, shape)
        if weights.shape[axis] != x.shape[axis]:
            raise ShapeError(f"expected {x.shape[axis]} weights for axis {axis}, got {weights.shape[axis]}")
    # Cast to float, because products of narrow integers would wrap.
    weights = cast(weights, as_inexact(dtype_of(weights)))
    return divide(sum(multiply(x, weights), axis, keepdims), sum(broadcast_to(weights, x.shape), axis, keepdims))


def _is_float(x: Tensor) -> bool:
    return bool(dtype_of(x).is_floating)


def _without_nan(x: Tensor, instead: float) -> Tensor:
    return where(isnan(x), instead, x) if _is_float(x) or dtype_of(x).is_complex else x


@op
def nansum(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the sum over axes of the elements that are not NaN.

    Example:
        >>> ops.nansum([1.0, float("nan")]).tolist()
        1.0
    """
    return sum(_without_nan(x, 0), axis, keepdims, dtype)


@op
def nanprod(x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the product over axes of the elements that are not NaN.

    Example:
        >>> ops.nanprod([2.0, float("nan"), 3.0]).tolist()
        6.0
    """
    return prod(_without_nan(x, 1), axis, keepdims, dtype)


@op
def nancumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the cumulative sum along an axis, where NaN counts as 0; otherwise like `cumsum`.

    Example:
        >>> ops.nancumsum([1.0, float("nan"), 3.0]).tolist()
        [1.0, 1.0, 4.0]
    """
    return cumsum(_without_nan(x, 0), axis, dtype)


@op
def nancumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the cumulative product along an axis, where NaN counts as 1; otherwise like `cumprod`.

    Example:
        >>> ops.nancumprod([2.0, float("nan"), 3.0]).tolist()
        [2.0, 2.0, 6.0]
    """
    return cumprod(_without_nan(x, 1), axis, dtype)


def _nanmean(x: Tensor, axis: Axis, keepdims: bool) -> tuple[Tensor, Tensor]:
    """Returns the mean of the elements that are not NaN, and their number."""
    count = sum(logical_not(isnan(x)), axis, keepdims)
    return divide(sum(_without_nan(x, 0), axis, keepdims), count), count


def _nanvar(x: Tensor, axis: Axis, keepdims: bool, correction: float) -> Tensor:
    x = _wide(x)
    missing = isnan(x)
    centre, _ = _nanmean(x, axis, True)
    # Replace NaN by 0 before squaring, because the gradient of a masked NaN would be NaN.
    off = where(missing, 0.0, subtract(_without_nan(x, 0), centre))
    count = sum(logical_not(missing), axis, keepdims)
    divisor = where(greater(count, correction), subtract(count, correction), math.nan)
    return divide(sum(square(off), axis, keepdims), divisor)


@op
def nanmean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the mean over axes of the elements that are not NaN.

    Example:
        >>> ops.nanmean([1.0, 3.0, float("nan")]).tolist()
        2.0
    """
    return cast(_nanmean(_wide(x), axis, keepdims)[0], as_inexact(dtype_of(x)))


@op
def nanvar(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Returns the variance over axes of the elements that are not NaN; for real tensors.

    Args:
        correction: see `var`.

    Example:
        >>> ops.nanvar([1.0, 3.0, float("nan")]).tolist()
        1.0
    """
    return cast(_nanvar(x, axis, keepdims, correction), as_inexact(dtype_of(x)))


@op
def nanstd(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Returns the standard deviation over axes of the elements that are not NaN; for real tensors.

    Args:
        correction: see `var`.

    Example:
        >>> ops.nanstd([1.0, 3.0, float("nan")]).tolist()
        1.0
    """
    variance = _nanvar(x, axis, keepdims, correction)
    # The derivative of sqrt at 0 is infinite and would make the gradient NaN, so take the root of 1 there instead.
    none = equal(variance, 0)
    return cast(where(none, 0.0, sqrt(where(none, 1.0, variance))), as_inexact(dtype_of(x)))


@op
def nanmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the largest element over axes that is not NaN; NaN where all are NaN.

    Raises:
        ShapeError: if there are no elements.

    Example:
        >>> ops.nanmax([1.0, float("nan")]).tolist()
        1.0
    """
    if not _is_float(x):
        return max(x, axis, keepdims)
    found = max(where(isnan(x), float("-inf"), x), axis, keepdims)
    return where(all(isnan(x), axis, keepdims), float("nan"), found)


@op
def nanmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the smallest element over axes that is not NaN; NaN where all are NaN.

    Raises:
        ShapeError: if there are no elements.

    Example:
        >>> ops.nanmin([1.0, float("nan")]).tolist()
        1.0
    """
    if not _is_float(x):
        return min(x, axis, keepdims)
    found = min(where(isnan(x), float("inf"), x), axis, keepdims)
    return where(all(isnan(x), axis, keepdims), float("nan"), found)


@op
def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first largest element along an axis that is not NaN; -1 where all are NaN.

    JAX returns -1 too. NumPy raises an error instead, but raising one would mean reading the values on the host.

    Raises:
        ShapeError: if there are no elements.

    Example:
        >>> ops.nanargmax([1.0, float("nan"), 3.0]).tolist()
        2
    """
    if not _is_float(x):
        return argmax(x, axis, keepdims)
    # If the maximum is -inf, argmax of `filled` could point to a NaN, so use the first element that is not NaN.
    missing = isnan(x)
    filled = where(missing, float("-inf"), x)
    first = argmax(logical_not(missing), axis, keepdims)
    infinite = equal(max(filled, axis, keepdims), float("-inf"))
    return where(all(missing, axis, keepdims), -1, where(infinite, first, argmax(filled, axis, keepdims)))


@op
def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first smallest element along an axis that is not NaN; -1 where all are NaN.

    JAX returns -1 too. NumPy raises an error instead, but raising one would mean reading the values on the host.

    Raises:
        ShapeError: if there are no elements.

    Example:
        >>> ops.nanargmin([1.0, float("nan"), 3.0]).tolist()
        0
    """
    if not _is_float(x):
        return argmin(x, axis, keepdims)
    missing = isnan(x)
    filled = where(missing, float("inf"), x)
    first = argmax(logical_not(missing), axis, keepdims)
    infinite = equal(min(filled, axis, keepdims), float("inf"))
    return where(all(missing, axis, keepdims), -1, where(infinite, first, argmin(filled, axis, keepdims)))


@op
def diff(
    a: TensorLike, n: int = 1, axis: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """Returns the n-th differences between neighbouring elements along an axis.

    Args:
        prepend: a tensor to put before `a` along the axis before taking differences.
        append: a tensor to put after `a` along the axis.

    Raises:
        ArgumentError: if `n` is negative.
        AxisError: if `axis` is out of range.
        DTypeError: if `a` is boolean.

    Example:
        >>> ops.diff([1, 4, 9]).tolist()
        [3, 5]
    """
    if n < 0:
        raise ArgumentError(f"expected n of 0 or more, got {n}")
    parts = [part for part in (prepend, a, append) if part is not None]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    (place,) = normalized(axis, len(a.shape))
    for _ in range(n)[: a.shape[place] or 1]:  # then the axis is empty, and stays so
        ends = split(a, [1], axis)[1]
        starts = split(a, [a.shape[axis] - 1], axis)[0] if a.shape[axis] else a
        a = subtract(ends, starts)
    return a


@op
def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Returns the integral along an axis by the trapezoidal rule.

    Args:
        x: the positions of the samples, as a vector or in the shape of `y`. Without it, samples are `dx` apart.

    Example:
        >>> ops.trapezoid([1.0, 2.0, 3.0]).tolist()
        4.0
    """
    # Cast to float, because sums and differences of narrow integers would wrap.
    y = cast(moveaxis(y, axis, -1), as_inexact(dtype_of(y)))
    heights = divide(add(y[..., 1:], y[..., :-1]), 2.0)
    if x is None:
        return multiply(sum(heights, -1), dx)
    x = cast(x if len(x.shape) == 1 else moveaxis(x, axis, -1), as_inexact(dtype_of(x)))
    return sum(multiply(heights, diff(x)), -1)


@op
def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """Returns the index of the bin of each element (int64): 0 below the first edge, len(bins) above the last one.

    Args:
        bins: the edges in ascending order.
        right: whether an element on an edge belongs to the bin below it; by default it belongs to the bin above.

    Example:
        >>> ops.digitize([0.5, 1.0, 9.0], [0.0, 1.0, 2.0]).tolist()
        [1, 2, 3]
    """
    return searchsorted(bins, x, "left" if right else "right")


@op
def cov(x: TensorLike, rowvar: bool = True, correction: float = 1) -> Tensor:
    """Returns the covariance matrix of variables, which are the rows of `x`, or the columns if `rowvar` is False.

    Args:
        correction: subtracted from the number of observations in the divisor; the result is NaN if nothing is left.

    Raises:
        ShapeError: if `x` has more than two axes.

    Example:
        >>> ops.cov([[1.0, 3.0], [3.0, 1.0]]).tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
    """
    if len(x.shape) > 2:
        raise ShapeError(f"expected a vector or a matrix of variables, got shape {tuple(x.shape)}")
    result = as_inexact(dtype_of(x))
    rows = _wide(reshape(x, (1, -1)) if len(x.shape) < 2 else x if rowvar else matrix_transpose(x))
    off = subtract(rows, mean(rows, 1, True))
    freedom = rows.shape[1] - number("correction", correction)
    found = divide(matmul(off, conj(matrix_transpose(off))), float(freedom) if freedom > 0 else 0.0)
    return cast(squeeze(found), result)


@op
def corrcoef(x: TensorLike, rowvar: bool = True) -> Tensor:
    """Returns the correlation coefficients of real variables: the rows of `x`, or the columns if `rowvar` is False.

    Raises:
        ShapeError: if `x` has more than two axes.

    Example:
        >>> ops.corrcoef([[1.0, 3.0], [3.0, 1.0]]).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    found = cov(_wide(x), rowvar, 0)
    if len(found.shape) < 2:
        return cast(divide(found, found), as_inexact(dtype_of(x)))
    spread = sqrt(diagonal(found))
    ratio = divide(divide(found, expand_dims(spread, 1)), expand_dims(spread, 0))
    return cast(clip(ratio, -1.0, 1.0), as_inexact(dtype_of(x)))


@op
def correlate(x1: TensorLike, x2: TensorLike, mode: Literal["valid", "same", "full"] = "valid") -> Tensor:
    """Returns the cross-correlation of two vectors, `sum(x1[n + k] * conj(x2[n]))` for each shift k.

    The memory needed grows with the product of the lengths.

    Args:
        mode: "full" keeps all shifts with an overlap, "valid" those with a full overlap, and "same" as many as the
            longer vector has elements.

    Raises:
        ArgumentError: if `mode` is unknown.
        ShapeError: if an operand is empty or is not a vector.

    Example:
        >>> ops.correlate([1, 2, 3], [0, 1]).tolist()
        [2, 3]
    """
    if mode not in ("valid", "same", "full"):
        raise ArgumentError(f"expected mode 'valid', 'same' or 'full', got {mode!r}")
    if len(x1.shape) != 1 or len(x2.shape) != 1 or not x1.shape[0] or not x2.shape[0]:
        raise ShapeError(f"expected two vectors that are not empty, got shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    long, short = x1.shape[0], x2.shape[0]
    if long < short:
        return flip(conj(correlate(x2, x1, mode)), 0)
    padded = pad(x1, (short - 1, short - 1))
    first = {"full": 0, "same": (short - 1) // 2, "valid": short - 1}[mode]
    count = {"full": long + short - 1, "same": long, "valid": long - short + 1}[mode]
    device = get_device(x1)
    shifts = add(expand_dims(arange(first, first + count, device=device), 1), arange(short, device=device))
    return sum(multiply(take(padded, shifts), conj(x2)), -1, False, promote(dtype_of(x1), dtype_of(x2)))


@op
def bincount(x: TensorLike, weights: TensorLike | None = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """Returns how often each integer from 0 occurs in a vector, or the sum of its weights.

    Shape: (max(x) + 1,), but at least (minlength,). Dtype: int64, or that of the weights. Forces evaluation on MLX.

    Args:
        sparse: an option of Keras; only False is accepted.

    Raises:
        ArgumentError: if an integer is negative, or `sparse` is True.
        DTypeError: if `x` does not hold integers.
        ShapeError: if `x` is not a vector.

    Example:
        >>> ops.bincount([0, 2, 2]).tolist()
        [1, 0, 2]
    """
    ...


@op
def histogram(x: TensorLike, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Tensor, Tensor]:
    """Returns the counts (int64) of elements in bins of equal width, and the edges of the bins.

    The last bin includes its upper edge. Forces evaluation on MLX.

    Args:
        range: the lower and upper edge of all bins; by default the smallest and largest element of `x`.

    Raises:
        ArgumentError: if there are no bins or the range is empty.

    Example:
        >>> [part.tolist() for part in ops.histogram([0.0, 1.0, 1.0], 2)]
        [[1, 2], [0.0, 0.5, 1.0]]
    """
    ...
