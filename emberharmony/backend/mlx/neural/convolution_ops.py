"""Convolutions, on MLX: its own kernel where its derivatives of every order are right.

MLX 0.32 differentiates a convolution with strides or dilation by one with dilated inputs, whose own derivative has a
wrong shape or wrong values. Under vmap over kernels, a convolution with groups gives wrong values. So strides are moved
into channels first, groups are convolved one by one, and dilated kernels are left to the composite.

Many elements and channels are convolved by one matrix product of all windows. Few are convolved by MLX's kernel alone,
outside of the transforms of `ops`. A program that calls a transform of MLX itself gets the derivatives of another way.

From 64 pairs of channels on, one matrix product of all windows takes 0.4 to 0.95 times as long as MLX's convolution; it
copies all windows, so it is left where they have more than 2**24 elements. A transposed convolution with strides is
such a product for each phase: MLX multiplies the zeros between the elements too, which takes 4 times as long. MLX's
kernel is a custom function with `stop_gradient` around each argument, without which `mx.jvp` raises.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import Function, with_transforms_of
from emberharmony.backend.mlx.device_ops import require_memory
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.mlx.math_ops import is_float
from emberharmony.backend.mlx.neural.activation_ops import SHORT
from emberharmony.backend.shared.neural.convolution import (
    TransposedGeometry,
    Windows,
    check_bias,
    check_channels,
    check_depthwise,
    has_channels_last,
    recent_windows,
    transposed_geometry,
    windows,
)
from emberharmony.core import op_globals

_MANY = 128
"""From this many pairs of channels on, the composite, one matrix product per kernel element, is faster on a CPU."""
_SMALL = 2**16
"""Up to this number of products MLX's kernel is the fastest way on a CPU, because the others are more calls."""
_PAIRS = 64
"""From this many pairs of channels on, one matrix product of all windows is faster on a CPU than MLX's kernel."""
_UNROLLED = 2**24
"""Up to this number of elements, all windows are copied for one matrix product."""
_FEW = 16
"""Up to this many groups it is faster to convolve each by a call of its own than to use the composite."""


def _suits_native_kernel(x: mx.array, kernel: mx.array, plan: Windows, groups: int) -> bool:
    """Returns whether MLX's kernel convolves such tensors correctly, also under transforms, and faster."""
    if not is_float(x) or x.dtype == mx.float64 or kernel.ndim > 5 or not x.size or not kernel.size:
        return False
    input_channels, output_channels = kernel.shape[-2], kernel.shape[-1] // groups
    if max(plan.dilation) > 1 or groups > _FEW or (input_channels == 1 and groups > 1):
        return False
    return input_channels * output_channels < _MANY or not on_cpu()


def _are_float32(x: mx.array, kernel: mx.array) -> bool:
    return bool(x.dtype == mx.float32 and kernel.dtype == mx.float32)


def _is_small_convolution(count: int, size: Sequence[int], places: int) -> bool:
    """Returns whether a convolution has so few products that MLX's kernel is the fastest way."""
    return count * places * math.prod(size) <= _SMALL


def _is_fastest_way(count: int, size: Sequence[int], places: int, outputs: int, groups: int) -> bool:
    """Returns whether MLX's kernel, or one matrix product, convolves tensors of these sizes the fastest.

    Args:
        count: the number of samples.
        size: the shape of the kernel.
        places: the number of positions of the kernel in one sample.
        outputs: the number of output channels.
        groups: the number of groups of channels.
    """
    kernel_size = math.prod(size)
    # On a CPU MLX 0.32 adds sequentially, and loses digits in long sums.
    if not 3 <= len(size) <= 5 or not count * places * kernel_size or kernel_size > SHORT * outputs:
        return False
    is_unrolled_faster = groups == 1 and on_cpu() and count * places * kernel_size <= _UNROLLED * outputs
    # MLX 0.32 has no groups for three spatial axes on a CPU.
    return is_unrolled_faster or (_is_small_convolution(count, size, places) and (groups == 1 or len(size) < 5))


