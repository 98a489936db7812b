"""Normalisation: scaling `x` to mean 0 and variance 1, by its own statistics or given ones.

Dtype: integers become the default float.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.types import Axis, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.shape import moveaxis, reshape
from emberharmony.ops.dtype import cast_option, narrow_like, to_inexact, widen
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.math import add, divide, multiply, power, rsqrt, square, subtract
from emberharmony.ops.neural.pooling import average_pool
from emberharmony.ops.reductions.reduction import mean

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import convolution as shared_convolution
    from emberharmony.backend.shared.neural import normalization as shared
else:
    shared = Deferred("emberharmony.backend.shared.neural.normalization")
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")


@op(autocast="float32")
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axis = -1,
    epsilon: Varying | None = None,
    *,
    rms_scaling: bool = False,
) -> Tensor:
    """Returns `x` scaled to mean 0 and variance 1 over axes, times `gamma` plus `beta`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        gamma: a factor that broadcasts to `x`; a tensor that has the lengths of the axes `axis` alone belongs to these
            axes. None multiplies nothing.
        beta: a summand in the same forms as `gamma`; None adds nothing.
        epsilon: added to the variance, with its axes kept at length 1; None is 1e-7.
        rms_scaling: whether to divide `x` by its standard deviation without subtracting the mean, and to ignore `beta`.
            Keras has this option but advises against it; `rms_normalization` divides by the root mean square.

    See also: `nn.LayerNorm`, the layer; `rms_normalization`, without the mean; `group_normalization`, by groups.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """
    widened_x = widen(x)
    centred_x = subtract(widened_x, mean(widened_x, axis, True))
    epsilon_option = shared.EPSILON if epsilon is None else cast_option("epsilon", epsilon, widened_x)
    inverse_deviation = rsqrt(add(mean(square(centred_x), axis, True), epsilon_option))
    scaled_x = narrow_like(multiply(widened_x if rms_scaling else centred_x, inverse_deviation), x)
    scaled_x = scaled_x if gamma is None else multiply(scaled_x, align_weight(gamma, axis, x))
    return scaled_x if beta is None or rms_scaling else add(scaled_x, align_weight(beta, axis, x))


@op(autocast="float32")
def rms_normalization(
    x: TensorLike, scale: TensorLike | None = None, axis: Axis = -1, epsilon: Varying | None = None
) -> Tensor:
    """Returns `x` divided by its root mean square over axes, times `scale`.

    Args:
        x: a tensor of any shape and dtype; integers become the default float.
        scale: a factor that broadcasts to `x`; None multiplies nothing.
        epsilon: added to the mean square; None is 1e-7.

    See also: `nn.RMSNorm`, the layer; `layer_normalization`, with the mean.

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
    widened_x = widen(x)
    epsilon_option = shared.EPSILON if epsilon is None else cast_option("epsilon", epsilon, widened_x)
    scaled_x = narrow_like(multiply(widened_x, rsqrt(add(mean(square(widened_x), axis, True), epsilon_option))), x)
    return scaled_x if scale is None else multiply(scaled_x, scale)


@op(autocast="float32")
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: Varying = 1e-3,
) -> Tensor:
    """Returns `(x - mean) / sqrt(variance + epsilon) * scale + offset`, with statistics for each index of an axis.

    Args:
        x: a tensor of any shape, with C channels along `axis`; integers become the default float.
        mean: (C,): the mean of each channel.
        variance: (C,): the variance of each channel.
        axis: the axis of the channels, from -ndim to ndim - 1.
        offset: (C,), which is added at the end; None adds nothing.
        scale: (C,), the last factor; None multiplies nothing.

    See also: `nn.BatchNorm2d`, the layer; `batch_normalization_training`, with statistics of the batch.

    Example:
        >>> ops.batch_normalization([[3.0, 5.0]], [1.0, 1.0], [4.0, 16.0], -1, epsilon=0.0).tolist()
        [[1.0, 1.0]]

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """
    broadcast_shape = [1] * x.ndim
    broadcast_shape[axis] = x.shape[axis]
    inverse_deviation = rsqrt(add(reshape(variance, broadcast_shape), cast_option("epsilon", epsilon, variance)))
    inverse_deviation = (
        inverse_deviation if scale is None else multiply(inverse_deviation, reshape(scale, broadcast_shape))
    )
    scaled_x = multiply(subtract(to_inexact(x), reshape(mean, broadcast_shape)), inverse_deviation)
    return scaled_x if offset is None else add(scaled_x, reshape(offset, broadcast_shape))


