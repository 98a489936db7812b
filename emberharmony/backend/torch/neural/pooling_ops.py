"""Pooling, on PyTorch: its own kernels for floating tensors of up to three spatial axes."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.shared.neural.convolution import (
    Pool,
    divisor,
    has_channels_last,
    integers_per_axis,
    pool_windows,
)
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.neural.convolution_ops import WIDE, flat_padding
from emberharmony.core.dispatch import fast

Native = Callable[..., torch.Tensor]
_MAX = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_AVERAGE = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)
_ADAPTIVE_MAX = (functional.adaptive_max_pool1d, functional.adaptive_max_pool2d, functional.adaptive_max_pool3d)
_ADAPTIVE_AVERAGE = (functional.adaptive_avg_pool1d, functional.adaptive_avg_pool2d, functional.adaptive_avg_pool3d)


def _has_native_kernel(x: torch.Tensor) -> bool:
    """Returns whether PyTorch's kernels can pool `x`: floating, not empty, with one to three spatial axes."""
    return x.is_floating_point() and 3 <= x.ndim <= 5 and x.numel() > 0


def _run_channels_first(native: Native, x: torch.Tensor, data_format: str | None) -> torch.Tensor:
    """Returns the result of a kernel that takes (batch, channels, *spatial), for a tensor in the given format."""
    if has_channels_last(data_format):
        return native(x.movedim(-1, 1)).movedim(1, -1)
    return native(x)


def _spatial_lengths(x: torch.Tensor, data_format: str | None) -> torch.Size:
    return x.shape[1:-1] if has_channels_last(data_format) else x.shape[2:]


def _symmetric_padding(pairs: Sequence[tuple[int, int]]) -> list[int] | None:
    """Returns the padding of each axis, or None if it differs on its two sides: PyTorch pads both sides equally."""
    return None if any(a != b for a, b in pairs) else [a for a, _ in pairs]


def _native_padding(windows: Pool, lengths: Sequence[int]) -> list[int] | None:
    """Returns the padding of each axis as PyTorch takes it; None if its kernels cannot compute these windows.

    avg_pool3d (PyTorch 2.13) raises if a window is longer than the axis without its padding.
    """
    window_lengths = [
        (k - 1) * axis_dilation + 1 for k, axis_dilation in zip(windows.size, windows.plan.dilation, strict=True)
    ]
    return (
        _symmetric_padding(windows.asked_padding)
        if all(r <= length for r, length in zip(window_lengths, lengths, strict=True))
        else None
    )


def _window_means(x: torch.Tensor, windows: Pool, counts_padding: bool, divisor: int | None) -> torch.Tensor:
    """Returns the mean of each window of a tensor (batch, channels, *spatial).

    Args:
        x: the tensor.
        windows: the windows.
        counts_padding: whether the padding that was asked for counts.
        divisor: divides the sums, if it is not None.
    """
    plan, padding = windows.plan, _native_padding(windows, x.shape[2:])
    pool_function, is_rounded_up = _AVERAGE[len(plan.size) - 1], plan.padding != windows.asked_padding
    if padding is not None and divisor is None:
        return pool_function(x, plan.size, plan.strides, padding, is_rounded_up, counts_padding)
    # Otherwise average the padded tensor, and divide by the share of elements that count in each window.
    averages = pool_function(functional.pad(x, flat_padding(plan.padding)), plan.size, plan.strides)
    if divisor is not None or (counts_padding and not is_rounded_up):
        return averages * (math.prod(plan.size) / (divisor or math.prod(windows.size)))
    given_padding = windows.asked_padding if counts_padding else ((0, 0),) * len(plan.size)
    lengths = [length + before + after for length, (before, after) in zip(x.shape[2:], given_padding, strict=True)]
    extra_padding = [(a - c, b - d) for (a, b), (c, d) in zip(plan.padding, given_padding, strict=True)]
    inside_mask = functional.pad(
        torch.ones((1, 1, *lengths), dtype=x.dtype, device=x.device), flat_padding(extra_padding)
    )
    return averages / pool_function(inside_mask, plan.size, plan.strides)


def _window_maxima(x: torch.Tensor, windows: Pool) -> torch.Tensor:
    """Returns the largest element of each window of a tensor (batch, channels, *spatial)."""
    plan, padding = windows.plan, _native_padding(windows, x.shape[2:])
    pool_function = _MAX[len(plan.size) - 1]
    if padding is not None:
        return pool_function(x, plan.size, plan.strides, padding, plan.dilation, plan.padding != windows.asked_padding)
    padded_x = functional.pad(x, flat_padding(plan.padding), value=-torch.inf)
    return pool_function(padded_x, plan.size, plan.strides, 0, plan.dilation)


def _pool_of_tuples(
    kernels: tuple[Native, ...], x: torch.Tensor, windows: Sequence[Any], *options: Any
) -> torch.Tensor | None:
    """Returns the pool of a tensor (batch, channels, *spatial) if its windows are given by tuples that PyTorch takes.

    PyTorch checks them itself, in a tenth of the time. None says that the complete path must run, which raises the
    typed error if an option is wrong.

    Args:
        kernels: PyTorch's function for each number of spatial axes.
        x: the tensor.
        windows: size, stride and padding, and dilation if the kernels have it before their other options.
        options: the other options of the kernels.
    """
    n = x.ndim - 2
    # PyTorch would take a tuple of one number for all axes.
    if (
        x.dtype not in WIDE
        or not _has_native_kernel(x)
        or any(w.__class__ is not tuple or len(w) != n for w in windows)
    ):
        return None
    try:
        # Options of 2**31 or more could overflow in PyTorch.
        if max(map(max, windows)) >= 2**31:
            return None
        return kernels[n - 1](x, *windows, *options)
    except (RuntimeError, TypeError):
        return None


