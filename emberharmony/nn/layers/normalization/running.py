"""Batch and instance normalisation, layers that may keep running means and variances."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import spatial
from emberharmony.nn.lazy import UninitializedParameter
from emberharmony.nn.locate import fault
from emberharmony.nn.options import length_option, number_option
from emberharmony.ops.dtype import widen
from emberharmony.types import Tensor, TensorLike


class _Running(spatial.Spatial):
    """The base of layers that normalise each channel, and may keep running statistics for use after training."""

    def __init__(
        self,
        num_features: int | None,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        bias: bool,
        data_format: spatial.DataFormat,
        dtype: DTypeLike | None,
    ) -> None:
        self.num_features = None if num_features is None else length_option("num_features", num_features)
        self.eps, self.momentum = (
            number_option("eps", eps),
            None if momentum is None else number_option("momentum", momentum),
        )
        self.affine, self.track_running_stats = affine, track_running_stats
        self.data_format = spatial.checked_data_format(data_format)
        self._initialize(bias, dtype)

    def _initialize(self, bias: bool, dtype: DTypeLike | None) -> None:
        def full_cell(value: float, kind: type[Any], is_wanted: bool = True) -> Any:
            if not is_wanted:
                return None
            if self.num_features is None:
                return UninitializedParameter(self)
            return kind(ops.full((self.num_features,), value, dtype))

        is_tracked = self.track_running_stats
        self.weight: Parameter | None = full_cell(1.0, Parameter, self.affine)
        self.bias: Parameter | None = full_cell(0.0, Parameter, self.affine and bias)
        self.running_mean: Buffer | None = full_cell(0.0, Buffer, is_tracked)
        self.running_var: Buffer | None = full_cell(1.0, Buffer, is_tracked)
        self.num_batches_tracked = Buffer(ops.zeros((), "int64")) if is_tracked else None
        if self.num_features is None:
            self._build = (bias, dtype)

    def build(self, shape: tuple[int, ...]) -> None:
        """Makes the parameters for an input of a shape, if there are none yet."""
        if self.num_features is None:
            is_single = len(shape) == self.axes + 1 and isinstance(self, _InstanceNorm)
            self.num_features = shape[-1 if self.data_format == "channels_last" else 0 if is_single else 1]
            self._initialize(*vars(self).pop("_build"))

    def _find_channel_axis(self, x: Tensor) -> int:
        """Returns the channel axis of a batch after a check of the number of channels.

        Raises:
            ShapeError: if their number is wrong.
        """
        channel_axis = 1 if self.data_format == "channels_first" else len(x.shape) - 1
        if x.shape[channel_axis] != self.num_features:
            message = f"expected {self.num_features} channels on axis {channel_axis}, got shape {tuple(x.shape)}"
            hint = f"make the layer with num_features={x.shape[channel_axis]}"
            source_axes = [axis for axis, length in enumerate(x.shape) if axis and length == self.num_features]
            if source_axes:
                hint = (
                    "the channels are on another axis: "
                    f"ops.moveaxis(x, {source_axes[-1]}, {channel_axis}); or else {hint}"
                )
            raise fault(ShapeError(f"{message}; {hint}"))
        return channel_axis

    def _normalize_by_running_statistics(self, x: Tensor, axis: int) -> Tensor:
        """Returns the input normalised by the running statistics."""
        mean: Any = self.running_mean
        variance: Any = self.running_var
        return ops.batch_normalization(x, mean, variance, axis, self.bias, self.weight, self.eps)

    def _normalize_by_own_statistics(
        self, x: Tensor, reduced_axes: Sequence[int], axis: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the input normalised by its own mean and variance over axes, the mean and the variance."""
        widened_x = widen(x)
        mean = ops.mean(widened_x, reduced_axes, True)
        centred = ops.subtract(widened_x, mean)
        variance = ops.mean(ops.square(centred), reduced_axes, True)
        scale = ops.rsqrt(ops.add(variance, self.eps))
        channel_shape = [1] * len(x.shape)
        channel_shape[axis] = x.shape[axis]
        if self.weight is not None:
            scale = ops.multiply(scale, ops.reshape(self.weight, channel_shape))
        normalized_x = ops.multiply(centred, scale)
        if self.bias is not None:
            normalized_x = ops.add(normalized_x, ops.reshape(self.bias, channel_shape))
        return normalized_x if widened_x is x else ops.cast(normalized_x, ops.result_type(x, 0.0)), mean, variance

    def _update_running_statistic(self, running: Buffer, statistic: Tensor, share: Any) -> None:
        """Moves a running statistic towards the statistic of a batch by a share of their difference."""
        old_value = running.value
        new_value = ops.add(old_value, ops.multiply(ops.subtract(ops.stop_gradient(statistic), old_value), share))
        running.value = new_value if new_value.dtype == old_value.dtype else ops.cast(new_value, old_value.dtype)