@op(autocast="float32")
def batch_normalization_training(
    x: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: Varying = 1e-3,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns `x` with each index of an axis scaled to mean 0 and variance 1, and these means and variances.

    The first result is `(x - mean) / sqrt(variance + epsilon) * scale + offset`, where the statistics are those of `x`
    over all other axes. They are returned for running statistics, so their gradient is zero; that of the first result
    counts how `x` changes them.

    Args:
        x: a tensor of any shape, with C channels along `axis`; integers become the default float.
        axis: the axis of the channels, whose number is C.
        offset: (C,), which is added at the end; None adds nothing.
        scale: (C,), the last factor; None multiplies nothing.

    Returns:
        The tensor, the mean of each channel (C,), and its variance (C,) with the divisor n. Those of half precision are
        float32.

    Raises:
        ShapeError: if `offset` or `scale` is not a vector of C numbers.

    See also: `nn.BatchNorm2d`, the layer; `batch_normalization`, with given statistics.

    Example:
        >>> result, mean, variance = ops.batch_normalization_training([[1.0], [3.0]], -1, epsilon=0.0)
        >>> result.tolist(), mean.tolist(), variance.tolist()
        ([[-1.0], [1.0]], [2.0], [1.0])

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """
    channel_axis = shared.check_channels(x.shape, axis, scale, offset)
    widened_x = widen(x)
    other_axes = [a for a in range(len(x.shape)) if a != channel_axis]
    batch_mean = mean(widened_x, other_axes, True)
    centred_x = subtract(widened_x, batch_mean)
    variance = mean(square(centred_x), other_axes, True)
    statistics_shape = batch_mean.shape
    inverse_deviation = rsqrt(add(variance, cast_option("epsilon", epsilon, widened_x)))
    inverse_deviation = (
        inverse_deviation if scale is None else multiply(inverse_deviation, reshape(scale, statistics_shape))
    )
    scaled_x = multiply(centred_x, inverse_deviation)
    scaled_x = narrow_like(scaled_x if offset is None else add(scaled_x, reshape(offset, statistics_shape)), x)
    return scaled_x, stop_gradient(reshape(batch_mean, (-1,))), stop_gradient(reshape(variance, (-1,)))


@op(autocast="float32")
def group_normalization(
    x: TensorLike,
    groups: int,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: Varying = 1e-3,
) -> Tensor:
    """Returns `x` with each group of channels scaled to mean 0 and variance 1, times `scale` plus `offset`.

    The statistics are those of one sample, over the channels of a group and all other axes. With one group for each
    channel this is instance normalisation; with a single group all axes but the first are normalised together.

    Args:
        x: a tensor whose first axis has the samples; integers become the default float.
        groups: the number of groups, which divides the number of channels.
        scale: one factor for each channel; None multiplies nothing.
        offset: one summand for each channel; None adds nothing.
        axis: the axis of the channels. The first axis is that of the samples.

    Raises:
        ArgumentError: if `groups` is not a positive integer, or if `axis` is the first axis.
        ShapeError: if `groups` does not divide the channels, or if `scale` or `offset` is not a vector of their number.

    See also: `nn.GroupNorm`, the layer; `layer_normalization`, over axes.

    Example:
        >>> ops.group_normalization([[1.0, 3.0, 10.0, 30.0]], 2, epsilon=0.0).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]

    Source: Wu and He, Group normalization, 2018.
    """
    channel_axis = shared.check_groups(x.shape, groups, axis, scale, offset)
    shape = tuple(x.shape)
    grouped_x = reshape(
        widen(x), (*shape[:channel_axis], groups, shape[channel_axis] // groups, *shape[channel_axis + 1 :])
    )
    group_axes = [a for a in range(1, len(shape) + 1) if a != channel_axis]
    centred_x = subtract(grouped_x, mean(grouped_x, group_axes, True))
    variance = mean(square(centred_x), group_axes, True)
    scaled_x = multiply(centred_x, rsqrt(add(variance, cast_option("epsilon", epsilon, grouped_x))))
    scaled_x = narrow_like(reshape(scaled_x, shape), x)
    channel_shape = [n if a == channel_axis else 1 for a, n in enumerate(shape)]
    scaled_x = scaled_x if scale is None else multiply(scaled_x, reshape(scale, channel_shape))
    return scaled_x if offset is None else add(scaled_x, reshape(offset, channel_shape))


@op(autocast="float32")
def local_response_normalization(
    x: TensorLike,
    size: int,
    alpha: Varying = 1e-4,
    beta: Varying = 0.75,
    k: Varying = 1.0,
    axis: int = -1,
) -> Tensor:
    """Returns `x / (k + alpha * m) ** beta`, where `m` is the mean of the squares of `size` neighbouring channels.

    The neighbours of channel i are those from `i - size // 2` to `i + (size - 1) // 2`, with zeros beyond the ends.

    Args:
        x: a tensor with at least one axis; integers become the default float.
        size: the number of neighbouring channels of a mean, with the channel itself.
        alpha: the factor of the mean of the squares.
        beta: the exponent of the divisor.
        k: the base of the divisor where all channels are 0.
        axis: the axis of the channels, from -ndim to ndim - 1; by default the last.

    Raises:
        ArgumentError: if `size` is not a positive integer.

    See also: `nn.LocalResponseNorm`, the layer.

    Example:
        >>> ops.local_response_normalization([[1.0, 2.0]], 1, 1.0, 1.0, 1.0).tolist()
        [[0.5, 0.4000000059604645]]

    Source: Krizhevsky et al., ImageNet classification with deep convolutional neural networks, 2012, with the mean in
    place of the sum, as in `torch.nn.LocalResponseNorm`.
    """
    (axis_index,) = nonnegative_axes(axis, len(x.shape))
    (width,) = shared_convolution.integers_per_axis(size, 1, "size")
    widened_x = widen(x)
    if not math.prod(widened_x.shape):
        return narrow_like(widened_x, x)
    squares = moveaxis(square(widened_x), axis_index, -1)
    squares_as_rows = reshape(squares, (math.prod(squares.shape[:-1]), squares.shape[-1], 1))
    # A window longer than twice the channels holds all of them, like a shorter one; its length divides their sum.
    window_width = min(width, 2 * squares.shape[-1] + 1)
    zero_padding = [(window_width // 2, (window_width - 1) // 2)]
    sums_in_rows = average_pool(
        squares_as_rows, window_width, 1, zero_padding, count_include_pad=True, divisor_override=width
    )
    window_sums = moveaxis(reshape(sums_in_rows, squares.shape), -1, axis_index)
    divisor_base = add(multiply(window_sums, cast_option("alpha", alpha, widened_x)), cast_option("k", k, widened_x))
    return narrow_like(divide(widened_x, power(divisor_base, cast_option("beta", beta, widened_x))), x)


def align_weight(weight: Tensor, axis: Axis, x: Tensor) -> Tensor:
    """Returns a weight that has the lengths of the axes `axis` of `x` alone, with the other axes added."""
    rank = len(x.shape)
    positive_axes = sorted(nonnegative_axes(axis, rank))
    # A gradient rule gets a number, or a weight that broadcasts already, as the caller gave it.
    if (
        isinstance(weight, (int, float, complex))
        or len(weight.shape) == rank
        or tuple(weight.shape) != tuple(x.shape[positive_axis] for positive_axis in positive_axes)
    ):
        return weight
    return reshape(weight, [x.shape[axis_index] if axis_index in positive_axes else 1 for axis_index in range(rank)])
