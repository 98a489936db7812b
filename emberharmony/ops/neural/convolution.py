"""Convolutions and windows over spatial axes.

Tensors are (batch, *spatial, channels); with `data_format="channels_first"` (batch, channels, *spatial). `strides` and
`dilation_rate` are one integer, or one for each spatial axis. `padding` is "valid" (windows are entirely inside) or
"same" (zeros are added, so that the length is divided by the stride and rounded up). It may also be the number of zeros
at both ends of each spatial axis: one integer, one for each axis, or one pair (before, after) for each. Dtype: the
promoted dtype of the arguments; half precision is summed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import SpatialPadding, Tensor, TensorLike
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import arange
from emberharmony.ops.arrays.indexing import get_item, take
from emberharmony.ops.arrays.shape import expand_dims, flip, moveaxis, pad, reshape, stack, swapaxes, transpose
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype, result_type
from emberharmony.ops.math import add, multiply
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import convolution as shared_convolution
    from emberharmony.backend.shared.neural.convolution import Windows
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")


@op(autocast="half")
def conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: SpatialPadding = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    bias: TensorLike | None = None,
) -> Tensor:
    """Returns the cross-correlation of tensors with a kernel over any number of spatial axes.

    Args:
        kernel: (*size, in_channels / groups, out_channels).
        bias: (out_channels,), which is added before half precision is rounded; None adds nothing.

    Shape: kernel (*size, in_channels / groups, out_channels); the number of groups follows from the channels.

    Raises:
        ArgumentError: if an option is invalid.
        ShapeError: if the channels of kernel, input and bias do not match, or if no window fits.

    See also: `nn.Conv2d`, the layer; `conv_transpose`, the transposed; `depthwise_conv`, of each channel.

    Example:
        >>> ops.conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[10.0]]]).tolist()
        [[[21.0], [42.0]]]
        >>> ops.conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[10.0]]], padding=[(0, 1)]).tolist()
        [[[21.0], [42.0], [4.0]]]
        >>> ops.conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[10.0]]], bias=[0.5]).tolist()
        [[[21.5], [42.5]]]
    """
    is_channels_last = shared_convolution.has_channels_last(data_format)
    x = inputs if is_channels_last else moveaxis(inputs, 1, -1)
    group_count = shared_convolution.check_channels(x.shape, kernel.shape)
    shared_convolution.check_bias(bias, kernel.shape[-1])
    result_dtype = result_type(x, kernel) if bias is None else result_type(x, kernel, bias)
    x, kernel = (
        _widen_half_precision(cast(x, result_dtype)),
        _widen_half_precision(cast(kernel, result_dtype)),
    )  # a bias of a wider dtype widens the products too
    window_plan = shared_convolution.windows(x.shape[1:-1], kernel.shape[:-2], strides, padding, dilation_rate)
    padded_x = pad(x, window_plan.pad_widths()) if window_plan.has_padding else x
    product_sum = None
    if group_count == 1 and window_plan.are_side_by_side:
        product_sum = matmul(_adjacent_windows(padded_x, window_plan), reshape(kernel, (-1, kernel.shape[-1])))
    else:
        for offset, input_slices in window_plan.positions_and_slices():
            product = _multiply_groups(
                get_item(padded_x, (slice(None), *input_slices)), get_item(kernel, offset), group_count
            )
            product_sum = product if product_sum is None else add(product_sum, product)
    product_sum = cast(product_sum if bias is None else add(product_sum, _widen_half_precision(bias)), result_dtype)
    return product_sum if is_channels_last else moveaxis(product_sum, -1, 1)


@op(autocast="half")
def depthwise_conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: SpatialPadding = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """Returns the convolution of each channel with its own kernels.

    Shape: kernel (*size, channels, multiplier); the result has `channels * multiplier` channels.

    Args:
        kernel: (*size, channels, multiplier).

    Raises:
        ShapeError: if the kernel does not have the channels of `inputs`.

    See also: `nn.DepthwiseConv2d`, the layer; `conv`, over all channels; `separable_conv`, with a pointwise one.

    Example:
        >>> ops.depthwise_conv([[[1.0, 2.0], [3.0, 4.0]]], [[[1.0], [10.0]]]).tolist()
        [[[1.0, 20.0], [3.0, 40.0]]]
    """
    shared_convolution.check_depthwise(inputs.shape, kernel.shape, data_format == "channels_first")
    flat_kernel = reshape(kernel, (*kernel.shape[:-2], 1, kernel.shape[-2] * kernel.shape[-1]))
    return conv(inputs, flat_kernel, strides, padding, data_format, dilation_rate)


@op(autocast="half")
def separable_conv(
    inputs: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: SpatialPadding = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """Returns a depthwise convolution followed by a 1x1 (pointwise) convolution.

    Shape: depthwise_kernel (*size, channels, multiplier), pointwise_kernel (1, …, 1, channels * multiplier,
    out_channels).

    Args:
        depthwise_kernel: (*size, channels, multiplier).
        pointwise_kernel: (1, …, 1, channels * multiplier, out_channels).

    See also: `nn.SeparableConv2d`, the layer; `depthwise_conv`, its first part.
    """
    depthwise_result = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(depthwise_result, pointwise_kernel, 1, "valid", data_format)


@op(autocast="half")
def conv_transpose(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: SpatialPadding = "valid",
    output_padding: int | Sequence[int] | None = None,
    data_format: Literal["channels_last", "channels_first"] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    bias: TensorLike | None = None,
) -> Tensor:
    """Returns the transposed convolution: the gradient of `conv` with respect to its input.

    Args:
        kernel: (*size, out_channels, in_channels / groups).
        padding: "valid" cuts nothing off; "same" makes the result as long as the input times the stride; numbers say
            how many elements are cut off at both ends of the result, as in PyTorch.
        output_padding: by how much each axis of the result is longer than its minimal length. None derives it from the
            stride if `padding` is "valid" or "same", and is 0 if `padding` is numbers.
        bias: (out_channels,), which is added before half precision is rounded; None adds nothing.

    Shape: kernel (*size, out_channels, in_channels / groups); the number of groups follows from the channels. Spatial
    axes of length n become (n - 1) * stride + (size - 1) * dilation + 1 + output_padding, less the padding.

    See also: `nn.ConvTranspose2d`, the layer; `conv`, whose gradient it is.

    Example:
        >>> ops.conv_transpose([[[1.0], [2.0]]], [[[1.0]], [[10.0]]], 2).tolist()
        [[[1.0], [10.0], [2.0], [20.0]]]
    """
    is_channels_last = shared_convolution.has_channels_last(data_format)
    x = inputs if is_channels_last else moveaxis(inputs, 1, -1)
    shared_convolution.check_channels(x.shape, (*kernel.shape[:-2], *reversed(kernel.shape[-2:])))
    geometry = shared_convolution.transposed_geometry(
        x.shape[1:-1], kernel.shape[:-2], strides, padding, output_padding, dilation_rate
    )
    for axis, (stride, (before, after)) in enumerate(zip(geometry.strides, geometry.padding, strict=True), 1):
        x = _fit_axis(_insert_zeros(x, axis, stride), axis, before, after)
    flipped_kernel = swapaxes(flip(kernel, tuple(range(kernel.ndim - 2))), -1, -2)
    convolution = conv(x, flipped_kernel, 1, "valid", None, geometry.dilation, bias)
    return convolution if is_channels_last else moveaxis(convolution, -1, 1)


@op
def unfold(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Returns the windows of a tensor as columns.

    Args:
        x: (batch, channels, *spatial), of any dtype.
        kernel_size: the lengths of the window: one integer, or one for each spatial axis.
        dilation: by how many elements those of a window are apart: one integer, or one for each spatial axis.
        padding: the zeros before and after each spatial axis: one integer, or one for each.
        stride: by how many elements neighbouring windows are apart: one integer, or one for each spatial axis.

    Shape: (batch, channels, *spatial) to (batch, channels * window size, windows).

    Raises:
        ArgumentError: if an option is not such an integer.
        ShapeError: if no window fits.

    See also: `fold`, the adjoint; `nn.Unfold`, the layer; `extract_patches`, as in Keras.

    Example:
        >>> ops.unfold([[[1.0, 2.0, 3.0]]], 2).tolist()
        [[[1.0, 2.0], [2.0, 3.0]]]

    Source: `torch.nn.Unfold`.
    """
    spatial_count = shared_convolution.spatial_axis_count(x.ndim)
    paddings = shared_convolution.integers_per_axis(padding, spatial_count, "padding", 0)
    if any(paddings):
        x = pad(x, [(0, 0), (0, 0), *((pad_width, pad_width) for pad_width in paddings)])
    window_shape, window_strides, dilations = (
        shared_convolution.integers_per_axis(kernel_size, spatial_count, "kernel_size"),
        shared_convolution.integers_per_axis(stride, spatial_count, "stride"),
        shared_convolution.integers_per_axis(dilation, spatial_count, "dilation"),
    )
    window_plan = shared_convolution.windows(x.shape[2:], window_shape, window_strides, "valid", dilations)
    elements_by_offset = [
        get_item(x, (slice(None), slice(None), *input_slices)) for _, input_slices in window_plan.positions_and_slices()
    ]
    batch, channels = x.shape[:2]
    return reshape(
        stack(elements_by_offset, 2), (batch, channels * len(elements_by_offset), math.prod(window_plan.counts))
    )


