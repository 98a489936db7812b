"""Normalisation layers over axes of each sample, without running statistics, such as `LayerNorm`."""

from collections.abc import Sequence

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option, number_option
from emberharmony.types import Tensor, TensorLike


class _LastAxes(Module):
    """The base of layers that normalise over the last axes, whose lengths are `normalized_shape`."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None, elementwise_affine: bool) -> None:
        lengths = normalized_shape if isinstance(normalized_shape, Sequence) else (normalized_shape,)
        self.normalized_shape = tuple(length_option("normalized_shape", axis_length) for axis_length in lengths)
        if not self.normalized_shape:
            raise fault(ArgumentError("normalized_shape must have at least one length"))
        self.eps = None if eps is None else number_option("eps", eps)
        self.elementwise_affine = elementwise_affine
        rank = len(self.normalized_shape)
        self._axis = -1 if rank == 1 else tuple(range(-rank, 0))

    def _input_tensor(self, given: TensorLike) -> Tensor:
        """Returns the input as a tensor after a check that its last axes have the layer's lengths.

        Raises:
            ShapeError: if its last axes do not have the lengths.
        """
        x: Tensor = spatial.to_tensor(given)
        if tuple(x.shape[-len(self.normalized_shape) :]) != self.normalized_shape:
            axis_count = len(self.normalized_shape)
            last_shape = tuple(x.shape[-axis_count:])
            hint = f"; make the layer with normalized_shape={last_shape}" if len(last_shape) == axis_count else ""
            message = f"expected last axes of lengths {self.normalized_shape}, got shape {tuple(x.shape)}{hint}"
            raise fault(ShapeError(message))
        return x


class LayerNorm(_LastAxes):
    """Scales the input to mean 0 and variance 1 over its last axes, times `weight` plus `bias`.

    Shape: (..., *normalized_shape) to the same.

    Args:
        normalized_shape: the lengths of the last axes, or that of the last one.
        eps: added to the variance.
        elementwise_affine: whether there are a weight and a bias.
        bias: whether there is a bias, if `elementwise_affine` is True.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight, bias: `normalized_shape`, or None.

    Raises:
        ArgumentError: if a length is not positive.
        ShapeError: from the call, if the last axes of the input have other lengths.

    Example:
        >>> nn.LayerNorm(2, eps=0.0)([[1.0, 3.0], [4.0, 8.0]]).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(normalized_shape, number_option("eps", eps), elementwise_affine)
        self.weight = Parameter(ops.ones(self.normalized_shape, dtype)) if elementwise_affine else None
        self.bias = Parameter(ops.zeros(self.normalized_shape, dtype)) if elementwise_affine and bias else None

    def __call__(self, x: TensorLike) -> Tensor:
        return ops.layer_normalization(self._input_tensor(x), self.weight, self.bias, self._axis, self.eps)


class RMSNorm(_LastAxes):
    """Divides the input by its root mean square over its last axes, times `weight`.

    Shape: (..., *normalized_shape) to the same.

    Args:
        normalized_shape: the lengths of the last axes, or that of the last one.
        eps: added to the mean square; None is the machine epsilon of the dtype that is computed in: that of the input,
            or float32 for half precision.
        elementwise_affine: whether there is a weight.
        dtype: the dtype of the weight; None is the default floating dtype.

    Attributes:
        weight: `normalized_shape`, or None.

    Raises:
        ArgumentError: if a length is not positive.
        ShapeError: from the call, if the last axes of the input have other lengths.

    Example:
        >>> nn.RMSNorm(2, eps=0.0)([3.0, -3.0]).tolist()
        [1.0, -1.0]

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine)
        self.weight = Parameter(ops.ones(self.normalized_shape, dtype)) if elementwise_affine else None

    def __call__(self, x: TensorLike) -> Tensor:
        x = self._input_tensor(x)
        eps = self.eps
        if eps is None:
            eps = 2.0**-52 if ops.dtype(x).name == "float64" else 2.0**-23
        return ops.rms_normalization(x, self.weight, self._axis, eps)


class GroupNorm(Module):
    """Scales each group of channels of each sample to mean 0 and variance 1, times `weight` plus `bias`.

    Shape: (batch, channels, ...), or with the channels last, to the same.

    Args:
        num_groups: the number of groups, which divides the number of channels.
        num_channels: the number of channels.
        eps: added to the variance.
        affine: whether there are a weight and a bias.
        bias: whether there is a bias, if `affine` is True.
        data_format: `"channels_last"` if the channels are the last axis.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight, bias: (num_channels,), or None.

    Raises:
        ArgumentError: if a number is not positive, or the groups do not divide the channels.
        ShapeError: from the call, if the input has another number of channels.

    Example:
        >>> nn.GroupNorm(2, 4, eps=0.0)([[1.0, 3.0, 4.0, 8.0]]).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]

    Source: Wu and He, Group normalization, 2018.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        data_format: spatial.DataFormat = "channels_first",
        dtype: DTypeLike | None = None,
    ) -> None:
        self.num_groups, self.num_channels = (
            length_option("num_groups", num_groups),
            length_option("num_channels", num_channels),
        )
        if num_channels % num_groups:
            raise fault(ArgumentError(f"num_groups must divide num_channels, got {num_groups} and {num_channels}"))
        self.eps, self.affine = number_option("eps", eps), affine
        self.data_format = spatial.checked_data_format(data_format)
        self.weight = Parameter(ops.ones((num_channels,), dtype)) if affine else None
        self.bias = Parameter(ops.zeros((num_channels,), dtype)) if affine and bias else None

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        channel_axis = 1 if self.data_format == "channels_first" else len(x.shape) - 1
        if len(x.shape) < 2 or x.shape[channel_axis] != self.num_channels:
            raise fault(
                ShapeError(
                    f"expected a batch with {self.num_channels} channels on axis {channel_axis}, got shape "
                    f"{tuple(x.shape)}"
                )
            )
        return ops.group_normalization(x, self.num_groups, self.weight, self.bias, channel_axis, self.eps)


class LocalResponseNorm(Module):
    """Divides each channel by a power of the mean square of its neighbours.

    It returns `x / (k + alpha * m)**beta`, where m is the mean of the squares of `size` neighbouring channels.

    Shape: (batch, channels, ..., length), or with the channels last, to the same.

    Args:
        size: how many channels are neighbours; those beyond the ends count as 0.
        alpha: the factor of the mean of the squares.
        beta: the power to which the sum is raised.
        k: what is added to `alpha` times that mean.
        data_format: `"channels_last"` if the channels are the last axis.

    Raises:
        ArgumentError: if `size` is not positive.
        ShapeError: from the call, if the input has fewer than three axes.

    Example:
        >>> nn.LocalResponseNorm(1, alpha=1.0, beta=1.0)([[[1.0], [3.0]]]).tolist()
        [[[0.5], [0.30000001192092896]]]

    Source: Krizhevsky et al., ImageNet classification with deep convolutional neural networks, 2012.
    """

    def __init__(
        self,
        size: int,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        *,
        data_format: spatial.DataFormat = "channels_first",
    ) -> None:
        self.size = length_option("size", size)
        self.alpha, self.beta, self.k = (
            number_option("alpha", alpha),
            number_option("beta", beta),
            number_option("k", k),
        )
        self.data_format = spatial.checked_data_format(data_format)

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        if len(x.shape) < 3:
            raise fault(ShapeError(f"expected (batch, channels, ..., length), got shape {tuple(x.shape)}"))
        channel_axis = 1 if self.data_format == "channels_first" else -1
        return ops.local_response_normalization(x, self.size, self.alpha, self.beta, self.k, channel_axis)
