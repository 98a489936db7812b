"""Convolution operators of ATen, computed by ops."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten

Sizes = int | Sequence[int]


def numbers_per_axis(value: Sizes, count: int) -> list[int]:
    """Returns a list with a number for each spatial axis, from one number or one for each axis."""
    numbers = [value] if isinstance(value, int) else list(value)
    return (numbers * count)[:count]


@aten("convolution", "_convolution")
def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sizes,
    padding: Any,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *flags: object,
) -> Any:
    """Returns the convolution, or the transposed one, of images (batch, channels, *size) or (channels, *size)."""
    axis_count = len(weight.shape) - 2
    if len(x.shape) == axis_count + 1:
        batch = ops.expand_dims(x, 0)
        return ops.squeeze(
            convolution(batch, weight, bias, stride, padding, dilation, transposed, output_padding, groups), 0
        )
    strides, dilations = numbers_per_axis(stride, axis_count), numbers_per_axis(dilation, axis_count)
    padding_pairs: Any = (
        padding if isinstance(padding, str) else [(n, n) for n in numbers_per_axis(padding, axis_count)]
    )
    spatial_axes = tuple(range(2, axis_count + 2))
    if not transposed:
        kernel = ops.transpose(weight, (*spatial_axes, 1, 0))
        return ops.conv(x, kernel, strides, padding_pairs, "channels_first", dilations, bias)
    if groups > 1:  # PyTorch has (in, out / groups, *size), and ops (*size, out, in / groups)
        input_channels, output_channels, *size = weight.shape
        weight = ops.reshape(weight, (groups, input_channels // groups, output_channels, *size))
        weight = ops.reshape(ops.swapaxes(weight, 1, 2), (groups * output_channels, input_channels // groups, *size))
    else:
        weight = ops.swapaxes(weight, 0, 1)
    kernel = ops.transpose(weight, (*spatial_axes, 0, 1))
    return ops.conv_transpose(
        x,
        kernel,
        strides,
        padding_pairs,
        numbers_per_axis(output_padding, axis_count),
        "channels_first",
        dilations,
        bias,
    )


@aten("conv1d", "conv2d", "conv3d")
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """Returns the convolution of images with a kernel, plus a bias."""
    return convolution(x, weight, bias, stride, padding, dilation, False, 0, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Any:
    """Returns the transposed convolution of images with a kernel, plus a bias."""
    return convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)


@aten("im2col")
def im2col(x: Any, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Any:
    """Returns the sliding windows of images, each flattened into a column."""
    if len(x.shape) == 3:
        return ops.squeeze(im2col(ops.expand_dims(x, 0), kernel_size, dilation, padding, stride), 0)
    return ops.unfold(
        x,
        numbers_per_axis(kernel_size, 2),
        numbers_per_axis(dilation, 2),
        numbers_per_axis(padding, 2),
        numbers_per_axis(stride, 2),
    )


@aten("col2im")
def col2im(
    x: Any, output_size: Sequence[int], kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Any:
    """Returns images in which windows, given as columns, are added at their places: the reverse of `im2col`."""
    if len(x.shape) == 2:
        return ops.squeeze(col2im(ops.expand_dims(x, 0), output_size, kernel_size, dilation, padding, stride), 0)
    return ops.fold(
        x,
        list(output_size),
        numbers_per_axis(kernel_size, 2),
        numbers_per_axis(dilation, 2),
        numbers_per_axis(padding, 2),
        numbers_per_axis(stride, 2),
    )
