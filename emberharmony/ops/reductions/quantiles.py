"""Quantiles, percentiles and medians, of all elements or of those that are not NaN.

Shape and dtype follow the reductions. Quantiles of an empty tensor are NaN, and so are those of elements that are all
NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import holds_traced
from emberharmony.core.types import Axis, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.creation import full
from emberharmony.ops.arrays.indexing import take, take_along_axis, where
from emberharmony.ops.arrays.shape import (
    broadcast_to,
    moveaxis,
    reshape,
    transpose,
)
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.dtype import widen
from emberharmony.ops.elementwise.rounding import ceil, floor, round
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.logic.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less_equal,
    logical_and,
    logical_not,
)
from emberharmony.ops.math import add, divide, maximum, minimum, multiply, subtract
from emberharmony.ops.reductions.reduction import sum
from emberharmony.ops.reductions.sorting import sort
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared.reductions import quantiles as shared_quantiles
else:
    shared_quantiles = Deferred("emberharmony.backend.shared.reductions.quantiles")

Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]


@op(reads="host")
def quantile(
    x: TensorLike,
    q: Varying,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th quantiles over axes, with `q` from 0 to 1; NaN if an element is NaN.

    Shape: that of `q`, then that of the reduction.

    Args:
        q: a number, a list or a tensor, which is read on the host, as float64. A tensor that is being differentiated is
            not read: where it is outside [0, 1], the quantile is NaN. The gradient by `q` is the slope of the linear
            interpolation, at an element the slope above it; for the other methods it is 0.

    Raises:
        ArgumentError: if `method` is unknown or a value of `q` is outside [0, 1].

    See also: `percentile`, from 0 to 100; `nanquantile`, which ignores NaN; `median`, of 1/2.

    Example:
        >>> ops.quantile([1.0, 2.0, 4.0], 0.5).tolist()
        2.0
    """
    return _compute_quantiles(x, *_read_quantile_positions(q), axis, method, keepdims, False)


