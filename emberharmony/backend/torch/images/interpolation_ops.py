"""Interpolation, on PyTorch: its own kernels for floating tensors."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from emberharmony.backend.shared.neural.convolution import has_channels_last
from emberharmony.backend.torch.tracing import in_functional_transform
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.shared.images import interpolation as shared_interpolation
else:
    shared_interpolation = Deferred("emberharmony.backend.shared.images.interpolation")


class TorchInterpolationOps:
    """Holds the ops of `ops/images/interpolation.py`.

    PyTorch's kernels take the neighbours of each place together; the body takes 1.8 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def interpolate(
        self,
        x: torch.Tensor,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        data_format: str | None = None,
    ) -> torch.Tensor:
        is_channels_last = has_channels_last(data_format)
        plan = shared_interpolation.interpolation_geometry(
            x.shape, size, scale_factor, mode, align_corners, recompute_scale_factor, is_channels_last
        )
        # "nearest-exact" has no batching rule (PyTorch 2.13).
        lacks_batching = mode == "nearest-exact" and in_functional_transform()
        # PyTorch 2.13 copies an axis whose length stays, whatever `scale_factor` is: in some modes and numbers of axes
        # in the forward pass, in others in the gradient alone; "nearest" also where an axis doubles its length.
        copies_axis = any(m % n == 0 and step * m != n for _, n, m, step in zip(*plan, strict=True))
        if mode == "area" or lacks_batching or copies_axis or not x.is_floating_point() or not x.numel():
            options = (size, scale_factor, mode, align_corners, recompute_scale_factor, data_format)
            return self.composed("interpolate")(x, *options)
        dtype, pixels = x.dtype, x.movedim(-1, 1) if is_channels_last else x
        if mode in shared_interpolation.AXES and dtype.itemsize == 2:
            pixels = pixels.float()
        if recompute_scale_factor or size is not None:
            interpolated_x = functional.interpolate(pixels, plan.size, None, mode, align_corners)
        else:
            scale_factors = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(plan.axes)
            factors = [float(factor) for factor in scale_factors]
            interpolated_x = functional.interpolate(pixels, None, factors, mode, align_corners)
        interpolated_x = interpolated_x if pixels.dtype is dtype else interpolated_x.to(dtype)
        return interpolated_x.movedim(1, -1) if is_channels_last else interpolated_x
