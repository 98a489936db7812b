"""Dropout layers and other layers that add random noise to their input in training."""

import math
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.nn import rngs, spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import number_option, share_option
from emberharmony.types import Tensor, TensorLike


class _Noise(Module):
    """The base of noise layers: in training the input is changed at random, after `eval` it is returned unchanged.

    Attributes:
        rng: draws the random numbers.
    """

    rng: "rngs.Generator"

    def __call__(self, x: TensorLike) -> Tensor:
        return self._perturb(spatial.to_tensor(x)) if self.training else spatial.to_tensor(x)

    def _perturb(self, x: Tensor) -> Tensor:
        """Returns the input changed at random; subclasses define it."""
        raise NotImplementedError


class _Dropout(_Noise):
    """The base of the layers with the constructor of `torch.nn.Dropout`."""

    def __init__(self, p: float = 0.5, *, rng: "rngs.Generator | rngs.Rngs | None" = None) -> None:
        self.p = share_option("p", p)
        self.rng = rngs.generator(rng, "dropout")


class Dropout(_Dropout):
    """Sets each element to 0 with probability p in training, and divides the others by 1 - p; see `ops.random.dropout`.

    Shape: that of the input.

    Args:
        rng: draws the mask; an `nn.Rngs` gives its stream `dropout`.
        p: the probability that an element is set to 0, from 0 to 1.

    Raises:
        ArgumentError: if `p` is not from 0 to 1.

    Example:
        >>> layer = nn.Dropout(0.5)
        >>> sorted(set(layer(ops.ones(100)).tolist()))
        [0.0, 2.0]
        >>> layer.eval()([1.0, 2.0]).tolist()
        [1.0, 2.0]

    Source: Srivastava et al., Dropout, 2014.
    """

    def _perturb(self, x: Tensor) -> Tensor:
        return ops.random.dropout(x, self.p, generator=self.rng) if self.p else x


class _ChannelDropout(_Noise, spatial.Spatial):
    """The base of the layers that drop whole channels.

    Args:
        p: the probability that a channel is set to 0, from 0 to 1.
        data_format: `"channels_last"` if the channels are the last axis.
        rng: draws the mask; an `nn.Rngs` gives its stream `dropout`.

    Raises:
        ArgumentError: if `p` is not from 0 to 1.
        ShapeError: from the call in training, if the input has another number of axes.
    """

    single: bool = True
    """Whether an input of the layer may lack the batch axis."""

    def __init__(
        self,
        p: float = 0.5,
        *,
        data_format: spatial.DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
    ) -> None:
        self.p = share_option("p", p)
        self.data_format = spatial.checked_data_format(data_format)
        self.rng = rngs.generator(rng, "dropout")

    def _perturb(self, x: Tensor) -> Tensor:
        input_shape, rank = tuple(x.shape), len(x.shape)
        if rank not in (self.axes + 1, self.axes + 2):
            raise fault(
                ShapeError(
                    f"expected {self.axes + 2} axes, or {self.axes + 1} without the batch, got shape {input_shape}"
                )
            )
        batch_shape = input_shape[:1] if rank == self.axes + 2 or not self.single else ()
        trailing_ones = (1,) * (rank - len(batch_shape) - 1)
        channel_count = input_shape[len(batch_shape)] if self.data_format == "channels_first" else input_shape[-1]
        mask_shape = (
            (*batch_shape, channel_count, *trailing_ones)
            if self.data_format == "channels_first"
            else (*batch_shape, *trailing_ones, channel_count)
        )
        return ops.random.dropout(x, self.p, mask_shape, generator=self.rng)


class Dropout1d(_ChannelDropout, axes=1):
    """Sets whole channels to 0 with probability p in training, and divides the others by 1 - p.

    Shape: (batch, channels, length), without the batch, or with the channels last, to the same.

    Example:
        >>> channels = nn.Dropout1d(0.5)(ops.ones((100, 2))).tolist()
        >>> sorted(set(map(tuple, channels)))
        [(0.0, 0.0), (2.0, 2.0)]

    Source: Tompson et al., Efficient object localization using convolutional networks, 2015.
    """


