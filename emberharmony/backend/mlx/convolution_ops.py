"""Convolutions, on MLX: its own kernel where its derivatives of every order are right.

MLX 0.32 differentiates a convolution with strides or dilation by one with dilated inputs, whose own derivative has a
wrong shape or wrong values. Under vmap over kernels, a convolution with groups gives wrong values. So strides are moved
into channels first, groups are convolved one by one, and dilated kernels are left to the composite. Only small tensors,
outside of the transforms of `ops`, are convolved by MLX alone: there the calls around the kernel take the time.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.activation_ops import SHORT
from emberharmony.backend.mlx.derivatives import Function, differentiated_by
from emberharmony.backend.mlx.device_ops import fitting
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import on_cpu
from emberharmony.backend.mlx.math_ops import is_float
from emberharmony.backend.shared.convolution import (
    Transposed,
    Windows,
    channels_last,
    check_bias,
    check_channels,
    recent_windows,
    transposed,
)
from emberharmony.core import op_globals

_MANY = 128
"""From this many pairs of channels on, the composite, one matrix product per kernel element, is faster on a CPU."""
_SMALL = 2**16
"""Up to this number of products the calls of the composite take longer than MLX's kernel does on a CPU."""
_FEW = 16
"""Up to this many groups it is faster to convolve each by a call of its own than to use the composite."""


def _is_native(x: mx.array, kernel: mx.array, plan: Windows, groups: int) -> bool:
    """Returns whether MLX's kernel convolves such tensors correctly, also under transforms, and faster."""
    if not is_float(x) or x.dtype == mx.float64 or kernel.ndim > 5 or not x.size or not kernel.size:
        return False
    inner, outer = kernel.shape[-2], kernel.shape[-1] // groups
    if max(plan.dilation) > 1 or groups > _FEW or (inner == 1 and groups > 1):
        return False
    return inner * outer < _MANY or not on_cpu()


def _is_alone(x: mx.array, kernel: mx.array) -> bool:
    """Returns whether MLX's kernel alone may convolve tensors, if they are small: no transform of `ops` is running."""
    return bool(op_globals.untransformed and x.dtype == mx.float32 and kernel.dtype == mx.float32)


def _is_small(count: int, size: Sequence[int], places: int, outputs: int) -> bool:
    """Returns whether MLX's kernel alone is the fastest way.

    Args:
        count: the number of samples.
        size: the shape of the kernel.
        places: the number of positions of the kernel in one sample.
        outputs: the number of output channels.
    """
    # On a CPU MLX 0.32 adds sequentially.
    products = math.prod(size)
    return 3 <= len(size) <= 5 and 0 < count * places * products <= _SMALL and products <= SHORT * outputs


