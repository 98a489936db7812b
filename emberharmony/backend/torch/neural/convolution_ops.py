"""Convolutions, on PyTorch: its own kernels for floating tensors of up to three spatial axes.

Options, once they are checked, belong to a function that is kept for the shapes (`_native_convolution`). Options that
are tuples, with channels first, go to PyTorch without a look at them; if it refuses them, the complete path runs and
raises the typed error. `functional.conv2d` then gets 8 µs more instead of 50. A kernel of a depthwise
convolution has an axis of length 1, for which oneDNN mistakes memory layouts, so it is copied.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.shared.neural.convolution import (
    check_bias,
    check_channels,
    check_depthwise,
    has_channels_last,
    integers_per_axis,
    transposed_geometry,
    windows,
)
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.tracing import in_functional_transform
from emberharmony.core.dispatch import fast

_CONV = (functional.conv1d, functional.conv2d, functional.conv3d)
WIDE = frozenset((torch.float32, torch.float64))
"""The dtypes in which PyTorch's kernels compute as they are."""
_TRANSPOSED = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)


def flat_padding(pairs: Any) -> list[int]:
    """Returns the padding (before, after) of each axis in the order that `functional.pad` takes: last axis first."""
    return [number for pair in reversed(pairs) for number in pair]


def _has_native_kernel(x: torch.Tensor, kernel: torch.Tensor) -> bool:
    """Returns whether PyTorch's kernels can convolve `x`: floating, not empty, with one to three spatial axes."""
    return x.is_floating_point() and 3 <= kernel.ndim <= 5 and x.numel() > 0 and kernel.numel() > 0


def _widen_half_on_cpu(x: torch.Tensor) -> torch.Tensor:
    """Returns half precision on the CPU as float32, because its kernels do not promise to accumulate in float32."""
    return x.float() if x.itemsize == 2 and x.is_cpu else x


def _normalize_layout(x: torch.Tensor) -> torch.Tensor:
    """Returns a tensor in an unambiguous memory layout; in reverse mode the cotangent passes through the same.

    If an axis has length 1, several layouts describe the same tensor. oneDNN (PyTorch 2.13) sometimes mistakes one for
    another, which makes the results or the gradients wrong.
    """
    return x.reshape(-1).reshape(x.shape) if 1 in x.shape[1:] else x


def _move_channels_second(x: torch.Tensor, last: bool) -> torch.Tensor:
    """Returns an input as the kernels take it: shape (batch, channels, *spatial), float32 or wider on the CPU."""
    return _normalize_layout(_widen_half_on_cpu(x.movedim(-1, 1) if last else x))


def _move_outputs_first(kernel: torch.Tensor) -> torch.Tensor:
    """Returns a convolution kernel (*spatial, in, out) as PyTorch takes it: (out, in, *spatial).

    It is contiguous, because the gradients of some of PyTorch's kernels require that.
    """
    n = kernel.ndim - 2
    return _widen_half_on_cpu(kernel).permute(n + 1, n, *range(n)).contiguous()


def _move_inputs_first(kernel: torch.Tensor, groups: int) -> torch.Tensor:
    """Returns a kernel (*spatial, out, in / groups) as PyTorch transposes it: (in, out / groups, *spatial)."""
    if groups == 1:
        return _move_outputs_first(kernel)
    n = kernel.ndim - 2
    grouped_kernel = _widen_half_on_cpu(kernel).reshape(*kernel.shape[:n], groups, -1, kernel.shape[-1])
    return grouped_kernel.permute(n, n + 2, n + 1, *range(n)).flatten(0, 1).contiguous()


def _contiguous_kernel(weight: torch.Tensor, x: torch.Tensor, has_length_1: bool) -> torch.Tensor:
    """Returns a kernel that was permuted, contiguous if a gradient may require that, or if an axis has length 1."""
    if has_length_1 or weight.requires_grad or x.requires_grad or in_functional_transform():
        return weight.contiguous()
    return weight


