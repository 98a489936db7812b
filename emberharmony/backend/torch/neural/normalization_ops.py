"""Normalisations, on PyTorch: the fused kernel where it gives the same results and is faster.

`batch_normalization` is left to the composite, because its kernel has no gradient of the statistics, and loses digits
where the mean is large (200 times the error at a mean of 1e4; PyTorch 2.13). In training the kernel's loss of digits is
avoided: the mean of the first sample is subtracted before, which changes neither the result nor its gradient. The rest
of the mean is then at most sqrt(samples) times the standard deviation. The kernel of `rms_normalization` is slower than
the few calls of the composite, of which two write into the mean that they read.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from emberharmony.backend.torch.derivatives import is_nested_gradient
from emberharmony.backend.torch.tracing import is_unwatched
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import normalization as shared_normalization
else:
    shared_normalization = Deferred("emberharmony.backend.shared.neural.normalization")

_FEW_ROWS = 1024
"""Up to this number of rows, the kernel of a batch normalisation in training keeps its digits (1e-6 for float32)."""

_MANY = 2**14
"""From so many numbers on, a batch normalisation that nothing differentiates is faster in several ops."""


def _move_channels_second(x: torch.Tensor, place: int) -> torch.Tensor:
    """Returns a contiguous tensor (samples, channels, ...) of the elements of `x`.

    On a CPU the kernel of a batch normalisation in training (PyTorch 2.13) adds float32 in double precision only if the
    elements of a channel are adjacent.
    """
    x = x if place == 1 else x.movedim(place, 1)
    return (x.mT.unsqueeze(0) if x.ndim == 2 and len(x) > _FEW_ROWS else x).contiguous()


def _normalize_in_place(
    x: torch.Tensor, place: int, offset: torch.Tensor | None, scale: torch.Tensor | None, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the results of batch normalisation in training without gradients, computed mostly in place.

    On a CPU it takes 0.5 to 0.75 of the time of the kernel and the subtraction before it, from 100,000 numbers on.
    """
    widened_x = x if x.dtype.itemsize > 2 else x.float()
    other_axes = [axis for axis in range(x.ndim) if axis != place]
    pilot_mean = (widened_x[:1] if place else widened_x[:, :1]).mean(other_axes, True)
    normalized_x = widened_x - pilot_mean
    remaining_mean = normalized_x.mean(other_axes, True)
    normalized_x -= remaining_mean
    variance = normalized_x.square().mean(other_axes, True)
    factor = torch.rsqrt(variance + epsilon)
    if scale is not None:
        factor *= scale.reshape(factor.shape)
    normalized_x *= factor
    if offset is not None:
        normalized_x += offset.reshape(factor.shape)
    return (
        normalized_x if widened_x is x else normalized_x.to(x.dtype),
        (pilot_mean + remaining_mean).reshape(-1),
        variance.reshape(-1),
    )


def _quick_layer_normalization(
    x: torch.Tensor, gamma: Any, beta: Any, _axis: int, epsilon: float | None, *, rms_scaling: bool
) -> torch.Tensor:
    """Returns a normalisation over the last axis; the kernel checks the shapes."""
    return torch.layer_norm(x, x.shape[-1:], gamma, beta, shared_normalization.EPSILON if epsilon is None else epsilon)


_PLAIN_LAYER = (
    "{3}.__class__ is int and {3} == -1 and {5} is False and ({4} is None or {4}.__class__ is float) "
    "and {0}.dtype.is_floating_point and ({1} is None or {1}.dtype is {0}.dtype) "
    "and ({2} is None or {2}.dtype is {0}.dtype) and {0}.ndim and (traced_by_torch() or mapped_by_torch() is None)"
)
"""When the kernel has all derivatives: see `is_nested_gradient`."""