def _into_channels(x: mx.array, strides: tuple[int, ...]) -> mx.array:
    """Returns a tensor whose spatial axes are divided by the strides, which moves their elements into the channels.

    Args:
        x: shape (batch, *spatial, channels); each spatial length is a multiple of its stride.
        strides: one for each spatial axis.

    Returns:
        A tensor of shape (batch, *(spatial / strides), product of strides * channels).
    """
    n = len(strides)
    apart = [part for length, step in zip(x.shape[1:-1], strides, strict=True) for part in (length // step, step)]
    order = [0, *range(1, 2 * n, 2), *range(2, 2 * n + 1, 2), 2 * n + 1]
    short = apart[::2]
    return x.reshape(x.shape[0], *apart, x.shape[-1]).transpose(order).reshape(x.shape[0], *short, -1)


def _unstrided(x: mx.array, kernel: mx.array, plan: Windows) -> tuple[mx.array, mx.array]:
    """Returns a tensor and a kernel whose convolution with stride 1 equals that of `x` and `kernel` with strides.

    Args:
        x: the padded input, shape (batch, *spatial, channels).
        kernel: shape (*size, in, out).
        plan: the windows.

    Returns:
        The tensor, shape (batch, *spatial, channels), and the kernel, shape (out, *size, in).
    """
    wide = [-(-k // step) for k, step in zip(plan.size, plan.strides, strict=True)]
    lengths = [(n - 1 + k) * step for n, k, step in zip(plan.counts, wide, plan.strides, strict=True)]
    x = x[:, *(slice(0, length) for length in lengths)]
    missing = [(0, length - n) for length, n in zip(lengths, x.shape[1:-1], strict=True)]
    x = mx.pad(x, [(0, 0), *missing, (0, 0)]) if any(map(any, missing)) else x
    more = [(0, k * step - n) for k, step, n in zip(wide, plan.strides, plan.size, strict=True)]
    # With shape (out, *size, in) the kernel is rearranged like the tensor, with its outputs as the batch.
    kernel = mx.pad(mx.moveaxis(kernel, -1, 0), [(0, 0), *more, (0, 0)])
    return _into_channels(x, plan.strides), _into_channels(kernel, plan.strides)


def _convolved(x: mx.array, kernel: mx.array, plan: Windows) -> mx.array:
    """Returns the convolution of a single group: every output channel depends on all input channels."""
    if max(plan.strides) == 1:
        before, after = zip(*plan.padding, strict=True)
        return mx.conv_general(x, mx.moveaxis(kernel, -1, 0), padding=(before, after))
    padded = mx.pad(x, plan.around()) if plan.padded else x
    return mx.conv_general(*_unstrided(padded, kernel, plan))


@functools.lru_cache(maxsize=256)
def _alone(composed: Callable[..., Any], name: str, groups: int, plan: Windows | Transposed, *options: Any) -> Function:
    """Returns MLX's own convolution of a tensor with channels last and a kernel, without a bias.

    Args:
        composed: returns the composite of an op, whose derivatives and slices are right.
        name: the op, "conv" or "conv_transpose".
        groups: the number of groups of channels.
        plan: the geometry.
        options: the arguments of the op after the kernel.
    """
    ones = (1,) * len(plan.strides)
    if isinstance(plan, Transposed):
        outputs, pairs, strides, spread = -2, plan.around, ones, plan.strides
    else:
        outputs, pairs, strides, spread = -1, plan.padding, plan.strides, ones
    padding = [before for before, _ in pairs], [after for _, after in pairs]

    def native(x: mx.array, kernel: mx.array) -> mx.array:
        kernel = mx.moveaxis(kernel, outputs, 0)
        return mx.conv_general(x, kernel, strides, padding, plan.dilation, spread, groups, outputs == -2)

    return differentiated_by(native, lambda x, kernel: composed(name)(x, kernel, *options))


@functools.lru_cache(maxsize=256)
def _quick_conv(
    composed: Callable[..., Any], shape: tuple[int, ...], size: tuple[int, ...], strides: int, padding: str, spread: int
) -> Function | None:
    """Returns the convolution of tensors with channels last of these shapes; None if MLX's kernel alone is not best."""
    groups = check_channels(shape, size)
    plan = recent_windows(shape[1:-1], size[:-2], strides, padding, spread)
    # MLX 0.32 has no groups for three spatial axes on a CPU.
    if (groups > 1 and len(size) > 4) or not _is_small(shape[0], size, math.prod(plan.counts), size[-1]):
        return None
    return _alone(composed, "conv", groups, plan, plan.strides, plan.padding, None, plan.dilation)


@functools.lru_cache(maxsize=256)
def _quick_transposed(
    composed: Callable[..., Any], shape: tuple[int, ...], size: tuple[int, ...], strides: int, padding: str, spread: int
) -> Function | None:
    """Returns the transposed convolution of such tensors, as `_quick_conv` does."""
    groups = check_channels(shape, (*size[:-2], *reversed(size[-2:])))
    if groups > 1 or not _is_small(shape[0], size, math.prod(shape[1:-1]), size[-2]):
        return None
    plan = transposed(shape[1:-1], size[:-2], strides, padding, None, spread)
    if min(map(min, plan.around)) < 0:
        return None
    return _alone(composed, "conv_transpose", 1, plan, strides, padding, None, None, spread)


class MLXConvolutionOps:
    """Holds the ops of `ops/convolution.py`."""

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
        usual = strides.__class__ is dilation_rate.__class__ is int and padding.__class__ is str
        if usual and data_format is None and bias is None and _is_alone(inputs, kernel):
            quick = _quick_conv(self.composed, inputs.shape, kernel.shape, strides, padding, dilation_rate)
            if quick is not None:
                convolved: mx.array = quick(inputs, kernel)
                return convolved
        x, w, *b = promotion.common(inputs, kernel, *([] if bias is None else [bias]))
        last = channels_last(data_format)
        x = x if last else mx.moveaxis(x, 1, -1)
        groups = check_channels(x.shape, w.shape)
        check_bias(bias, w.shape[-1])
        plan = recent_windows(x.shape[1:-1], w.shape[:-2], strides, padding, dilation_rate)
        small = (groups == 1 or w.ndim < 5) and _is_small(len(x), w.shape, math.prod(plan.counts), w.shape[-1])
        if small and _is_alone(x, w):
            options = plan.strides, plan.padding, None, plan.dilation
            result = _alone(self.composed, "conv", groups, plan, *options)(x, w)
            result = result + b[0] if b else result
            return result if last else mx.moveaxis(result, -1, 1)
        # The kernel has no bias, which has to be added before half precision is rounded.
        if not _is_native(x, w, plan, groups) or (b and x.dtype.size == 2):
            return self.composed("conv")(inputs, kernel, strides, padding, data_format, dilation_rate, bias)
        if groups == 1:
            result = _convolved(x, w, plan)
        else:
            parts = zip(mx.split(x, groups, -1), mx.split(w, groups, -1), strict=True)
            result = mx.concatenate([_convolved(part, kernel, plan) for part, kernel in parts], -1)
        result = result + b[0] if b else result
        return fitting(result if last else mx.moveaxis(result, -1, 1))

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
        usual = strides.__class__ is dilation_rate.__class__ is int and padding.__class__ is str
        usual = usual and output_padding is None and (bias is None or bias.dtype == mx.float32)
        if usual and _is_alone(inputs, kernel):
            last = channels_last(data_format)
            x = inputs if last else mx.moveaxis(inputs, 1, -1)
            check_bias(bias, kernel.shape[-2])
            quick = _quick_transposed(self.composed, x.shape, kernel.shape, strides, padding, dilation_rate)
            if quick is not None:
                result = quick(x, kernel)
                result = result if bias is None else result + bias
                return result if last else mx.moveaxis(result, -1, 1)
        return self.composed("conv_transpose")(
            inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, bias
        )
