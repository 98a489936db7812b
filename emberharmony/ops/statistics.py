"""Statistics: quantiles, averages, histograms, and the reductions that pass over NaN.

Shape and dtype follow the reductions. Where all elements are NaN, or there are none, means and extremes are NaN.
"""

from __future__ import annotations

from typing import Literal

from emberharmony.core.dispatch import op
from emberharmony.core.types import Axis, Operand, Tensor, TensorLike
from emberharmony.ops.comparison import isnan, logical_not
from emberharmony.ops.indexing import where
from emberharmony.ops.math import add, divide, maximum, multiply, sqrt, square, subtract
from emberharmony.ops.reduction import all, max, mean, min, sum
from emberharmony.ops.shape import split


@op
def quantile(
    x: TensorLike,
    q: Operand,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th quantiles over axes, q from 0 to 1; NaN if an element is NaN.

    Shape: that of `q`, then that of the reduction.

    Args:
        method: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Raises: ArgumentError for another method or q outside [0, 1].

    Example:
        >>> ops.quantile([1.0, 2.0, 4.0], 0.5).tolist()
        2.0
    """
    ...


@op
def median(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the median over axes, of an even number the mean of the two in the middle; NaN if one is NaN.

    Example:
        >>> ops.median([3, 1, 2, 4]).tolist()
        2.5
    """
    return quantile(x, 0.5, axis, "linear", keepdims)


@op
def percentile(x: TensorLike, q: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the q-th percentiles over axes, q from 0 to 100."""
    share = q / 100.0 if isinstance(q, (int, float)) else divide(q, 100.0)
    return quantile(x, share, axis, "linear", keepdims)


@op
def average(x: TensorLike, axis: Axis = None, weights: TensorLike | None = None) -> Tensor:
    """Returns the mean over axes, each element weighted; `weights` broadcast against `x`.

    Example:
        >>> ops.average([1.0, 3.0], weights=[3.0, 1.0]).tolist()
        1.5
    """
    if weights is None:
        return mean(x, axis)
    total = add(multiply(x, 0), weights)
    return divide(sum(multiply(x, weights), axis), sum(total, axis))


@op
def nansum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the sum over axes of what is not NaN.

    Example:
        >>> ops.nansum([1.0, float('nan')]).tolist()
        1.0
    """
    return sum(where(isnan(x), 0, x), axis, keepdims)


@op
def nanmean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the mean over axes of what is not NaN.

    Example:
        >>> ops.nanmean([1.0, 3.0, float('nan')]).tolist()
        2.0
    """
    return divide(nansum(x, axis, keepdims), sum(logical_not(isnan(x)), axis, keepdims))


@op
def nanvar(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Returns the variance over axes of what is not NaN."""
    centred = square(subtract(x, nanmean(x, axis, True)))
    count = sum(logical_not(isnan(x)), axis, keepdims)
    return divide(nansum(centred, axis, keepdims), maximum(subtract(count, correction), 0.0))


@op
def nanstd(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Returns the standard deviation over axes of what is not NaN."""
    return sqrt(nanvar(x, axis, keepdims, correction))


@op
def nanmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the largest element over axes that is not NaN.

    Example:
        >>> ops.nanmax([1.0, float('nan')]).tolist()
        1.0
    """
    nothing = all(isnan(x), axis, keepdims)
    return where(nothing, float("nan"), max(where(isnan(x), float("-inf"), x), axis, keepdims))


@op
def nanmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the smallest element over axes that is not NaN.

    Example:
        >>> ops.nanmin([1.0, float('nan')]).tolist()
        1.0
    """
    nothing = all(isnan(x), axis, keepdims)
    return where(nothing, float("nan"), min(where(isnan(x), float("inf"), x), axis, keepdims))


@op
def diff(x: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """Returns the n-th differences between neighbours along an axis.

    Example:
        >>> ops.diff([1, 4, 9]).tolist()
        [3, 5]
    """
    for _ in range(n):
        _, *ends = split(x, [1], axis)
        starts = split(x, [x.shape[axis] - 1], axis)[0] if x.shape[axis] else x
        x = subtract(ends[0], starts)
    return x


@op
def bincount(x: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Returns how often each integer from 0 occurs in a vector, or the sums of its weights.

    Shape: (max(x) + 1,) or (minlength,). Raises: ArgumentError for negative integers. Forces evaluation on MLX.

    Example:
        >>> ops.bincount([0, 2, 2]).tolist()
        [1, 0, 2]
    """
    ...


@op
def histogram(x: TensorLike, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Tensor, Tensor]:
    """Returns the counts (int64) in bins of equal width over a range, by default that of `x`, and the edges.

    The last bin is closed. Raises: ArgumentError for no bins or an empty range. Forces evaluation on MLX.

    Example:
        >>> [part.tolist() for part in ops.histogram([0.0, 1.0, 1.0], 2)]
        [[1, 2], [0.0, 0.5, 1.0]]
    """
    ...