class Dropout2d(_ChannelDropout, axes=2):
    """Sets whole channels of images to 0 with probability p in training, and divides the others by 1 - p.

    Shape: (batch, channels, height, width), or with the channels last, to the same. An input of three axes is (batch,
    channels, length), as in PyTorch.

    Example:
        >>> channels = ops.reshape(nn.Dropout2d(0.5)(ops.ones((10, 10, 1, 2))), (100, 2)).tolist()
        >>> sorted(set(map(tuple, channels)))
        [(0.0, 0.0), (2.0, 2.0)]
    """

    single = False


class Dropout3d(_ChannelDropout, axes=3):
    """Sets whole channels of volumes to 0 with probability p in training, and divides the others by 1 - p.

    Shape: (batch, channels, depth, height, width), without the batch, or with the channels last, to the same.

    Example:
        >>> channels = ops.reshape(nn.Dropout3d(0.5)(ops.ones((100, 1, 1, 2))), (100, 2)).tolist()
        >>> sorted(set(map(tuple, channels)))
        [(0.0, 0.0), (2.0, 2.0)]
    """


_LOWEST = -1.0507009873554805 * 1.6732632423543772
"""The limit of `selu` at minus infinity, to which alpha dropout sets dropped elements."""


def _keep_mask(x: Tensor, p: float, shape: tuple[int, ...], rng: "rngs.Generator") -> Tensor:
    """Returns a random boolean mask of a shape, which is False with probability p, on the device of a tensor."""
    return ops.less(ops.to_device(ops.random.uniform(shape, generator=rng), ops.get_device(x)), 1.0 - p)


def _alpha_dropout(x: Tensor, p: float, shape: tuple[int, ...], rng: "rngs.Generator") -> Tensor:
    """Returns the input after alpha dropout with a random mask, whose shape broadcasts to the input's."""
    if p == 1.0:
        return ops.multiply(x, 0.0)
    x = ops.add(x, 0.0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LOWEST**2))
    return ops.multiply(ops.subtract(ops.where(_keep_mask(x, p, shape, rng), x, _LOWEST), p * _LOWEST), scale)


class AlphaDropout(_Dropout):
    """Sets each element to the lowest value of `SELU` with probability p in training, and rescales all.

    The mean 0 and the variance 1 of the input are preserved. With p = 1 all elements become 0, as in PyTorch.

    Shape: that of the input.

    Args:
        rng: draws the mask; an `nn.Rngs` gives its stream `dropout`.
        p: the probability that an element is dropped, from 0 to 1.

    Raises:
        ArgumentError: if `p` is not from 0 to 1.

    Example:
        >>> nn.AlphaDropout(0.5).eval()([1.0, 2.0]).tolist()
        [1.0, 2.0]

    Source: Klambauer et al., Self-normalizing neural networks, 2017.
    """

    def _perturb(self, x: Tensor) -> Tensor:
        return _alpha_dropout(x, self.p, tuple(x.shape), self.rng)


class FeatureAlphaDropout(_Dropout):
    """Sets whole channels to the lowest value of `SELU` with probability p in training, and rescales all.

    Shape: (batch, channels, ...), or with the channels last, to the same.

    Args:
        p: the probability that a channel is dropped, from 0 to 1.
        data_format: `"channels_last"` if the channels are the last axis.
        rng: draws the mask; an `nn.Rngs` gives its stream `dropout`.

    Raises:
        ArgumentError: if `p` is not from 0 to 1.
        ShapeError: from the call in training, if the input has fewer than two axes.

    Example:
        >>> nn.FeatureAlphaDropout(0.5).eval()([[1.0, 2.0]]).tolist()
        [[1.0, 2.0]]
    """

    def __init__(
        self,
        p: float = 0.5,
        *,
        data_format: spatial.DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
    ) -> None:
        super().__init__(p, rng=rng)
        self.data_format = spatial.checked_data_format(data_format)

    def _perturb(self, x: Tensor) -> Tensor:
        input_shape = tuple(x.shape)
        if len(input_shape) < 2:
            raise fault(ShapeError(f"expected a batch with channels, got shape {input_shape}"))
        trailing_ones = (1,) * (len(input_shape) - 2)
        is_channels_first = self.data_format == "channels_first"
        mask_shape = (
            (*input_shape[:2], *trailing_ones)
            if is_channels_first
            else (input_shape[0], *trailing_ones, input_shape[-1])
        )
        return _alpha_dropout(x, self.p, mask_shape, self.rng)