@op(reads="host")
def nanquantile(
    x: TensorLike,
    q: Varying,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th quantiles over axes of the elements that are not NaN; forces evaluation on MLX.

    Shape, arguments and errors are those of `quantile`.

    Args:
        q: a number from 0 to 1, a list or a tensor of them, which is read on the host; see `quantile`.

    See also: `quantile`, which keeps NaN; `nanpercentile`, from 0 to 100.

    Example:
        >>> ops.nanquantile([1.0, float("nan"), 2.0, 4.0], 0.5).tolist()
        2.0
    """
    return _compute_quantiles(x, *_read_quantile_positions(q), axis, method, keepdims, True)


@op(reads="host")
def percentile(
    x: TensorLike,
    q: Varying,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th percentiles over axes, with `q` from 0 to 100; otherwise like `quantile`.

    Args:
        q: a number from 0 to 100, a list or a tensor of them, which is read on the host; see `quantile`.

    See also: `quantile`, from 0 to 1; `nanpercentile`, which ignores NaN.

    Example:
        >>> ops.percentile([1.0, 2.0, 4.0], 50).tolist()
        2.0
    """
    return _compute_quantiles(x, *_read_quantile_positions(q, 100.0), axis, method, keepdims, False)


@op(reads="host")
def nanpercentile(
    x: TensorLike,
    q: Varying,
    axis: Axis = None,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Returns the q-th percentiles over axes of the elements that are not NaN, with `q` from 0 to 100.

    Otherwise it is like `nanquantile`.

    Args:
        q: a number from 0 to 100, a list or a tensor of them, which is read on the host; see `quantile`.

    See also: `percentile`, which keeps NaN; `nanquantile`, from 0 to 1.
    """
    return _compute_quantiles(x, *_read_quantile_positions(q, 100.0), axis, method, keepdims, True)


@op(reads="host")
def median(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the median over axes; NaN if an element is NaN.

    The median of an even number of elements is the mean of the two in the middle.

    See also: `nanmedian`, which ignores NaN; `quantile`, of any share.

    Example:
        >>> ops.median([3, 1, 2, 4]).tolist()
        2.5
    """
    return _compute_quantiles(x, shared_quantiles.quantile_array(0.5), False, axis, "linear", keepdims, False)


@op(reads="host")
def nanmedian(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Returns the median over axes of the elements that are not NaN; forces evaluation on MLX.

    See also: `median`, which keeps NaN.

    Example:
        >>> ops.nanmedian([1.0, float("nan"), 3.0]).tolist()
        2.0
    """
    return _compute_quantiles(x, shared_quantiles.quantile_array(0.5), False, axis, "linear", keepdims, True)


def _read_quantile_positions(q: Any, share: float = 1.0) -> tuple[Any, bool]:
    """Returns the positions `q` of quantiles, divided by `share`, as a float64 host array, and False.

    If they are being differentiated, it returns a tensor and True. Python numbers skip the tensor, which would round
    them to float32.
    """
    if q.__class__ is not float and holds_traced(q):
        tensor = convert_to_tensor(q)
        return (tensor if share == 1.0 else divide(tensor, share)), True
    return shared_quantiles.quantile_array(
        q if isinstance(q, (int, float, list, tuple)) else to_numpy(q)
    ) / share, False


def _compute_quantiles(
    x: Tensor, q: Any, traced: bool, axis: Axis, method: Method, keepdims: bool, skip: bool
) -> Tensor:
    result_dtype = as_inexact(dtype_of(x))
    axes = nonnegative_axes(axis, len(x.shape))
    other_axes = [a for a in range(len(x.shape)) if a not in axes]
    reduced_shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes]
    row_length = math.prod([x.shape[a] for a in axes])  # a list, because torch.compile does not trace a generator here
    if not math.prod(x.shape):
        shared_quantiles.quantile_neighbours(shared_quantiles.quantile_array(0.5) if traced else q, 1, method)
        return full((*q.shape, *reduced_shape), float("nan"), dtype=result_dtype, device=get_device(x))
    flat_rows = reshape(transpose(widen(x), [*other_axes, *axes]), (-1, row_length))
    sorted_rows = sort(flat_rows)
    take_op = take_along_axis if skip else take
    if traced:
        number_counts: Any = (
            cast(sum(logical_not(isnan(flat_rows)), -1, True), dtype_of(sorted_rows)) if skip else float(row_length)
        )
        quantiles = _differentiable_quantiles(sorted_rows, reshape(q, (-1,)), number_counts, method, take_op)
    else:
        number_counts = to_numpy(sum(logical_not(isnan(flat_rows)), -1, True)) if skip else row_length
        lower_positions, upper_positions, weight = shared_quantiles.quantile_neighbours(
            q.reshape(-1), number_counts, method
        )
        upper_weight = convert_to_tensor(weight, dtype_of(sorted_rows), device=get_device(x))
        quantiles = _interpolate(
            take_op(sorted_rows, lower_positions, -1), take_op(sorted_rows, upper_positions, -1), upper_weight
        )
    if not skip:
        last_elements = sorted_rows[:, -1:]
        quantiles = where(isnan(last_elements), last_elements, quantiles)
    return cast(reshape(moveaxis(quantiles, -1, 0), (*q.shape, *reduced_shape)), result_dtype)


def _interpolate(below: Tensor, above: Tensor, share: Tensor) -> Tensor:
    interpolated_values = add(below, multiply(subtract(above, below), share))
    # Two equal infinities would give NaN, because inf - inf is NaN.
    return where(equal(below, above), below, interpolated_values)


def _differentiable_quantiles(
    sorted_rows: Tensor, q: Tensor, number_counts: Any, method: Method, take_op: Any
) -> Tensor:
    """Returns the quantiles of sorted rows for a vector `q` that is being differentiated; NaN for `q` outside [0, 1].

    The derivative by `q` is the slope of the interpolation: at an element the slope above it, at the last one the
    slope below it. For methods other than "linear" the quantile is piecewise constant, so the derivative is 0.
    """
    if method not in shared_quantiles.METHODS:
        shared_quantiles.quantile_neighbours(shared_quantiles.quantile_array(0.5), 1, method)  # raises
    q = cast(q, dtype_of(sorted_rows))
    fixed_q = stop_gradient(q)
    is_valid = logical_and(greater_equal(fixed_q, 0.0), less_equal(fixed_q, 1.0))
    last_positions = maximum(subtract(number_counts, 1.0), 0.0)
    position = multiply(where(is_valid, fixed_q, 0.0), last_positions)
    lower_position, upper_position = floor(position), ceil(position)
    if method == "nearest":
        lower_position = upper_position = round(position)
    lower_position, upper_position = (
        upper_position if method == "higher" else lower_position,
        lower_position if method == "lower" else upper_position,
    )
    upper_weight = (
        where(greater(upper_position, lower_position), 0.5, 0.0)
        if method == "midpoint"
        else minimum(subtract(position, lower_position), subtract(upper_position, lower_position))
    )

    def elements_at(place: Tensor) -> Tensor:
        row_count = sorted_rows.shape[0] if take_op is take_along_axis else 1
        place = stop_gradient(cast(place, "int64"))
        return take_op(
            sorted_rows, broadcast_to(place, (row_count, place.shape[-1])) if take_op is take_along_axis else place, -1
        )

    quantiles = _interpolate(elements_at(lower_position), elements_at(upper_position), upper_weight)
    if method == "linear":
        slope_start = minimum(lower_position, maximum(subtract(last_positions, 1.0), 0.0))
        slope = multiply(
            subtract(elements_at(minimum(add(slope_start, 1.0), last_positions)), elements_at(slope_start)),
            last_positions,
        )
        # This adds 0 to the value, and the slope to its derivative by `q`.
        quantiles = add(quantiles, multiply(where(isfinite(slope), slope, 0.0), subtract(q, fixed_q)))
    return where(is_valid, quantiles, math.nan)
