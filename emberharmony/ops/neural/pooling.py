"""Pooling: the maximum or the mean of the elements in windows over spatial axes.

The layout, `strides` and `padding` are those of `ops/neural/convolution.py`. Padding does not count: it changes neither
a maximum nor, unless `count_include_pad` is set, a mean.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.host import host_indices
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from emberharmony.core.options import as_number
from emberharmony.core.types import SpatialPadding, Tensor, TensorLike
from emberharmony.ops.arrays.creation import arange, ones, zeros
from emberharmony.ops.arrays.indexing import get_item, take_along_axis, where
from emberharmony.ops.arrays.shape import expand_dims, moveaxis, pad, repeat, reshape, squeeze, stack
from emberharmony.ops.arrays.writing import put_along_axis
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype, iinfo
from emberharmony.ops.logic.comparison import equal, greater_equal, isnan, less, logical_and, logical_or
from emberharmony.ops.math import add, divide, maximum, multiply, power
from emberharmony.ops.reductions.reduction import argmax, max, mean
from emberharmony.ops.tensor import cast, convert_to_tensor, is_tensor

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")


@op(finite="yes")
def max_pool(
    inputs: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: SpatialPadding = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Returns the largest element of each window; windows are adjacent unless `strides` is given.

    Args:
        inputs: (batch, *spatial, channels), or with the channels first; see `data_format`. Not complex.
        ceil_mode: whether elements that are left at the end of an axis get a window of their own, as in PyTorch.

    Raises:
        ArgumentError: if an option is invalid, or if numbers in `padding` are larger than half of the window.
        ShapeError: if no window fits.

    See also: `nn.MaxPool2d`, the layer; `max_pool_indices`, the places; `average_pool`, the mean.

    Example:
        >>> ops.max_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[3.0], [2.0]]]
        >>> ops.max_pool([[[1.0], [3.0], [2.0], [0.0]]], 3, 3, 1, ceil_mode=True).tolist()
        [[[3.0], [2.0]]]
    """
    x, was_last = _move_channels_last(inputs, data_format)
    window_plan = shared_convolution.pool_windows(
        x.shape[1:-1], pool_size, strides, padding, dilation_rate, ceil_mode
    ).plan
    window_maxima = _combine_windows(
        pad(x, window_plan.pad_widths(), constant_values=_lowest_number(x)) if window_plan.has_padding else x,
        window_plan,
        maximum,
    )
    return window_maxima if was_last else moveaxis(window_maxima, -1, 1)


