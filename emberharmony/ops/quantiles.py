"""Quantiles, percentiles and medians, of all elements or of those that are not NaN.

Shape and dtype follow the reductions. Quantiles of an empty tensor are NaN, and so are those of elements that are all
NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.quantiles import digits, places
from emberharmony.core.dispatch import op
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import constant
from emberharmony.core.types import Axis, Tensor, TensorLike
from emberharmony.ops.comparison import equal, isnan, logical_not
from emberharmony.ops.creation import full
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.indexing import take, take_along_axis, where
from emberharmony.ops.math import add, multiply, subtract
from emberharmony.ops.normalization import widened
from emberharmony.ops.reduction import sum
from emberharmony.ops.shape import (
    moveaxis,
    reshape,
    transpose,
)
from emberharmony.ops.sorting import sort
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
    rows = reshape(transpose(widened(x), [*kept, *axes]), (-1, length))
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