def _move_into_channels(x: mx.array, strides: tuple[int, ...]) -> mx.array:
    """Returns a tensor whose spatial axes are divided by the strides, which moves their elements into the channels.

    Args:
        x: shape (batch, *spatial, channels); each spatial length is a multiple of its stride.
        strides: one for each spatial axis.

    Returns:
        A tensor of shape (batch, *(spatial / strides), product of strides * channels).
    """
    spatial_count = len(strides)
    split_shape = [
        split_length
        for length, step in zip(x.shape[1:-1], strides, strict=True)
        for split_length in (length // step, step)
    ]
    axis_order = [0, *range(1, 2 * spatial_count, 2), *range(2, 2 * spatial_count + 1, 2), 2 * spatial_count + 1]
    block_counts = split_shape[::2]
    return x.reshape(x.shape[0], *split_shape, x.shape[-1]).transpose(axis_order).reshape(x.shape[0], *block_counts, -1)


def _remove_strides(x: mx.array, kernel: mx.array, plan: Windows) -> tuple[mx.array, mx.array]:
    """Returns a tensor and a kernel whose convolution with stride 1 equals that of `x` and `kernel` with strides.

    Args:
        x: the padded input, shape (batch, *spatial, channels).
        kernel: shape (*size, in, out).
        plan: the windows.

    Returns:
        The tensor, shape (batch, *spatial, channels), and the kernel, shape (out, *size, in).
    """
    kernel_block_counts = [-(-k // step) for k, step in zip(plan.size, plan.strides, strict=True)]
    covered_lengths = [
        (n - 1 + k) * step for n, k, step in zip(plan.counts, kernel_block_counts, plan.strides, strict=True)
    ]
    x = x[:, *(slice(0, length) for length in covered_lengths)]
    paddings = [(0, length - n) for length, n in zip(covered_lengths, x.shape[1:-1], strict=True)]
    x = mx.pad(x, [(0, 0), *paddings, (0, 0)]) if any(map(any, paddings)) else x
    kernel_padding = [
        (0, k * step - n) for k, step, n in zip(kernel_block_counts, plan.strides, plan.size, strict=True)
    ]
    # With shape (out, *size, in) the kernel is rearranged like the tensor, with its outputs as the batch.
    kernel = mx.pad(mx.moveaxis(kernel, -1, 0), [(0, 0), *kernel_padding, (0, 0)])
    return _move_into_channels(x, plan.strides), _move_into_channels(kernel, plan.strides)


def _convolve(x: mx.array, kernel: mx.array, plan: Windows) -> mx.array:
    """Returns the convolution of a single group: every output channel depends on all input channels."""
    if max(plan.strides) == 1:
        paddings_before, paddings_after = zip(*plan.padding, strict=True)
        return mx.conv_general(x, mx.moveaxis(kernel, -1, 0), padding=(paddings_before, paddings_after))
    padded_x = mx.pad(x, plan.pad_widths()) if plan.has_padding else x
    return mx.conv_general(*_remove_strides(padded_x, kernel, plan))


def _convolve_unrolled(x: mx.array, kernel: mx.array, plan: Windows) -> mx.array:
    """Returns the convolution of a single group as one matrix product of all windows and the kernel."""
    x = mx.pad(x, plan.pad_widths()) if plan.has_padding else x
    windows = mx.concatenate([x[:, *input_slices] for _, input_slices in plan.positions_and_slices()], -1)
    output_channels = kernel.shape[-1]
    product = windows.reshape(-1, kernel.size // output_channels) @ kernel.reshape(-1, output_channels)
    return product.reshape(len(x), *plan.counts, output_channels)


Phases = list[tuple[tuple[slice, ...], Windows]]


def _kernel_phases(lengths: Sequence[int], size: Sequence[int], plan: TransposedGeometry) -> Phases:
    """Returns the parts of a transposed convolution's kernel, one for each phase of the stride, and their windows.

    Args:
        lengths: of the spatial axes.
        size: of the kernel, on no axis shorter than the stride.
        plan: the geometry, without dilation.

    Returns:
        For each of the first elements, the slices of the kernel, and the windows of a convolution by this part. The
        results of all of them have one shape.
    """
    largest_tap_counts = [-(-k // step) for k, step in zip(size, plan.strides, strict=True)]
    phases: Phases = []
    for first_taps in itertools.product(*map(range, plan.strides)):
        tap_counts = [
            -(-(k - first_tap) // step) for k, first_tap, step in zip(size, first_taps, plan.strides, strict=True)
        ]
        last_taps = [
            first_tap + (n - 1) * step for n, first_tap, step in zip(tap_counts, first_taps, plan.strides, strict=True)
        ]
        phase_padding = tuple(
            (n - 1, most_of_axis - 1) for n, most_of_axis in zip(tap_counts, largest_tap_counts, strict=True)
        )
        kernel_slices = tuple(slice(end, None, -step) for end, step in zip(last_taps, plan.strides, strict=True))
        phases.append((kernel_slices, windows(lengths, tap_counts, 1, phase_padding)))
    return phases


def _transpose_by_phases(x: mx.array, kernel: mx.array, plan: TransposedGeometry, phases: Phases) -> mx.array:
    """Returns the transposed convolution of a single group as convolutions without strides, one for each phase.

    Args:
        x: shape (batch, *spatial, channels).
        kernel: shape (*size, out, in).
        plan: the geometry, with as many zeros around the input as the kernel reaches, or fewer.
        phases: see `_kernel_phases`.
    """
    n, size = len(plan.strides), kernel.shape[:-2]
    kernel = mx.swapaxes(kernel, -1, -2)
    phase_outputs = mx.stack([_convolve_unrolled(x, kernel[key], phase_plan) for key, phase_plan in phases], n + 1)
    lengths = [length * step for length, step in zip(phase_outputs.shape[1 : n + 1], plan.strides, strict=True)]
    phase_outputs = mx.unflatten(phase_outputs, n + 1, plan.strides)
    phase_outputs = phase_outputs.transpose(0, *(axis for i in range(1, n + 1) for axis in (i, n + i)), 2 * n + 1)
    crops_and_lengths = zip(plan.crop_pairs(size), plan.lengths(x.shape[1:-1], size), strict=True)
    crop_slices = [slice(crop_start, crop_start + length) for (crop_start, _), length in crops_and_lengths]
    return phase_outputs.reshape(len(x), *lengths, -1)[:, *crop_slices]


@functools.lru_cache(maxsize=256)
def _native_convolution(
    composed: Callable[..., Any], name: str, groups: int, plan: Windows | TransposedGeometry, *options: Any
) -> Function:
    """Returns MLX's own convolution of a tensor with channels last and a kernel, without a bias.

    Args:
        composed: returns the composite of an op, whose derivatives and slices are right.
        name: the op, "conv", "conv_transpose", or "depthwise_conv" with one kernel for each channel.
        groups: the number of groups of channels.
        plan: the geometry.
        options: the arguments of the op after the kernel.
    """
    unit_strides, output_axis, is_transposed = (
        (1,) * len(plan.strides),
        -1 if name == "conv" else -2,
        isinstance(plan, TransposedGeometry),
    )
    if isinstance(plan, TransposedGeometry):
        padding_pairs, strides, input_dilation = plan.padding, unit_strides, plan.strides
    else:
        padding_pairs, strides, input_dilation = plan.padding, plan.strides, unit_strides
    padding = [before for before, _ in padding_pairs], [after for _, after in padding_pairs]

    def native_conv(x: mx.array, kernel: mx.array) -> mx.array:
        kernel = mx.moveaxis(kernel, output_axis, 0)
        return mx.conv_general(x, kernel, strides, padding, plan.dilation, input_dilation, groups, is_transposed)

    if groups == 1 and isinstance(plan, Windows):
        # Take the derivatives of `_convolve`, because those of the composite take three times as many calls.
        return with_transforms_of(native_conv, functools.partial(_convolve_unrolled, plan=plan))
    return with_transforms_of(native_conv, lambda x, kernel: composed(name)(x, kernel, *options))


@functools.lru_cache(maxsize=256)
def _quick_conv(
    composed: Callable[..., Any],
    is_untransformed: bool,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    strides: int,
    padding: str,
    spread: int,
) -> Function | None:
    """Returns the convolution of tensors with channels last of these shapes, as `_fastest_convolution` does."""
    groups = check_channels(shape, size)
    plan = recent_windows(shape[1:-1], size[:-2], strides, padding, spread)
    return _fastest_convolution(composed, is_untransformed, shape[0], size, groups, plan)


@functools.lru_cache(maxsize=256)
def _quick_depthwise_conv(
    composed: Callable[..., Any],
    shape: tuple[int, ...],
    size: tuple[int, ...],
    strides: int,
    padding: str,
    spread: int,
) -> Function | None:
    """Returns MLX's kernel for a depthwise convolution of these shapes; None if another way may be faster."""
    check_depthwise(shape, size)
    flat_kernel_shape = *size[:-2], 1, size[-2] * size[-1]
    groups = check_channels(shape, flat_kernel_shape)
    plan = recent_windows(shape[1:-1], size[:-2], strides, padding, spread)
    if (
        groups == 1
        or size[-1] != 1
        or not _is_fastest_way(shape[0], flat_kernel_shape, math.prod(plan.counts), flat_kernel_shape[-1], groups)
    ):
        return None
    return _native_convolution(
        composed, "depthwise_conv", groups, plan, plan.strides, plan.padding, None, plan.dilation
    )


def _fastest_convolution(
    composed: Callable[..., Any], is_untransformed: bool, count: int, size: tuple[int, ...], groups: int, plan: Windows
) -> Function | None:
    """Returns the fastest convolution of `count` samples with a kernel of a shape; None if another one may be faster.

    Args:
        composed: returns the composite of an op.
        is_untransformed: whether MLX's kernel alone may be used, because no transform of `ops` is running.
        count: the number of samples.
        size: the shape of the kernel.
        groups: the number of groups of channels.
        plan: the windows.
    """
    position_count = math.prod(plan.counts)
    if not _is_fastest_way(count, size, position_count, size[-1], groups):
        return None
    if groups == 1 and size[-2] * size[-1] >= _PAIRS and not _is_small_convolution(count, size, position_count):
        return functools.partial(_convolve_unrolled, plan=plan)
    return (
        _native_convolution(composed, "conv", groups, plan, plan.strides, plan.padding, None, plan.dilation)
        if is_untransformed
        else None
    )


@functools.lru_cache(maxsize=256)
def _quick_conv_transpose(
    composed: Callable[..., Any],
    is_untransformed: bool,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    strides: int,
    padding: str,
    spread: int,
) -> Function | None:
    """Returns the fastest transposed convolution of tensors of these shapes; None if the composite may be faster."""
    groups = check_channels(shape, (*size[:-2], *reversed(size[-2:])))
    position_count = math.prod(shape[1:-1])
    if groups > 1 or not _is_fastest_way(shape[0], size, position_count, size[-2], 1):
        return None
    plan = transposed_geometry(shape[1:-1], size[:-2], strides, padding, None, spread)
    if not _is_small_convolution(shape[0], size, position_count):
        fits_phases = max(plan.dilation) == 1 and all(map(operator.le, plan.strides, size))
        phases = _kernel_phases(shape[1:-1], size[:-2], plan) if fits_phases else []
        return functools.partial(_transpose_by_phases, plan=plan, phases=phases) if fits_phases else None
    if not is_untransformed or min(map(min, plan.padding)) < 0:
        return None
    return _native_convolution(composed, "conv_transpose", 1, plan, strides, padding, None, None, spread)


class MLXConvolutionOps:
    """Holds the ops of `ops/neural/convolution.py`.

    The bodies make a product for each element of the kernel: they take up to 3.2 times as long, for few elements, and
    1.2 times for 60,000.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def conv(
        self,
        inputs: mx.array,
        kernel: mx.array,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        bias: mx.array | None = None,
    ) -> mx.array:
        is_untransformed = op_globals.untransformed
        has_usual_options = strides.__class__ is dilation_rate.__class__ is int and padding.__class__ is str
        if has_usual_options and data_format is None and bias is None and _are_float32(inputs, kernel):
            quick_convolution = _quick_conv(
                self.composed, is_untransformed, inputs.shape, kernel.shape, strides, padding, dilation_rate
            )
            if quick_convolution is not None:
                convolution: mx.array = quick_convolution(inputs, kernel)
                return convolution
        x, w, *b = promotion.common(inputs, kernel, *([] if bias is None else [bias]))
        is_channels_last = has_channels_last(data_format)
        x = x if is_channels_last else mx.moveaxis(x, 1, -1)
        groups = check_channels(x.shape, w.shape)
        check_bias(bias, w.shape[-1])
        plan = recent_windows(x.shape[1:-1], w.shape[:-2], strides, padding, dilation_rate)
        quick_convolution = (
            _fastest_convolution(self.composed, is_untransformed, len(x), w.shape, groups, plan)
            if _are_float32(x, w)
            else None
        )
        if quick_convolution is not None:
            output = quick_convolution(x, w)
            output = output + b[0] if b else output
            return output if is_channels_last else mx.moveaxis(output, -1, 1)
        # The kernel has no bias, which has to be added before half precision is rounded.
        if not _suits_native_kernel(x, w, plan, groups) or (b and x.dtype.size == 2):
            return self.composed("conv")(inputs, kernel, strides, padding, data_format, dilation_rate, bias)
        if groups == 1:
            output = _convolve(x, w, plan)
        else:
            group_pairs = zip(mx.split(x, groups, -1), mx.split(w, groups, -1), strict=True)
            output = mx.concatenate([_convolve(group_input, kernel, plan) for group_input, kernel in group_pairs], -1)
        output = output + b[0] if b else output
        return require_memory(output if is_channels_last else mx.moveaxis(output, -1, 1))

    def depthwise_conv(
        self,
        inputs: mx.array,
        kernel: mx.array,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
    ) -> mx.array:
        has_usual_options = strides.__class__ is dilation_rate.__class__ is int and padding.__class__ is str
        if has_usual_options and data_format is None and op_globals.untransformed and _are_float32(inputs, kernel):
            quick_convolution = _quick_depthwise_conv(
                self.composed, inputs.shape, kernel.shape, strides, padding, dilation_rate
            )
            if quick_convolution is not None:
                convolution: mx.array = quick_convolution(inputs, kernel)
                return convolution
        return self.composed("depthwise_conv")(inputs, kernel, strides, padding, data_format, dilation_rate)

    def conv_transpose(
        self,
        inputs: mx.array,
        kernel: mx.array,
        strides: Any = 1,
        padding: Any = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        bias: mx.array | None = None,
    ) -> mx.array:
        is_untransformed = op_globals.untransformed
        has_usual_options = strides.__class__ is dilation_rate.__class__ is int and padding.__class__ is str
        has_usual_options = has_usual_options and output_padding is None and (bias is None or bias.dtype == mx.float32)
        if has_usual_options and _are_float32(inputs, kernel):
            is_channels_last = has_channels_last(data_format)
            x = inputs if is_channels_last else mx.moveaxis(inputs, 1, -1)
            check_bias(bias, kernel.shape[-2])
            quick_convolution = _quick_conv_transpose(
                self.composed, is_untransformed, x.shape, kernel.shape, strides, padding, dilation_rate
            )
            if quick_convolution is not None:
                output = quick_convolution(x, kernel)
                output = output if bias is None else output + bias
                return output if is_channels_last else mx.moveaxis(output, -1, 1)
        return self.composed("conv_transpose")(
            inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, bias
        )
