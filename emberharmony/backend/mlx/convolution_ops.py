"""Convolutions, on MLX: its own kernel where all its derivatives are right.

MLX 0.32 derives a convolution with strides or dilation by one with dilated inputs, whose own derivative has a wrong
shape or wrong values, and gives wrong values where it maps one with groups over kernels. So strides are turned into
channels first, groups are convolved one by one, and dilated kernels are left to the composite.
"""

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.device_ops import fitting
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import on_cpu
from emberharmony.backend.mlx.math_ops import is_float
from emberharmony.backend.shared.convolution import Windows, channels_last, check_channels, windows

_MANY = 128
"""From so many pairs of channels on the products of matrices, one for each place of the kernel, are faster on a CPU."""
_FEW = 16
"""So many groups are worth a call each."""


def _is_native(x: mx.array, kernel: mx.array, plan: Windows, groups: int) -> bool:
    """Returns whether MLX convolves such tensors, derives and maps it, and does so faster."""
    if not is_float(x) or x.dtype == mx.float64 or kernel.ndim > 5 or not x.size or not kernel.size:
        return False
    inner, outer = kernel.shape[-2], kernel.shape[-1] // groups
    if max(plan.dilation) > 1 or groups > _FEW or (inner == 1 and groups > 1):
        return False
    return inner * outer < _MANY or not on_cpu()


def _into_channels(x: mx.array, strides: tuple[int, ...]) -> mx.array:
    """Returns a tensor whose spatial axes, multiples of the strides, are so much shorter and the channels wider."""
    n = len(strides)
    apart = [part for length, step in zip(x.shape[1:-1], strides, strict=True) for part in (length // step, step)]
    order = [0, *range(1, 2 * n, 2), *range(2, 2 * n + 1, 2), 2 * n + 1]
    short = apart[::2]
    return x.reshape(x.shape[0], *apart, x.shape[-1]).transpose(order).reshape(x.shape[0], *short, -1)


def _unstrided(x: mx.array, kernel: mx.array, plan: Windows) -> tuple[mx.array, mx.array]:
    """Returns a padded tensor and a kernel whose convolution with stride 1 is that of the given ones with strides."""
    wide = [-(-k // step) for k, step in zip(plan.size, plan.strides, strict=True)]
    lengths = [(n - 1 + k) * step for n, k, step in zip(plan.counts, wide, plan.strides, strict=True)]
    x = x[:, *(slice(0, length) for length in lengths)]
    missing = [(0, length - n) for length, n in zip(lengths, x.shape[1:-1], strict=True)]
    x = mx.pad(x, [(0, 0), *missing, (0, 0)]) if any(map(any, missing)) else x
    more = [(0, k * step - n) for k, step, n in zip(wide, plan.strides, plan.size, strict=True)]
    # (out, *size, in): the kernel goes the way of the tensor, its outputs in place of the batch.
    kernel = mx.pad(mx.moveaxis(kernel, -1, 0), [(0, 0), *more, (0, 0)])
    return _into_channels(x, plan.strides), _into_channels(kernel, plan.strides)


def _convolved(x: mx.array, kernel: mx.array, plan: Windows) -> mx.array:
    """Returns the convolution with a kernel that sees all channels."""
    if max(plan.strides) == 1:
        before, after = zip(*plan.padding, strict=True)
        return mx.conv_general(x, mx.moveaxis(kernel, -1, 0), padding=(before, after))
    padded = mx.pad(x, plan.around()) if plan.padded else x
    return mx.conv_general(*_unstrided(padded, kernel, plan))


class MLXConvolutionOps:
    """Holds the ops of `ops/convolution.py`."""

    composed: Callable[[str], Callable[..., mx.array]]

    def conv(
        self,
        inputs: mx.array,
        kernel: mx.array,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
    ) -> mx.array:
        x, w = promotion.common(inputs, kernel)
        last = channels_last(data_format)
        x = x if last else mx.moveaxis(x, 1, -1)
        groups = check_channels(x.shape, w.shape)
        plan = windows(x.shape[1:-1], w.shape[:-2], strides, padding, dilation_rate)
        if not _is_native(x, w, plan, groups):
            return self.composed("conv")(inputs, kernel, strides, padding, data_format, dilation_rate)
        if groups == 1:
            result = _convolved(x, w, plan)
        else:
            parts = zip(mx.split(x, groups, -1), mx.split(w, groups, -1), strict=True)
            result = mx.concatenate([_convolved(part, kernel, plan) for part, kernel in parts], -1)
        return fitting(result if last else mx.moveaxis(result, -1, 1))
