"""Convolutions, on NumPy, as matrix products: the windows become rows of a matrix, in blocks that fit the cache."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.numpy.reductions.reduction_ops import widen_half
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")

_BLOCK = 2**20
"""The most bytes of windows to copy at a time; at least one row of windows is copied."""
_MANY = 16
"""From this number of outputs on, a depthwise convolution multiplies all channels at once, by einsum."""


def windows_of(x: np.ndarray, plan: "shared_convolution.Windows") -> np.ndarray:
    """Returns the windows of a padded tensor (batch, *spatial, channels): a view (batch, *counts, *size, channels)."""
    x = np.ascontiguousarray(x)
    batch_stride, *spatial_strides, channel_stride = x.strides
    window_strides = [stride * step for stride, step in zip(spatial_strides, plan.strides, strict=True)]
    inner_strides = [
        stride * axis_dilation for stride, axis_dilation in zip(spatial_strides, plan.dilation, strict=True)
    ]
    view_shape = (x.shape[0], *plan.counts, *plan.size, x.shape[-1])
    # np.lib.stride_tricks.as_strided gives the same view, but takes five times as long (21 µs in NumPy 2.4).
    return np.ndarray(view_shape, x.dtype, x, 0, (batch_stride, *window_strides, *inner_strides, channel_stride))


def _block_slices(view: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Yields the slices of the batch and of the first spatial axis that are computed as one block."""
    batch_size, count = view.shape[:2]
    row_bytes = math.prod(view.shape[2:]) * view.itemsize
    row_count = max(_BLOCK // row_bytes, 1) if row_bytes else count
    sample_count, row_count = max(row_count // count, 1), min(row_count, count)
    for i in range(0, batch_size, sample_count):
        for j in range(0, count, row_count):
            yield slice(i, i + sample_count), slice(j, j + row_count)


def _multiply_windows(view: np.ndarray, kernel: np.ndarray, counts: tuple[int, ...], groups: int) -> np.ndarray:
    """Returns the convolution as the products of windows with a kernel (*size, channels / groups, outputs).

    Each group of outputs depends on one group of channels.
    """
    *size, input_channels, output_channels = kernel.shape
    position_count = math.prod(size)
    matrices = (
        kernel.reshape(position_count, input_channels, groups, -1)
        .transpose(2, 0, 1, 3)
        .reshape(groups, position_count * input_channels, -1)
    )
    convolution = np.empty((len(view), *counts, output_channels), view.dtype)
    for block in _block_slices(view):
        block_result, window_block = convolution[block], view[block]
        if groups == 1:
            np.matmul(
                window_block.reshape(-1, position_count * input_channels),
                matrices[0],
                block_result.reshape(-1, output_channels),
            )
            continue
        rows = (
            window_block.reshape(-1, position_count, groups, input_channels)
            .transpose(2, 0, 1, 3)
            .reshape(groups, -1, position_count * input_channels)
        )
        block_result[...] = np.matmul(rows, matrices).transpose(1, 0, 2).reshape(block_result.shape)
    return convolution


def _depthwise_convolution(view: np.ndarray, kernel: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Returns the depthwise convolution, in which each output depends on one channel, as the products of windows."""
    n = len(counts)
    position_axes, kernel_axes, channel_axis = [*range(n + 1)], [*range(n + 1, 2 * n + 1)], 2 * n + 1
    weights = kernel.reshape(*kernel.shape[:-2], -1)
    return np.einsum(
        view,
        [*position_axes, *kernel_axes, channel_axis],
        weights,
        [*kernel_axes, channel_axis],
        [*position_axes, channel_axis],
    )


def _sum_of_kernels(
    x: np.ndarray, kernel: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]
) -> np.ndarray:
    """Returns the sum of the kernels (*size, outputs, inputs) placed at each element and multiplied by the element."""
    *size, output_channels, _ = kernel.shape
    plan = shared_convolution.Windows(x.shape[1:-1], (), tuple(size), strides, dilation)
    lengths = [
        (n - 1) * step + (k - 1) * axis_dilation + 1
        for n, k, step, axis_dilation in zip(plan.counts, size, strides, dilation, strict=True)
    ]
    kernel_sum = np.zeros((len(x), *lengths, output_channels), x.dtype)
    for offset, input_slices in plan.positions_and_slices():
        kernel_sum[:, *input_slices] += x @ kernel[offset].T
    return kernel_sum


def _add_bias(convolution: np.ndarray, bias: list[np.ndarray]) -> np.ndarray:
    """Returns a new array after adding the bias to it in place, if there is one."""
    for bias_part in bias:
        convolution += widen_half(bias_part)
    return convolution


class NumpyConvolutionOps:
    """Holds the ops of `ops/neural/convolution.py`.

    The bodies make a product for each element of the kernel: they take up to 3.4 times as long, for few elements, and
    1.6 times for 60,000.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    def conv(
        self,
        inputs: np.ndarray,
        kernel: np.ndarray,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        bias: np.ndarray | None = None,
    ) -> np.ndarray:
        is_channels_last = shared_convolution.has_channels_last(data_format)
        x, w, *b = promotion.common(
            inputs if is_channels_last else np.moveaxis(inputs, 1, -1), kernel, *([] if bias is None else [bias])
        )
        groups, dtype = shared_convolution.check_channels(x.shape, w.shape), x.dtype
        shared_convolution.check_bias(bias, w.shape[-1])
        if not w.size:
            # Without elements there are no windows to multiply; the composite computes the shape of the result.
            return self.composed("conv")(inputs, kernel, strides, padding, data_format, dilation_rate, bias)
        x, w = widen_half(x), widen_half(w)
        plan = shared_convolution.windows(x.shape[1:-1], w.shape[:-2], strides, padding, dilation_rate)
        x = np.pad(x, plan.pad_widths()) if plan.has_padding else x
        if groups > 1 and w.shape[-2] == 1 and w.shape[-1] >= _MANY:
            convolution = _depthwise_convolution(windows_of(x.repeat(w.shape[-1] // groups, -1), plan), w, plan.counts)
        else:
            convolution = _multiply_windows(windows_of(x, plan), w, plan.counts, groups)
        convolution = _add_bias(convolution, b).astype(dtype, copy=False)
        return convolution if is_channels_last else np.moveaxis(convolution, -1, 1)

    def conv_transpose(
        self,
        inputs: np.ndarray,
        kernel: np.ndarray,
        strides: Any = 1,
        padding: Any = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        bias: np.ndarray | None = None,
    ) -> np.ndarray:
        is_channels_last = shared_convolution.has_channels_last(data_format)
        x, w, *b = promotion.common(
            inputs if is_channels_last else np.moveaxis(inputs, 1, -1), kernel, *([] if bias is None else [bias])
        )
        dtype = x.dtype
        if shared_convolution.check_channels(x.shape, (*w.shape[:-2], *reversed(w.shape[-2:]))) > 1:
            return self.composed("conv_transpose")(
                inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, bias
            )
        shared_convolution.check_bias(bias, w.shape[-2])
        plan = shared_convolution.transposed_geometry(
            x.shape[1:-1], w.shape[:-2], strides, padding, output_padding, dilation_rate
        )
        convolution = _sum_of_kernels(widen_half(x), widen_half(w), plan.strides, plan.dilation)
        crops = plan.crop_pairs(w.shape[:-2])
        crop_slices = (
            slice(max(a, 0), n - max(b, 0)) for (a, b), n in zip(crops, convolution.shape[1:-1], strict=True)
        )
        convolution = convolution[:, *crop_slices]
        if any(min(pair) < 0 for pair in crops):
            convolution = np.pad(convolution, [(0, 0), *((max(-a, 0), max(-b, 0)) for a, b in crops), (0, 0)])
        convolution = _add_bias(convolution, b).astype(dtype, copy=False)
        return convolution if is_channels_last else np.moveaxis(convolution, -1, 1)
