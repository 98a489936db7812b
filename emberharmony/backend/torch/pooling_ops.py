"""Pooling, on PyTorch: its own kernels for floating tensors of up to three spatial axes."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.shared.convolution import Windows, channels_last, each, pool_windows
from emberharmony.backend.torch.convolution_ops import flat
from emberharmony.backend.torch.dtypes import promotion

Native = Callable[..., torch.Tensor]
_MAX = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_AVERAGE = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)
_ADAPTIVE_MAX = (functional.adaptive_max_pool1d, functional.adaptive_max_pool2d, functional.adaptive_max_pool3d)
_ADAPTIVE_AVERAGE = (functional.adaptive_avg_pool1d, functional.adaptive_avg_pool2d, functional.adaptive_avg_pool3d)


def _is_native(x: torch.Tensor) -> bool:
    """Returns whether PyTorch's kernels can pool `x`: floating, not empty, with one to three spatial axes."""
    return x.is_floating_point() and 3 <= x.ndim <= 5 and x.numel() > 0


def _through(native: Native, x: torch.Tensor, data_format: str | None) -> torch.Tensor:
    """Returns the result of a kernel that takes (batch, channels, *spatial), for a tensor in the given format."""
    if channels_last(data_format):
        return native(x.movedim(-1, 1)).movedim(1, -1)
    return native(x)


def _plan(x: torch.Tensor, pool_size: Any, strides: Any, padding: str, data_format: str | None) -> Windows:
    lengths = x.shape[1:-1] if channels_last(data_format) else x.shape[2:]
    return pool_windows(lengths, pool_size, strides, padding)


def _even(plan: Windows) -> list[int] | None:
    """Returns the padding of each axis, or None if it differs on its two sides: PyTorch pads both sides equally."""
    return None if any(a != b for a, b in plan.padding) else [a for a, _ in plan.padding]


def _averages(x: torch.Tensor, plan: Windows) -> torch.Tensor:
    """Returns the mean of each window of a tensor (batch, channels, *spatial); padding does not count."""
    pool, around = _AVERAGE[len(plan.size) - 1], _even(plan)
    # avg_pool3d (PyTorch 2.13) raises if a window is longer than the axis without its padding.
    if around is not None and all(k <= n for k, n in zip(plan.size, x.shape[2:], strict=True)):
        return pool(x, plan.size, plan.strides, around, count_include_pad=False)
    # Else average the padded tensor, and divide by the share of real elements in each window.
    padded = functional.pad(x, flat(plan.padding))
    held = functional.pad(torch.ones((1, 1, *x.shape[2:]), dtype=x.dtype, device=x.device), flat(plan.padding))
    return pool(padded, plan.size, plan.strides) / pool(held, plan.size, plan.strides)


def _maxima(x: torch.Tensor, plan: Windows) -> torch.Tensor:
    """Returns the largest element of each window of a tensor (batch, channels, *spatial)."""
    around = _even(plan)
    if around is None:
        x, around = functional.pad(x, flat(plan.padding), value=-torch.inf), [0] * len(plan.size)
    return _MAX[len(plan.size) - 1](x, plan.size, plan.strides, around)


def _adaptive(name: str, kernels: tuple[Native, ...]) -> Any:
    def adaptive(self: Any, inputs: torch.Tensor, output_size: Any, data_format: str | None = None) -> torch.Tensor:
        if not _is_native(inputs):
            return self.composed(name)(inputs, output_size, data_format)
        n = inputs.ndim - 2
        size = each(output_size, n, "output_size")
        return _through(lambda x: kernels[n - 1](x, size), inputs, data_format)

    return adaptive


class TorchPoolingOps:
    """Holds the ops of `ops/pooling.py`."""

    composed: Callable[[str], Native]
    adaptive_max_pool = _adaptive("adaptive_max_pool", _ADAPTIVE_MAX)
    adaptive_average_pool = _adaptive("adaptive_average_pool", _ADAPTIVE_AVERAGE)

    def max_pool(
        self,
        inputs: torch.Tensor,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
    ) -> torch.Tensor:
        if not _is_native(inputs):
            return self.composed("max_pool")(inputs, pool_size, strides, padding, data_format)
        plan = _plan(inputs, pool_size, strides, padding, data_format)
        return _through(lambda x: _maxima(x, plan), inputs, data_format)

    def average_pool(
        self,
        inputs: torch.Tensor,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
    ) -> torch.Tensor:
        x = promotion.floats(inputs)
        if not _is_native(x):
            return self.composed("average_pool")(inputs, pool_size, strides, padding, data_format)
        plan, kind = _plan(x, pool_size, strides, padding, data_format), x.dtype
        wide = x.float() if x.itemsize == 2 else x
        return _through(lambda x: _averages(x, plan), wide, data_format).to(kind)