class _BatchNorm(_Running):
    """The base of `BatchNorm1d`, `BatchNorm2d` and `BatchNorm3d`.

    Args:
        num_features: the number of channels; None if `nn.build` shall find it.
        eps: added to the variance.
        momentum: the share of the batch in the running statistics; None makes them the means over all batches.
        affine: whether there are a weight and a bias.
        track_running_stats: whether there are running statistics.
        bias: whether there is a bias, if `affine` is True.
        data_format: `"channels_last"` if the channels are the last axis.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight, bias: (num_features,), or None.
        running_mean, running_var: (num_features,), or None; the variance is that with the divisor n - 1.
        num_batches_tracked: the number of batches in the running statistics, or None.

    Raises:
        ArgumentError: if `num_features` is not positive.
        ShapeError: from the call, if the shape of the input does not fit, or if there is only one value for each
            channel in training.
    """

    def __init__(
        self,
        num_features: int | None,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        data_format: spatial.DataFormat = "channels_first",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias, data_format, dtype)

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        rank = len(x.shape)
        if rank != self.axes + 2 and (rank != 2 or self.axes != 1):
            ranks_text = "2 or 3" if self.axes == 1 else str(self.axes + 2)
            hint = "; ops.expand_dims(x, 0) makes a batch of one sample" if rank == self.axes + 1 or rank == 1 else ""
            raise fault(ShapeError(f"expected a batch of {ranks_text} axes, got shape {tuple(x.shape)}{hint}"))
        channel_axis = self._find_channel_axis(x)
        if not self.training and self.running_mean is not None:
            return self._normalize_by_running_statistics(x, channel_axis)
        value_count = math.prod(x.shape) // x.shape[channel_axis]
        if value_count < 2:
            raise fault(
                ShapeError(
                    f"expected more than one value for each channel in training, got shape {tuple(x.shape)}; use a "
                    f"larger batch, or eval()"
                )
            )
        bias: Any = self.bias
        weight: Any = self.weight
        normalized_x, mean, variance = ops.batch_normalization_training(x, channel_axis, bias, weight, self.eps)
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked.value = ops.add(self.num_batches_tracked, 1)
            update_share: Any = self.momentum
            if update_share is None:
                update_share = ops.divide(1.0, ops.cast(self.num_batches_tracked, mean.dtype))
            self._update_running_statistic(self.running_mean, mean, update_share)
            self._update_running_statistic(
                self.running_var, ops.multiply(variance, value_count / (value_count - 1)), update_share
            )
        return normalized_x


class BatchNorm1d(_BatchNorm, axes=1):
    """Scales each channel to mean 0 and variance 1 over a batch, times `weight` plus `bias`.

    In training the statistics are those of the batch, and the running ones move towards them; after `eval` the running
    ones are used. Without running ones, those of the batch always are.

    Shape: (batch, channels) or (batch, channels, length), or with the channels last, to the same.

    Example:
        >>> layer = nn.BatchNorm1d(1, eps=0.0)
        >>> layer([[1.0], [3.0]]).tolist()
        [[-1.0], [1.0]]
        >>> round(float(layer.running_mean[0]), 6), int(layer.num_batches_tracked)
        (0.2, 1)

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """


class BatchNorm2d(_BatchNorm, axes=2):
    """Scales each channel of images to mean 0 and variance 1 over a batch; see `BatchNorm1d`.

    Shape: (batch, channels, height, width), or with the channels last, to the same.

    Example:
        >>> nn.BatchNorm2d(1, eps=0.0)([[[[1.0, 3.0]]]]).tolist()
        [[[[-1.0, 1.0]]]]
    """