def _conv_of_tuples(
    x: torch.Tensor, kernel: torch.Tensor, bias: torch.Tensor | None, strides: Any, padding: Any, dilation: Any
) -> torch.Tensor | None:
    """Returns the convolution of a tensor (batch, channels, *spatial) if all options are tuples that PyTorch takes.

    PyTorch checks them itself, in a tenth of the time. None says that the complete path must run, which raises the
    typed error if an option is wrong.
    """
    n = kernel.ndim - 2
    if x.dtype is not kernel.dtype or x.dtype not in WIDE or not _has_native_kernel(x, kernel) or x.ndim != n + 2:
        return None
    if bias is not None and (bias.dtype is not x.dtype or bias.shape != kernel.shape[-1:]):
        return None
    if not len(strides) == len(padding) == len(dilation) == n:
        return None  # PyTorch would take one number for all axes
    groups = x.shape[1] // kernel.shape[-2]
    try:
        # Options of 2**31 or more could overflow in PyTorch.
        if max(*strides, *padding, *dilation) >= 2**31:
            return None
        weight = kernel.permute(n + 1, n, *range(n)).contiguous()
        return _normalize_layout(_CONV[n - 1](_normalize_layout(x), weight, bias, strides, padding, dilation, groups))
    except (RuntimeError, TypeError):
        return None