@op
def fold(
    x: TensorLike,
    output_size: Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Returns the tensor whose elements are the sums of overlapping windows: the adjoint of `unfold`.

    Shape: (batch, channels * window size, windows) to (batch, channels, *output_size).

    Args:
        x: (batch, channels * window size, windows), as `unfold` returns it.
        output_size: the lengths of the spatial axes of the result.
        kernel_size: the lengths of the window: one integer, or one for each spatial axis.
        dilation: by how many elements those of a window are apart: one integer, or one for each spatial axis.
        padding: the elements that are cut off before and after each spatial axis: one integer, or one for each.
        stride: by how many elements neighbouring windows are apart: one integer, or one for each spatial axis.

    Raises:
        ArgumentError: if an option is not such an integer.
        ShapeError: if `x` does not have the shape that `unfold` gives for an input of `output_size`.

    See also: `unfold`, whose adjoint it is; `nn.Fold`, the layer.

    Example:
        >>> ops.fold([[[1.0, 2.0], [2.0, 3.0]]], (3,), 2).tolist()
        [[[1.0, 4.0, 3.0]]]

    Source: `torch.nn.Fold`.
    """
    spatial_count = len(output_size)
    paddings = shared_convolution.integers_per_axis(padding, spatial_count, "padding", 0)
    padded_lengths = [length + 2 * pad_width for length, pad_width in zip(output_size, paddings, strict=True)]
    window_shape, window_strides, dilations = (
        shared_convolution.integers_per_axis(kernel_size, spatial_count, "kernel_size"),
        shared_convolution.integers_per_axis(stride, spatial_count, "stride"),
        shared_convolution.integers_per_axis(dilation, spatial_count, "dilation"),
    )
    window_plan = shared_convolution.windows(padded_lengths, window_shape, window_strides, "valid", dilations)
    window_size = math.prod(window_shape)
    if x.ndim != 3 or x.shape[1] % window_size or x.shape[2] != math.prod(window_plan.counts):
        expected_text = f"(batch, channels * {window_size}, {math.prod(window_plan.counts)})"
        raise ShapeError(f"expected columns of shape {expected_text} for this output and window, got {tuple(x.shape)}")
    columns = reshape(x, (x.shape[0], x.shape[1] // window_size, window_size, *window_plan.counts))
    window_sum = None
    for i, (_, slices) in enumerate(window_plan.positions_and_slices()):
        offset_values = get_item(columns, (slice(None), slice(None), i))
        for axis, (input_slice, length) in enumerate(zip(slices, padded_lengths, strict=True), 2):
            offset_values = _fit_axis(
                _insert_zeros(offset_values, axis, input_slice.step), axis, input_slice.start, length - input_slice.stop
            )
        window_sum = offset_values if window_sum is None else add(window_sum, offset_values)
    inner_slices = [
        slice(pad_width, pad_width + length) for length, pad_width in zip(output_size, paddings, strict=True)
    ]
    return get_item(window_sum, (slice(None), slice(None), *inner_slices))


@op
def extract_sequences(x: TensorLike, sequence_length: int, sequence_stride: int) -> Tensor:
    """Returns the windows of the last axis.

    Shape: (..., length) to (..., windows, sequence_length).

    Args:
        x: a tensor with at least one axis, of any dtype.
        sequence_length: the length of a window.
        sequence_stride: by how many elements neighbouring windows are apart.

    See also: `unfold`, over spatial axes; `stft`, transformed.

    Example:
        >>> ops.extract_sequences([1, 2, 3, 4, 5], 3, 2).tolist()
        [[1, 2, 3], [3, 4, 5]]
    """
    window_plan = shared_convolution.windows(
        x.shape[-1:],
        shared_convolution.integers_per_axis(sequence_length, 1, "sequence_length"),
        sequence_stride,
        "valid",
    )
    device = get_device(x)
    (stride,) = shared_convolution.integers_per_axis(sequence_stride, 1, "sequence_stride")
    starts = expand_dims(arange(0, window_plan.counts[0] * stride, stride, device=device), -1)
    return take(x, add(starts, arange(sequence_length, device=device)), -1)


def _widen_half_precision(x: Tensor) -> Tensor:
    """Returns half precision as float32 and other dtypes unchanged."""
    return cast(x, "float32") if dtype(x).is_floating and dtype(x).bits == 16 else x


def _adjacent_windows(x: Tensor, plan: Windows) -> Tensor:
    """Returns the windows of (batch, *spatial, channels), which lie side by side, as (batch, *counts, elements)."""
    spatial_count = len(plan.counts)
    window_slices = [slice(count * size) for count, size in zip(plan.counts, plan.size, strict=True)]
    split_shape = [length for pair in zip(plan.counts, plan.size, strict=True) for length in pair]
    split_windows = reshape(get_item(x, (slice(None), *window_slices)), (x.shape[0], *split_shape, x.shape[-1]))
    axis_order = (0, *range(1, 2 * spatial_count, 2), *range(2, 2 * spatial_count + 1, 2), 2 * spatial_count + 1)
    return reshape(transpose(split_windows, axis_order), (x.shape[0], *plan.counts, math.prod(plan.size) * x.shape[-1]))


def _multiply_groups(x: Tensor, weights: Tensor, groups: int) -> Tensor:
    """Returns the product of channels with (channels / groups, outputs) weights, group by group."""
    if groups == 1:
        return matmul(x, weights)
    input_channels, output_channels = weights.shape[0], weights.shape[1] // groups
    if input_channels == 1:
        products = multiply(expand_dims(x, -1), reshape(weights, (groups, output_channels)))
        return reshape(products, (*x.shape[:-1], groups * output_channels))
    grouped_x = reshape(x, (*x.shape[:-1], groups, 1, input_channels))
    weights_by_group = moveaxis(reshape(weights, (input_channels, groups, output_channels)), 1, 0)
    return reshape(matmul(grouped_x, weights_by_group), (*x.shape[:-1], groups * output_channels))


def _insert_zeros(x: Tensor, axis: int, step: int) -> Tensor:
    """Returns `x` with step - 1 zeros inserted between the elements of an axis."""
    if step == 1:
        return x
    shape = tuple(x.shape)
    spaced_x = pad(expand_dims(x, axis + 1), [(0, step - 1) if a == axis + 1 else (0, 0) for a in range(x.ndim + 1)])
    interleaved = reshape(spaced_x, (*shape[:axis], shape[axis] * step, *shape[axis + 1 :]))
    return get_item(interleaved, (*[slice(None)] * axis, slice(0, (shape[axis] - 1) * step + 1)))


def _fit_axis(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    """Returns `x` with zeros added at the ends of an axis; a negative number cuts elements off."""
    if before > 0 or after > 0:
        x = pad(x, [(max(before, 0), max(after, 0)) if a == axis else (0, 0) for a in range(x.ndim)])
    if before < 0 or after < 0:
        inner_slice = slice(max(-before, 0), x.shape[axis] - max(-after, 0))
        x = get_item(x, (*[slice(None)] * axis, inner_slice))
    return x