class GaussianDropout(_Noise):
    """Multiplies each element in training by a normal number of mean 1 and variance rate / (1 - rate).

    Shape: that of the input.

    Args:
        rate: as of `Dropout`, which has the same variance; from 0 to less than 1.
        rng: draws the numbers; an `nn.Rngs` gives its stream `dropout`.

    Raises:
        ArgumentError: if `rate` is not from 0 to less than 1.

    Example:
        >>> nn.GaussianDropout(0.5).eval()([1.0, 2.0]).tolist()
        [1.0, 2.0]

    Source: Srivastava et al., Dropout, 2014, section 10; `keras.layers.GaussianDropout`.
    """

    def __init__(self, rate: float, *, rng: "rngs.Generator | rngs.Rngs | None" = None) -> None:
        self.rate = share_option("rate", rate)
        if rate == 1:
            raise fault(ArgumentError("rate must be less than 1, because the variance is rate / (1 - rate)"))
        self.rng = rngs.generator(rng, "dropout")

    def _perturb(self, x: Tensor) -> Tensor:
        return ops.multiply(x, _normal_like(x, 1.0, math.sqrt(self.rate / (1 - self.rate)), self.rng))


class GaussianNoise(_Noise):
    """Adds a normal number of mean 0 to each element in training.

    Shape: that of the input.

    Args:
        stddev: the standard deviation.
        rng: draws the numbers; an `nn.Rngs` gives its stream `dropout`.

    Raises:
        ArgumentError: if `stddev` is negative.

    Example:
        >>> nn.GaussianNoise(0.1).eval()([1.0, 2.0]).tolist()
        [1.0, 2.0]

    Source: `keras.layers.GaussianNoise`.
    """

    def __init__(self, stddev: float, *, rng: "rngs.Generator | rngs.Rngs | None" = None) -> None:
        self.stddev = number_option("stddev", stddev)
        if self.stddev < 0:
            raise fault(ArgumentError(f"stddev must be at least 0, got {stddev}"))
        self.rng = rngs.generator(rng, "dropout")

    def _perturb(self, x: Tensor) -> Tensor:
        return ops.add(x, _normal_like(x, 0.0, self.stddev, self.rng))


def _normal_like(x: Tensor, mean: float, stddev: float, rng: "rngs.Generator") -> Tensor:
    """Returns normal random numbers in the shape and the floating dtype of a tensor."""
    noise_dtype: Any = x.dtype if ops.dtype(x).is_floating else None
    return ops.to_device(ops.random.normal(x.shape, mean, stddev, noise_dtype, generator=rng), ops.get_device(x))


class DropPath(_Noise):
    """Sets whole samples to 0 with probability `drop_prob` in training: stochastic depth, if they are then added.

    Shape: (batch, ...) to the same.

    Args:
        drop_prob: the probability that a sample of the batch is dropped, from 0 to 1.
        scale_by_keep: whether the other samples are divided by 1 - drop_prob.
        rng: draws the mask; an `nn.Rngs` gives its stream `dropout`.

    Raises:
        ArgumentError: if `drop_prob` is not from 0 to 1.
        ShapeError: from the call in training, if the input has no axis.

    Example:
        >>> samples = nn.Residual(nn.DropPath(0.5))(ops.ones((100, 2))).tolist()
        >>> sorted(set(map(tuple, samples)))
        [(1.0, 1.0), (3.0, 3.0)]

    Source: Huang et al., Deep networks with stochastic depth, 2016; `timm.layers.DropPath`.
    """

    def __init__(
        self,
        drop_prob: float = 0.0,
        scale_by_keep: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
    ) -> None:
        self.drop_prob, self.scale_by_keep = share_option("drop_prob", drop_prob), scale_by_keep
        self.rng = rngs.generator(rng, "dropout")

    def _perturb(self, x: Tensor) -> Tensor:
        input_shape = tuple(x.shape)
        if not input_shape:
            raise fault(ShapeError("expected a batch, got shape ()"))
        mask_shape = (input_shape[0], *(1,) * (len(input_shape) - 1))
        if self.scale_by_keep:
            return ops.random.dropout(x, self.drop_prob, mask_shape, generator=self.rng)
        return ops.where(_keep_mask(x, self.drop_prob, mask_shape, self.rng), x, 0.0)