def _crop_options(
    excess: Sequence[tuple[int, int]], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Returns the options by which PyTorch's transposed convolution crops its result.

    Args:
        excess: the elements to crop before and after each axis; a negative number says how many zeros to add.
        strides: one for each axis.
        dilation: one for each axis.

    Returns:
        `padding`, `output_padding`, and the zeros that remain to be added before and after each axis; a negative
        number says how many elements remain to be cropped.
    """
    common_padding, extra_lengths, remaining_padding = [], [], []
    for (before, after), step, axis_dilation in zip(excess, strides, dilation, strict=True):
        # PyTorch crops `padding` elements at both ends, and at the far end `output_padding` fewer. That option must be
        # below the stride or the dilation.
        extra_length = before - after
        if before >= 0 and 0 <= extra_length < max(step, axis_dilation):
            cropped_length = before
        else:
            cropped_length, extra_length = max(min(before, after), 0), 0
        common_padding.append(cropped_length)
        extra_lengths.append(extra_length)
        remaining_padding.append((cropped_length - before, cropped_length - extra_length - after))
    return common_padding, extra_lengths, remaining_padding


@functools.lru_cache(maxsize=256)
def _native_convolution(
    shape: tuple[int, ...], size: tuple[int, ...], strides: int, padding: str, dilation: int, depthwise: bool = False
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Returns the convolution of tensors with channels last of these shapes, for which all options are known.

    Args:
        shape: the shape of the input.
        size: the shape of the kernel.
        strides: one for all axes.
        padding: a word.
        dilation: one for all axes.
        depthwise: whether the kernel is that of `depthwise_conv`, (*spatial, channels, multiplier).

    Raises:
        NotImplementedError: if PyTorch has no kernel for such shapes.
    """
    n = len(size) - 2
    if n > len(_CONV) or 0 in shape or 0 in size:
        raise NotImplementedError
    kernel_order, joins_channels = (n + 1, n, *range(n)), depthwise and size[-1] > 1
    if depthwise:
        check_depthwise(shape, size)
        kernel_order, size = (n, n + 1, *range(n)), (*size[:-2], 1, size[-2] * size[-1])
    groups = check_channels(shape, size)
    plan = windows(shape[1:-1], size[:-2], strides, padding, dilation)
    is_even = all(before == after for before, after in plan.padding)
    paddings = tuple(before if is_even else 0 for before, _ in plan.padding)
    pad_widths, native_kernel, weight_shape = flat_padding(plan.padding), _CONV[n - 1], (size[-1], 1, *size[:-2])
    channels_second_order, channels_last_order = (0, n + 1, *range(1, n + 1)), (0, *range(2, n + 2), 1)
    has_length_1, has_odd_result, has_odd_kernel = 1 in shape[1:], 1 in (*plan.counts, size[-1]), 1 in size

    def convolve(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        x = x.permute(*channels_second_order)  # a tuple would take 0.35 µs more
        if has_length_1:
            x = _normalize_layout(x)
        if not is_even:
            x = functional.pad(x, pad_widths)
        weight = _contiguous_kernel(kernel.permute(*kernel_order), x, has_odd_kernel)
        if joins_channels:
            weight = weight.view(weight_shape)
        convolution = native_kernel(x, weight, None, plan.strides, paddings, plan.dilation, groups)
        return (_normalize_layout(convolution) if has_odd_result else convolution).permute(*channels_last_order)

    return convolve


def _quick_conv(
    x: torch.Tensor, kernel: torch.Tensor, strides: int, padding: str, _format: None, dilation: int, _bias: None
) -> torch.Tensor:
    return _native_convolution(x.shape, kernel.shape, strides, padding, dilation)(x, kernel)


def _quick_depthwise(
    x: torch.Tensor, kernel: torch.Tensor, strides: int, padding: str, _format: None, dilation: int
) -> torch.Tensor:
    return _native_convolution(x.shape, kernel.shape, strides, padding, dilation, True)(x, kernel)


@functools.lru_cache(maxsize=256)
def _native_transposed_convolution(
    shape: tuple[int, ...], size: tuple[int, ...], strides: int, padding: str, dilation: int
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Returns the transposed convolution of tensors with channels last of these shapes, as `_native_convolution` does.

    Raises:
        NotImplementedError: if PyTorch has no kernel for such shapes.
    """
    groups, n = check_channels(shape, (*size[:-2], size[-1], size[-2])), len(size) - 2
    if n > len(_TRANSPOSED) or 0 in shape or 0 in size:
        raise NotImplementedError
    plan = transposed_geometry(shape[1:-1], size[:-2], strides, padding, None, dilation)
    common_padding, crop_options, remaining_padding = _crop_options(
        plan.crop_pairs(size[:-2]), plan.strides, plan.dilation
    )
    is_fully_cropped, native_kernel, pad_widths = (
        not any(map(any, remaining_padding)),
        _TRANSPOSED[n - 1],
        flat_padding(remaining_padding),
    )
    channels_second_order, outputs_first, channels_last_order = (
        (0, n + 1, *range(1, n + 1)),
        (n + 1, n, *range(n)),
        (0, *range(2, n + 2), 1),
    )
    lengths = plan.lengths(shape[1:-1], size[:-2])
    has_length_1, has_odd_result, has_odd_kernel = (
        1 in shape[1:],
        not is_fully_cropped or 1 in (*lengths, size[-2]),
        1 in size,
    )

    def convolve(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        x = x.permute(*channels_second_order)
        if has_length_1:
            x = _normalize_layout(x)
        if groups == 1:
            weight = _contiguous_kernel(kernel.permute(*outputs_first), x, has_odd_kernel)
        else:
            weight = _move_inputs_first(kernel, groups)
        convolution = native_kernel(x, weight, None, plan.strides, common_padding, crop_options, groups, plan.dilation)
        if has_odd_result:
            convolution = _normalize_layout(convolution)
        return (convolution if is_fully_cropped else functional.pad(convolution, pad_widths)).permute(
            *channels_last_order
        )

    return convolve


def _quick_conv_transpose(
    x: torch.Tensor,
    kernel: torch.Tensor,
    strides: int,
    padding: str,
    _extra: None,
    _format: None,
    dilation: int,
    _bias: None,
) -> torch.Tensor:
    return _native_transposed_convolution(x.shape, kernel.shape, strides, padding, dilation)(x, kernel)


_NUMBERS = (
    "not traced_by_torch() and {2}.__class__ is int and {3}.__class__ is str and {0}.dtype is {1}.dtype "
    "and {0}.dtype.is_floating_point and {0}.itemsize > 2"
)
"""When the options are single numbers and a word, and the dtype is float32 or float64.

Symbols of torch.compile are no lengths that a plan could be remembered for.
"""


class TorchConvolutionOps:
    """Holds the ops of `ops/neural/convolution.py`.

    The bodies make a product for each element of the kernel: they take 9.2 times (conv) and 1.3 times as long for
    60,000 elements.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    @fast(_quick_conv, f"{_NUMBERS} and {{5}}.__class__ is int and {{4}} is None and {{6}} is None")
    def conv(
        self,
        inputs: torch.Tensor,
        kernel: torch.Tensor,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        bias: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if (
            data_format == "channels_first"
            and strides.__class__ is padding.__class__ is dilation_rate.__class__ is tuple
        ):
            direct_result = _conv_of_tuples(inputs, kernel, bias, strides, padding, dilation_rate)
            if direct_result is not None:
                return direct_result
        x, w, *b = promotion.common(inputs, kernel, *([] if bias is None else [bias]))
        if not _has_native_kernel(x, w):
            return self.composed("conv")(inputs, kernel, strides, padding, data_format, dilation_rate, bias)
        n, is_channels_last, dtype = w.ndim - 2, has_channels_last(data_format), x.dtype
        shape = x.shape if is_channels_last else (*x.shape[:1], *x.shape[2:], *x.shape[1:2])
        groups = check_channels(shape, w.shape)
        check_bias(bias, w.shape[-1])
        plan = windows(shape[1:-1], w.shape[:-2], strides, padding, dilation_rate)
        x, w, widened_bias = (
            _move_channels_second(x, is_channels_last),
            _move_outputs_first(w),
            _widen_half_on_cpu(b[0]) if b else None,
        )
        paddings = [before for before, _ in plan.padding]
        # PyTorch pads both sides of an axis equally, so unequal padding is added beforehand.
        if any(before != after for before, after in plan.padding):
            x, paddings = functional.pad(x, flat_padding(plan.padding)), [0] * n
        convolution = _normalize_layout(
            _CONV[n - 1](x, w, widened_bias, plan.strides, paddings, plan.dilation, groups)
        ).to(dtype)
        return convolution.movedim(1, -1) if is_channels_last else convolution

    @fast(_quick_depthwise, f"{_NUMBERS} and {{5}}.__class__ is int and {{4}} is None")
    def depthwise_conv(
        self,
        inputs: torch.Tensor,
        kernel: torch.Tensor,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
    ) -> torch.Tensor:
        return self.composed("depthwise_conv")(inputs, kernel, strides, padding, data_format, dilation_rate)

    @fast(
        _quick_conv_transpose,
        f"{_NUMBERS} and {{6}}.__class__ is int and {{4}} is None and {{5}} is None and {{7}} is None",
    )
    def conv_transpose(
        self,
        inputs: torch.Tensor,
        kernel: torch.Tensor,
        strides: Any = 1,
        padding: Any = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        bias: torch.Tensor | None = None,
    ) -> torch.Tensor:
        x, w, *b = promotion.common(inputs, kernel, *([] if bias is None else [bias]))
        if not _has_native_kernel(x, w):
            return self.composed("conv_transpose")(
                inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, bias
            )
        n, is_channels_last, dtype = w.ndim - 2, has_channels_last(data_format), x.dtype
        shape = x.shape if is_channels_last else (*x.shape[:1], *x.shape[2:], *x.shape[1:2])
        groups = check_channels(shape, (*w.shape[:-2], w.shape[-1], w.shape[-2]))
        check_bias(bias, w.shape[-2])
        plan = transposed_geometry(shape[1:-1], w.shape[:-2], strides, padding, output_padding, dilation_rate)
        crops = plan.crop_pairs(w.shape[:-2])
        x, w = _move_channels_second(x, is_channels_last), _move_inputs_first(w, groups)
        common_padding, crop_options, remaining_padding = _crop_options(crops, plan.strides, plan.dilation)
        # With the bias, the kernel takes up to twice the time (PyTorch 2.13 on a CPU).
        convolution = _normalize_layout(
            _TRANSPOSED[n - 1](x, w, None, plan.strides, common_padding, crop_options, groups, plan.dilation)
        )
        if any(map(any, remaining_padding)):
            convolution = functional.pad(convolution, flat_padding(remaining_padding))
        convolution = (convolution + _widen_half_on_cpu(b[0]).reshape(-1, *[1] * n) if b else convolution).to(dtype)
        return convolution.movedim(1, -1) if is_channels_last else convolution

    def fold(
        self,
        x: torch.Tensor,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> torch.Tensor:
        if len(output_size) == 2 and x.ndim == 3 and x.dtype in (torch.float32, torch.float64) and x.numel():
            size, paddings = (
                integers_per_axis(kernel_size, 2, "kernel_size"),
                integers_per_axis(padding, 2, "padding", 0),
            )
            steps, dilations = integers_per_axis(stride, 2, "stride"), integers_per_axis(dilation, 2, "dilation")
            lengths = [length + 2 * zeros for length, zeros in zip(output_size, paddings, strict=True)]
            plan = windows(lengths, size, steps, "valid", dilations)
            if x.shape[1] % math.prod(size) == 0 and x.shape[2] == math.prod(plan.counts):
                return functional.fold(x, tuple(output_size), size, dilations, paddings, steps)
        return self.composed("fold")(x, output_size, kernel_size, dilation, padding, stride)