def _adaptive_pool_op(name: str, kernels: tuple[Native, ...]) -> Any:
    def adaptive_pool(
        self: Any, inputs: torch.Tensor, output_size: Any, data_format: str | None = None
    ) -> torch.Tensor:
        if not _has_native_kernel(inputs):
            return self.composed(name)(inputs, output_size, data_format)
        n = inputs.ndim - 2
        size = integers_per_axis(output_size, n, "output_size")
        return _run_channels_first(lambda x: kernels[n - 1](x, size), inputs, data_format)

    return adaptive_pool


_Run = Callable[[torch.Tensor], torch.Tensor]


@functools.lru_cache(maxsize=256)
def _native_pool(
    name: str, shape: tuple[int, ...], size: int, strides: int | None, padding: str, *options: Any
) -> _Run:
    """Returns a pool of tensors with channels last of this shape, for which all options are known.

    Raises:
        NotImplementedError: if PyTorch has no kernel for such shapes, or has to do more than call it.
    """
    windows, lengths = pool_windows(shape[1:-1], size, strides, padding, *options), shape[1:-1]
    paddings, n = _native_padding(windows, lengths), len(lengths)
    if paddings is None or n > len(_MAX) or 0 in shape or windows.plan.padding != windows.asked_padding:
        raise NotImplementedError
    native_kernel, plan = (_MAX if options else _AVERAGE)[n - 1], windows.plan
    last_arguments = (plan.dilation,) if options else (False, False)
    channels_second_order, channels_last_order = (0, n + 1, *range(1, n + 1)), (0, *range(2, n + 2), 1)
    return lambda x: native_kernel(
        x.permute(*channels_second_order), plan.size, plan.strides, paddings, *last_arguments
    ).permute(*channels_last_order)


def _quick_max_pool(
    x: torch.Tensor, size: int, strides: int | None, padding: str, _format: None, dilation: int, _ceil: bool
) -> torch.Tensor:
    return _native_pool("max", x.shape, size, strides, padding, dilation)(x)


def _quick_average_pool(x: torch.Tensor, size: int, strides: int | None, padding: str, *_rest: Any) -> torch.Tensor:
    return _native_pool("average", x.shape, size, strides, padding)(x)


_NUMBERS = (
    "not traced_by_torch() and {1}.__class__ is int and ({2} is None or {2}.__class__ is int) and {3}.__class__ is str "
    "and {4} is None and {0}.dtype.is_floating_point and {0}.itemsize > 2"
)
"""When the options are single numbers and a word, and the dtype is float32 or float64."""


class TorchPoolingOps:
    """Holds the ops of `ops/neural/pooling.py`.

    PyTorch's kernels take each window at once; the bodies take 2.3 to 4 times as long, for few elements.
    """

    composed: Callable[[str], Native]
    adaptive_max_pool = _adaptive_pool_op("adaptive_max_pool", _ADAPTIVE_MAX)
    adaptive_average_pool = _adaptive_pool_op("adaptive_average_pool", _ADAPTIVE_AVERAGE)

    @fast(_quick_max_pool, f"{_NUMBERS} and {{5}}.__class__ is int and {{6}} is False")
    def max_pool(
        self,
        inputs: torch.Tensor,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        ceil_mode: bool = False,
    ) -> torch.Tensor:
        if data_format == "channels_first" and not ceil_mode:
            steps = pool_size if strides is None else strides
            direct_result = _pool_of_tuples(_MAX, inputs, (pool_size, steps, padding, dilation_rate))
            if direct_result is not None:
                return direct_result
        if not _has_native_kernel(inputs):
            composed_op = self.composed("max_pool")
            return composed_op(inputs, pool_size, strides, padding, data_format, dilation_rate, ceil_mode)
        lengths = _spatial_lengths(inputs, data_format)
        windows = pool_windows(lengths, pool_size, strides, padding, dilation_rate, ceil_mode)
        return _run_channels_first(lambda x: _window_maxima(x, windows), inputs, data_format)

    @fast(_quick_average_pool, f"{_NUMBERS} and {{5}} is False and {{6}} is False and {{7}} is None")
    def average_pool(
        self,
        inputs: torch.Tensor,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        divisor_override: int | None = None,
    ) -> torch.Tensor:
        if data_format == "channels_first" and divisor_override is None and not ceil_mode:
            steps = pool_size if strides is None else strides
            direct_result = _pool_of_tuples(
                _AVERAGE, inputs, (pool_size, steps, padding), False, bool(count_include_pad)
            )
            if direct_result is not None:
                return direct_result
        x = promotion.floats(inputs)
        if not _has_native_kernel(x):
            options = (ceil_mode, count_include_pad, divisor_override)
            return self.composed("average_pool")(inputs, pool_size, strides, padding, data_format, *options)
        windows, dtype = (
            pool_windows(_spatial_lengths(x, data_format), pool_size, strides, padding, 1, ceil_mode),
            x.dtype,
        )
        divisor_value = None if divisor_override is None else divisor(divisor_override)
        x_float32 = x.float() if x.itemsize == 2 else x
        return _run_channels_first(
            lambda x: _window_means(x, windows, count_include_pad, divisor_value), x_float32, data_format
        ).to(dtype)