class TorchNormalizationOps:
    """Holds the ops of `ops/neural/normalization.py`.

    PyTorch's kernels read each element once, and differentiate themselves: the bodies take 1.2 to 4.3 times as long,
    for few elements.
    """

    composed: Callable[[str], Callable[..., Any]]

    @fast(_quick_layer_normalization, _PLAIN_LAYER)
    def layer_normalization(
        self,
        x: torch.Tensor,
        gamma: torch.Tensor | None = None,
        beta: torch.Tensor | None = None,
        axis: Any = -1,
        epsilon: Any = None,
        *,
        rms_scaling: bool = False,
    ) -> torch.Tensor:
        last_shape = x.shape[-1:]
        is_supported = all(t is None or (t.dtype is x.dtype and t.shape == last_shape) for t in (gamma, beta))
        is_supported = is_supported and axis == -1 and not rms_scaling
        if (
            is_supported
            and (epsilon is None or is_number(epsilon))
            and last_shape
            and x.is_floating_point()
            and not is_nested_gradient(x)
        ):
            return functional.layer_norm(
                x, last_shape, gamma, beta, shared_normalization.EPSILON if epsilon is None else epsilon
            )
        composite_result: torch.Tensor = self.composed("layer_normalization")(
            x, gamma, beta, axis, epsilon, rms_scaling=rms_scaling
        )
        return composite_result

    def rms_normalization(
        self, x: torch.Tensor, scale: torch.Tensor | None = None, axis: Any = -1, epsilon: Any = None
    ) -> torch.Tensor:
        dtype = x.dtype
        is_supported = axis.__class__ is int and (dtype is torch.float32 or dtype is torch.float64)
        is_supported = (
            is_supported and (epsilon is None or is_number(epsilon)) and (scale is None or scale.dtype is dtype)
        )
        if not is_supported or not -x.ndim <= axis < x.ndim:
            composite_result: torch.Tensor = self.composed("rms_normalization")(x, scale, axis, epsilon)
            return composite_result
        mean_square = torch.mean(torch.square(x), axis, True)
        normalized_x = x * mean_square.add_(shared_normalization.EPSILON if epsilon is None else epsilon).rsqrt_()
        return normalized_x if scale is None else normalized_x * scale

    def batch_normalization_training(
        self,
        x: torch.Tensor,
        axis: int,
        offset: torch.Tensor | None = None,
        scale: torch.Tensor | None = None,
        epsilon: Any = 1e-3,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        channel_axis = shared_normalization.check_channels(x.shape, axis, scale, offset)
        dtype, channels = x.dtype, x.shape[channel_axis]
        wide_dtype = torch.float32 if dtype.itemsize == 2 else dtype
        is_supported = dtype.is_floating_point and all(
            t is None or t.dtype in (dtype, wide_dtype) for t in (scale, offset)
        )
        channel_size = x.numel() // (channels or 1)
        if not is_supported or channel_size < 2 or not is_number(epsilon) or epsilon <= 0:  # the kernel refuses 0
            outputs: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
            outputs = self.composed("batch_normalization_training")(x, axis, offset, scale, epsilon)
            return outputs
        present_tensors = [t for t in (x, scale, offset) if t is not None]
        if x.numel() >= _MANY and x.is_cpu and is_unwatched(*present_tensors):
            return _normalize_in_place(x, channel_axis, offset, scale, epsilon)
        rows = _move_channels_second(x if dtype is wide_dtype else x.to(wide_dtype), channel_axis)
        # The kernel (PyTorch 2.13) loses digits where the mean is large compared with the deviation. To subtract the
        # mean of one sample changes neither the result nor a gradient, and leaves a mean of at most sqrt(samples)
        # deviations.
        pilot_row = rows.detach()[:1]
        pilot_row = pilot_row if rows.ndim == 2 else pilot_row.mean(tuple(range(2, rows.ndim)), True)
        mean, variance = rows.new_zeros(channels), rows.new_zeros(channels)
        weight, bias = (None if t is None else t.to(wide_dtype) for t in (scale, offset))
        normalized_x = functional.batch_norm(rows - pilot_row, mean, variance, weight, bias, True, 1.0, epsilon)
        normalized_x = normalized_x[0].mT if x.ndim == 2 and normalized_x.ndim == 3 else normalized_x
        normalized_x = normalized_x if channel_axis == 1 else normalized_x.movedim(1, channel_axis)
        return (
            normalized_x if dtype is wide_dtype else normalized_x.to(dtype),
            mean + pilot_row.reshape(channels),
            variance * ((channel_size - 1) / channel_size),
        )

    def group_normalization(
        self,
        x: torch.Tensor,
        groups: int,
        scale: torch.Tensor | None = None,
        offset: torch.Tensor | None = None,
        axis: int = -1,
        epsilon: Any = 1e-3,
    ) -> torch.Tensor:
        channel_axis = shared_normalization.check_groups(x.shape, groups, axis, scale, offset)
        is_supported = all(t is None or t.dtype is x.dtype for t in (scale, offset)) and is_number(epsilon)
        # The second derivative of the kernel (PyTorch 2.13) fails for an offset without a scale.
        is_supported = is_supported and (scale is not None or offset is None)
        if is_supported and x.is_floating_point() and x.numel() and not is_nested_gradient(x):
            # The kernel's second derivative also fails for tensors that are not contiguous.
            # functional.group_norm refuses groups of one element.
            rows = x.movedim(channel_axis, 1).contiguous()
            normalized_rows = torch.group_norm(rows, groups, scale, offset, epsilon, torch.backends.cudnn.enabled)
            return normalized_rows.movedim(1, channel_axis)
        composite_result: torch.Tensor = self.composed("group_normalization")(x, groups, scale, offset, axis, epsilon)
        return composite_result
