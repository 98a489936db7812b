"""Normalisation operators of ATen, computed by ops."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten


def _last_axes(shape: Sequence[int]) -> int | tuple[int, ...]:
    return -1 if len(shape) == 1 else tuple(range(-len(shape), 0))


@aten("layer_norm")
def layer_norm(
    x: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Returns a tensor normalised along its last axes."""
    return ops.layer_normalization(x, weight, bias, _last_axes(normalized_shape), eps)


@aten("native_layer_norm")
def native_layer_norm(x: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """Returns a tensor normalised along its last axes, the means, and one over the standard deviations."""
    dims = tuple(range(-len(normalized_shape), 0))
    mean = ops.mean(x, dims, True)
    inverse_deviation = ops.rsqrt(ops.add(ops.var(x, dims, True), eps))
    return layer_norm(x, normalized_shape, weight, bias, eps), mean, inverse_deviation


@aten("rms_norm", "_fused_rms_norm")
def rms_norm(x: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """Returns a tensor divided by its root mean squares along its last axes."""
    epsilon = float(ops.finfo(ops.dtype(x)).eps) if eps is None else eps
    return ops.rms_normalization(x, weight, _last_axes(normalized_shape), epsilon)


@aten("group_norm")
def group_norm(
    x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Any:
    """Returns a tensor normalised in groups of its channels."""
    return ops.group_normalization(x, num_groups, weight, bias, 1, eps)


@aten("native_group_norm")
def native_group_norm(
    x: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Any, Any, Any]:
    """Returns a tensor normalised in groups of its channels, the means, and one over the standard deviations."""
    grouped_x = ops.reshape(x, (N, group, C // group * HxW))
    mean = ops.mean(grouped_x, -1)
    inverse_deviation = ops.rsqrt(ops.add(ops.var(grouped_x, -1), eps))
    return ops.group_normalization(x, group, weight, bias, 1, eps), mean, inverse_deviation


@aten("_native_batch_norm_legit_no_training")
def batch_norm_by_statistics(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """Returns a tensor normalised by given means and variances of its channels, and two empty tensors, as PyTorch."""
    empty_tensor = ops.zeros((0,), ops.dtype(x))
    return ops.batch_normalization(x, running_mean, running_var, 1, bias, weight, eps), empty_tensor, empty_tensor


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """Returns a tensor whose channels are normalised, their means, and one over their standard deviations."""
    y, mean, variance = ops.batch_normalization_training(x, 1, bias, weight, eps)
    return y, mean, ops.rsqrt(ops.add(variance, eps))


@aten("_native_batch_norm_legit_functional")
def batch_norm_functional(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    """Returns the results of batch normalisation, and the updated running means and unbiased variances."""
    if not training:
        normalized_x = batch_norm_by_statistics(x, weight, bias, running_mean, running_var, momentum, eps)
        return (*normalized_x, running_mean, running_var)
    y, mean, variance = ops.batch_normalization_training(x, 1, bias, weight, eps)
    element_count = math.prod(x.shape) // x.shape[1]
    unbiased_variance = ops.multiply(variance, element_count / max(element_count - 1, 1))
    return (
        y,
        mean,
        ops.rsqrt(ops.add(variance, eps)),
        _moving_average(running_mean, mean, momentum),
        _moving_average(running_var, unbiased_variance, momentum),
    )


def _moving_average(old: Any, new: Any, momentum: float) -> Any:
    return ops.add(ops.multiply(old, 1 - momentum), ops.multiply(ops.stop_gradient(new), momentum))


@aten("instance_norm")
def instance_norm(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Any:
    """Returns a tensor of which each channel of each sample is normalised."""
    if not use_input_stats:
        return ops.batch_normalization(x, running_mean, running_var, 1, bias, weight, eps)
    return ops.group_normalization(x, x.shape[1], weight, bias, 1, eps)


@aten("_weight_norm", "_weight_norm_interface")
def weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """Returns the weight of weight normalisation: the slices of `v` scaled to the norms `g`."""
    other_axes = tuple(axis for axis in range(len(v.shape)) if dim == -1 or axis != dim % len(v.shape))
    norms = ops.sqrt(ops.sum(ops.square(v), other_axes, True))
    return ops.multiply(v, ops.divide(g, norms))