class BatchNorm3d(_BatchNorm, axes=3):
    """Scales each channel of volumes to mean 0 and variance 1 over a batch; see `BatchNorm1d`.

    Shape: (batch, channels, depth, height, width), or with the channels last, to the same.

    Example:
        >>> nn.BatchNorm3d(1, eps=0.0)([[[[[1.0, 3.0]]]]]).tolist()
        [[[[[-1.0, 1.0]]]]]
    """


class _InstanceNorm(_Running):
    """The base of `InstanceNorm1d`, `InstanceNorm2d` and `InstanceNorm3d`.

    Args:
        num_features: the number of channels; None if `nn.build` shall find it.
        eps: added to the variance.
        momentum: the share of a batch in the running statistics.
        affine: whether there are a weight and a bias.
        track_running_stats: whether there are running statistics, which are used after `eval`.
        bias: whether there is a bias, if `affine` is True.
        data_format: `"channels_last"` if the channels are the last axis.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight, bias: (num_features,), or None.
        running_mean, running_var: (num_features,), or None.
        num_batches_tracked: 0, or None; PyTorch has it in the state dict, but does not count.

    Raises:
        ArgumentError: if `num_features` is not positive.
        ShapeError: from the call, if the shape of the input does not fit, or if there is only one value for each sample
            and channel.
    """

    def __init__(
        self,
        num_features: int | None,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        data_format: spatial.DataFormat = "channels_first",
        dtype: DTypeLike | None = None,
    ) -> None:
        momentum = number_option("momentum", momentum)
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias, data_format, dtype)

    def __call__(self, x: TensorLike) -> Tensor:
        output: Tensor = spatial.apply_to_batch(self._normalize_batch, x, self.axes)
        return output

    def _normalize_batch(self, x: Tensor) -> Tensor:
        channel_axis = self._find_channel_axis(x)
        if not self.training and self.running_mean is not None:
            return self._normalize_by_running_statistics(x, channel_axis)
        spatial_axes = [a for a in range(1, len(x.shape)) if a != channel_axis]
        value_count = math.prod(x.shape[a] for a in spatial_axes)
        if value_count < 2:
            raise fault(
                ShapeError(f"expected more than one value for each sample and channel, got shape {tuple(x.shape)}")
            )
        if self.running_mean is None:
            return ops.group_normalization(x, x.shape[channel_axis], self.weight, self.bias, channel_axis, self.eps)
        normalized_x, mean, variance = self._normalize_by_own_statistics(x, spatial_axes, channel_axis)
        sample_channel_shape = (-1, x.shape[channel_axis])
        mean, variance = ops.stop_gradient(mean), ops.stop_gradient(variance)
        self._update_running_statistic(
            self.running_mean, ops.mean(ops.reshape(mean, sample_channel_shape), 0), self.momentum
        )
        if self.running_var is not None:
            unbiased_variance = ops.multiply(
                ops.mean(ops.reshape(variance, sample_channel_shape), 0), value_count / (value_count - 1)
            )
            self._update_running_statistic(self.running_var, unbiased_variance, self.momentum)
        return normalized_x


class InstanceNorm1d(_InstanceNorm, axes=1):
    """Scales each channel of each sample to mean 0 and variance 1, times `weight` plus `bias`.

    Shape: (batch, channels, length), without the batch, or with the channels last, to the same.

    Example:
        >>> nn.InstanceNorm1d(2, eps=0.0)([[[1.0, 3.0], [4.0, 8.0]]]).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]

    Source: Ulyanov et al., Instance normalization, 2016.
    """


class InstanceNorm2d(_InstanceNorm, axes=2):
    """Scales each channel of each image to mean 0 and variance 1; see `InstanceNorm1d`.

    Shape: (batch, channels, height, width), without the batch, or with the channels last, to the same.

    Example:
        >>> nn.InstanceNorm2d(1, eps=0.0)([[[1.0, 3.0]]]).tolist()
        [[[-1.0, 1.0]]]
    """


class InstanceNorm3d(_InstanceNorm, axes=3):
    """Scales each channel of each volume to mean 0 and variance 1; see `InstanceNorm1d`.

    Shape: (batch, channels, depth, height, width), without the batch, or with the channels last, to the same.

    Example:
        >>> nn.InstanceNorm3d(1, eps=0.0)([[[[1.0, 3.0]]]]).tolist()
        [[[[-1.0, 1.0]]]]
    """