@op
def max_pool_indices(
    inputs: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: SpatialPadding = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Returns the index of the largest element of each window of `max_pool` in the flattened spatial axes, as int64.

    Of equal elements the first one is chosen. NaN counts as the largest. A window that is padding alone, which a
    dilation makes possible, has the index of a place after the end of an axis, as in PyTorch.

    Args:
        inputs: (batch, *spatial, channels), or with the channels first; see `data_format`. Not complex.

    Raises:
        ArgumentError: if an option is invalid, or if numbers in `padding` are larger than half of the window.
        ShapeError: if no window fits.

    See also: `max_pool`, the elements; `max_unpool`, to put them back.

    Example:
        >>> ops.max_pool_indices([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[1], [2]]]

    Source: the option `return_indices` of `torch.nn.MaxPool1d`.
    """
    x, was_last = _move_channels_last(inputs, data_format)
    lengths = x.shape[1:-1]
    window_plan = shared_convolution.pool_windows(lengths, pool_size, strides, padding, dilation_rate, ceil_mode).plan
    if window_plan.has_padding:
        x = pad(x, window_plan.pad_widths(), constant_values=_lowest_number(x))
    input_positions: Any = None
    # The last axis comes first, so that of equal elements the first one in the order of the flattened axes is chosen.
    for axis in reversed(range(len(lengths))):
        leading_slices = (slice(None),) * (axis + 1)
        windows = [(*leading_slices, window_slice) for window_slice in window_plan.slices_along(axis)]
        elements = stack([get_item(x, window) for window in windows], -1)
        window_starts = multiply(arange(window_plan.counts[axis], device=get_device(x)), window_plan.strides[axis])
        window_starts = reshape(
            add(window_starts, -window_plan.padding[axis][0]), [-1 if a == axis + 1 else 1 for a in range(x.ndim)]
        )
        window_offsets = multiply(arange(window_plan.size[axis], device=get_device(x)), window_plan.dilation[axis])
        element_positions = add(expand_dims(window_starts, -1), window_offsets)
        # The padding equals the least number of the dtype, which the tensor may hold too, so it is left out by place.
        is_inside = greater_equal(element_positions, 0)
        is_element = logical_and(is_inside, less(element_positions, lengths[axis]))
        is_largest = logical_or(equal(elements, max(elements, -1, True)), isnan(elements))
        # If a window lies in the padding alone, its first position that is not before the axis is chosen.
        best_position = argmax(
            add(cast(logical_and(is_largest, is_element), "int8"), cast(is_inside, "int8")), -1, True
        )
        x = squeeze(take_along_axis(elements, best_position, -1), -1)
        index_on_axis = multiply(
            add(multiply(squeeze(best_position, -1), window_plan.dilation[axis]), window_starts),
            math.prod(lengths[axis + 1 :]),
        )
        if input_positions is not None:
            window_positions = stack([get_item(input_positions, window) for window in windows], -1)
            index_on_axis = add(index_on_axis, squeeze(take_along_axis(window_positions, best_position, -1), -1))
        input_positions = index_on_axis
    return input_positions if was_last else moveaxis(input_positions, -1, 1)


@op(reads="checks")
def max_unpool(
    inputs: TensorLike,
    indices: Tensor | Sequence[Any],
    output_size: Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns a tensor of zeros, except for the elements of `inputs` at the indices of `max_pool_indices`.

    Equal indices are treated as in `set_item`.

    Shape: inputs and indices (batch, *windows, channels) to (batch, *output_size, channels).

    Args:
        inputs: (batch, *windows, channels), as `max_pool` returns it.
        indices: integers of the same shape, as `max_pool_indices` returns them.
        output_size: the lengths of the spatial axes of the result.

    Raises:
        IndexOutOfBoundsError: if an index is out of range; MLX checks a tensor of indices in checked mode only.
        ShapeError: if the shapes do not fit.

    See also: `max_pool`, before it; `nn.MaxUnpool2d`, the layer.

    Example:
        >>> ops.max_unpool([[[3.0], [2.0]]], [[[1], [2]]], (4,)).tolist()
        [[[0.0], [3.0], [2.0], [0.0]]]

    Source: `torch.nn.MaxUnpool1d`.
    """
    x, was_last = _move_channels_last(inputs, data_format)
    if not is_tensor(indices):
        host_positions, element_count = host_indices(indices), math.prod(output_size)
        outside_positions = host_positions[(host_positions < -element_count) | (host_positions >= element_count)]
        if outside_positions.size:
            raise IndexOutOfBoundsError(
                f"index {outside_positions.flat[0]} is out of bounds for windows of {element_count} elements"
            )
    input_positions = convert_to_tensor(indices)
    input_positions = input_positions if was_last else moveaxis(input_positions, 1, -1)
    if tuple(input_positions.shape) != tuple(x.shape) or len(output_size) != x.ndim - 2:
        raise ShapeError(
            f"expected indices of shape {tuple(inputs.shape)} and {x.ndim - 2} numbers in output_size, got shape "
            f"{tuple(convert_to_tensor(indices).shape)} and {tuple(output_size)}"
        )
    batch, channels = x.shape[0], x.shape[-1]
    zero_tensor = zeros((batch, math.prod(output_size), channels), dtype(x), get_device(x))
    flat_shape = (batch, math.prod(x.shape[1:-1]), channels)
    unpooled_x = put_along_axis(zero_tensor, reshape(input_positions, flat_shape), reshape(x, flat_shape), 1)
    unpooled_x = reshape(unpooled_x, (batch, *output_size, channels))
    return unpooled_x if was_last else moveaxis(unpooled_x, -1, 1)


@op
def average_pool(
    inputs: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: SpatialPadding = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor_override: int | None = None,
) -> Tensor:
    """Returns the mean of each window; windows are adjacent unless `strides` is given.

    Args:
        ceil_mode: whether elements that are left at the end of an axis get a window of their own, as in PyTorch.
        count_include_pad: whether the zeros of the padding count as elements of the mean; those that `ceil_mode` adds
            never do.
        divisor_override: the number by which the sum of each window is divided; None is its number of elements.

    Dtype: integers become the default float; half precision is summed in float32.

    Raises:
        ArgumentError: if an option is invalid, or if numbers in `padding` are larger than half of the window.
        ShapeError: if no window fits.

    See also: `nn.AvgPool2d`, the layer; `max_pool`, the largest; `adaptive_average_pool`, by the number of windows.

    Example:
        >>> ops.average_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[2.0], [1.0]]]
        >>> ops.average_pool([[[1.0], [3.0]]], 2, 1, 1, count_include_pad=True).tolist()
        [[[0.5], [2.0], [1.5]]]
    """
    result_dtype = dtype(divide(inputs, 1.0))
    x, was_last = _move_channels_last(cast(inputs, "float32" if result_dtype.bits == 16 else result_dtype), data_format)
    pool_windows = shared_convolution.pool_windows(x.shape[1:-1], pool_size, strides, padding, 1, ceil_mode)
    plan = pool_windows.plan
    window_sums = _combine_windows(pad(x, plan.pad_widths()) if plan.has_padding else x, plan, add)
    window_counts: Tensor | float = math.prod(pool_windows.size)
    if divisor_override is not None:
        window_counts = shared_convolution.divisor(divisor_override)
    elif plan.padding != pool_windows.asked_padding or (plan.has_padding and not count_include_pad):
        # Windows at the edges hold fewer elements, so count the elements of each window.
        padding_pairs = [(0, 0), *pool_windows.asked_padding, (0, 0)] if count_include_pad else [(0, 0)] * x.ndim
        padded_lengths = [
            length + before + after for length, (before, after) in zip(x.shape, padding_pairs, strict=True)
        ]
        inside_mask = ones((1, *padded_lengths[1:-1], 1), dtype(x), get_device(x))
        window_counts = _combine_windows(
            pad(inside_mask, pool_windows.extra_padding() if count_include_pad else plan.pad_widths()), plan, add
        )
    window_means = cast(divide(window_sums, window_counts), result_dtype)
    return window_means if was_last else moveaxis(window_means, -1, 1)


@op(autocast="float32")
def lp_pool(
    inputs: TensorLike,
    norm_type: float,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    data_format: Literal["channels_last", "channels_first"] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Returns `sum(x ** p) ** (1 / p)` of each window; windows are adjacent unless `strides` is given.

    With odd `p`, a negative sum has no real root, so its result is NaN. The gradient of windows whose sum is 0 is 0.

    Args:
        norm_type: the power p; infinity gives the maximum, as in `max_pool`.
        ceil_mode: whether elements that are left at the end of an axis get a window of their own. As in PyTorch, its
            sum is the mean of its elements times the size of a whole window.

    Dtype: integers become the default float; half precision is computed in float32.

    Raises:
        ArgumentError: if `norm_type` is not a positive number, or if an option is invalid.
        ShapeError: if no window fits.

    See also: `nn.LPPool2d`, the layer; `average_pool`, of power 1.

    Example:
        >>> ops.lp_pool([[[3.0], [4.0], [6.0], [8.0]]], 2, 2).tolist()
        [[[5.0], [10.0]]]

    Source: `torch.nn.functional.lp_pool1d`.
    """
    exponent = as_number("norm_type", norm_type)
    if not exponent > 0:
        raise ArgumentError(f"norm_type is a positive number, not {norm_type!r:.60}")
    result_dtype = dtype(divide(inputs, 1.0))
    if math.isinf(exponent):
        return cast(max_pool(inputs, pool_size, strides, "valid", data_format, 1, ceil_mode), result_dtype)
    wide_inputs = cast(inputs, "float32" if result_dtype.bits == 16 else result_dtype)
    window_size = math.prod(
        shared_convolution.integers_per_axis(pool_size, shared_convolution.spatial_axis_count(inputs.ndim), "pool_size")
    )
    mean_power = average_pool(power(wide_inputs, exponent), pool_size, strides, "valid", data_format, ceil_mode)
    power_sum = multiply(mean_power, window_size)
    # The derivative of a root is infinite at 0, so the root of another number is taken there.
    is_zero = equal(power_sum, 0)
    return cast(where(is_zero, 0, power(where(is_zero, 1, power_sum), 1 / exponent)), result_dtype)


@op
def adaptive_average_pool(
    inputs: TensorLike,
    output_size: int | Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the means of `output_size` windows along each spatial axis; their width follows from the length.

    Window i reaches from `floor(i * length / n)` to `ceil((i + 1) * length / n)`.

    Args:
        output_size: the number of windows along each spatial axis: one integer, or one for each.

    See also: `nn.AdaptiveAvgPool2d`, the layer; `average_pool`, by the size of windows.

    Example:
        >>> ops.adaptive_average_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[2.0], [1.0]]]
    """
    return _adaptive_pool(inputs, output_size, data_format, mean)


@op(finite="yes")
def adaptive_max_pool(
    inputs: TensorLike,
    output_size: int | Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the largest elements of the windows of `adaptive_average_pool`.

    Args:
        inputs: (batch, *spatial, channels), or with the channels first; see `data_format`. Not complex.
        output_size: the number of windows along each spatial axis: one integer, or one for each.

    See also: `nn.AdaptiveMaxPool2d`, the layer; `max_pool`, by the size of windows.

    Example:
        >>> ops.adaptive_max_pool([[[1.0], [3.0], [2.0], [0.0]]], 2).tolist()
        [[[3.0], [2.0]]]
    """
    return _adaptive_pool(inputs, output_size, data_format, max)


def _move_channels_last(
    inputs: Tensor, data_format: Literal["channels_last", "channels_first"] | None
) -> tuple[Tensor, bool]:
    """Returns a tensor with its channels on the last axis, and whether they were there."""
    shared_convolution.spatial_axis_count(inputs.ndim)
    is_channels_last = shared_convolution.has_channels_last(data_format)
    return (inputs if is_channels_last else moveaxis(inputs, 1, -1)), is_channels_last


def _lowest_number(x: Tensor) -> float:
    """Returns the padding of a maximum: no element is smaller."""
    x_dtype = dtype(x)
    return -math.inf if x_dtype.is_floating else iinfo(x_dtype).min if x_dtype.is_integer else 0


def _combine_windows(x: Tensor, plan: shared_convolution.Windows, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Returns the elements of each window of a padded tensor combined by `join`, one axis after the other."""
    for axis in range(len(plan.size)):
        leading_slices = (slice(None),) * (axis + 1)
        x = functools.reduce(
            join, [get_item(x, (*leading_slices, window_slice)) for window_slice in plan.slices_along(axis)]
        )
    return x


def _adaptive_pool(
    inputs: Tensor,
    output_size: int | Sequence[int],
    data_format: Literal["channels_last", "channels_first"] | None,
    reduce: Callable[..., Tensor],
) -> Tensor:
    spatial_count, x = shared_convolution.spatial_axis_count(inputs.ndim), inputs
    first_axis = 1 if shared_convolution.has_channels_last(data_format) else 2
    for axis, window_count in enumerate(
        shared_convolution.integers_per_axis(output_size, spatial_count, "output_size"), first_axis
    ):
        length = x.shape[axis]
        if length % window_count == 0:
            x = reduce(
                reshape(x, (*x.shape[:axis], window_count, length // window_count, *x.shape[axis + 1 :])), axis + 1
            )
            continue
        first_indices = shared_convolution.distinct_window_indices(length, window_count)
        window_slices = [slice(i * length // window_count, -(-(i + 1) * length // window_count)) for i in first_indices]
        leading_slices = (slice(None),) * axis
        x = stack([reduce(get_item(x, (*leading_slices, window_slice)), axis) for window_slice in window_slices], axis)
        if len(first_indices) < window_count:
            x = repeat(x, [b - a for a, b in pairwise((*first_indices, window_count))], axis)
    return x
