"""Convolution layers: plain, depthwise and separable ones, for 1, 2 and 3 spatial axes.

A layer keeps its kernel as PyTorch lays it out, on every backend, so that one state dict fits all, and `ops.conv` gets
a transposed view. A contiguous kernel would be no faster (0.96 to 1.09 times), so layers cache none.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ShapeError, brief
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs, spatial
from emberharmony.nn.lazy import UninitializedParameter
from emberharmony.nn.locate import fault
from emberharmony.nn.options import choice_option, flag_option, length_option, lengths_option
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike

Padding: TypeAlias = int | Sequence[int] | Sequence[tuple[int, int]] | Literal["same", "valid"]
"""The type of the option `padding`: a number, one for each axis, a pair for each axis, "same" or "valid"."""
PaddingMode: TypeAlias = Literal["zeros", "reflect", "replicate", "circular"]
"""The type of the option `padding_mode`: which elements the padding has, such as zeros."""
_MODES: dict[str, Any] = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class Convolution(spatial.Spatial):
    """The base of convolutions and transposed convolutions: parameters, and the check of the input.

    Attributes:
        weight: as PyTorch has it, with the size of the kernel last.
        bias: (out_channels,), or None.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        dilation: int | Sequence[int],
        groups: int,
        bias: bool,
        data_format: DataFormat,
        rng: "rngs.Generator | rngs.Rngs | None",
        dtype: DTypeLike | None,
    ) -> None:
        axis_count = self.axes
        self.in_channels = None if in_channels is None else length_option("in_channels", in_channels)
        self.out_channels, self.groups = length_option("out_channels", out_channels), length_option("groups", groups)
        self.kernel_size, self.stride = (
            lengths_option("kernel_size", kernel_size, axis_count),
            lengths_option("stride", stride, axis_count),
        )
        self.dilation, self.data_format = (
            lengths_option("dilation", dilation, axis_count),
            spatial.checked_data_format(data_format),
        )
        self._require_groups("out_channels", self.out_channels)
        is_channels_last = self.data_format == "channels_last"
        self._ndim, self._channel_axis = axis_count + 2, axis_count + 1 if is_channels_last else 1
        generator, bias = rngs.generator(rng), flag_option("bias", bias)
        if self.in_channels is None:
            self.weight = UninitializedParameter(self)
            self.bias = UninitializedParameter(self) if bias else None
            self._build = (bias, generator, dtype)
        else:
            self._initialize(bias, generator, dtype)

    def _channel_lengths(self, sources: int) -> tuple[int, int]:
        """Returns the first two lengths of the weight, those of its channels, for a number of input channels."""
        return self.out_channels, sources // self.groups

    def _initialize(self, bias: bool, rng: "rngs.Generator", dtype: DTypeLike | None) -> None:
        self._require_groups("in_channels", self.in_channels or 0)
        weight_shape = self._channel_lengths(self.in_channels or 0)
        bound = 1 / math.sqrt(weight_shape[1] * math.prod(self.kernel_size))
        self.weight = Parameter(rngs.uniform(rng, (*weight_shape, *self.kernel_size), bound, dtype))
        self.bias = Parameter(rngs.uniform(rng, (self.out_channels,), bound, dtype)) if bias else None

    def _require_groups(self, name: str, channels: int) -> None:
        if channels % self.groups:
            raise fault(ArgumentError(f"groups={self.groups} does not divide {name}={channels}"))

    def build(self, shape: tuple[int, ...]) -> None:
        """Creates the parameters for the shape of an input, if they do not exist yet."""
        if self.in_channels is None:
            self.in_channels = shape[-self.axes - 1 if self.data_format == "channels_first" else -1]
            self._initialize(*vars(self).pop("_build"))

    def _is_batch(self, x: Any) -> bool:
        """Returns whether an input is a tensor with a batch axis and the expected axes and channels."""
        shape = getattr(x, "shape", ())
        return len(shape) == self._ndim and shape[self._channel_axis] == self.in_channels

    def _call_unbatched(self, x: TensorLike, *args: Any) -> Tensor:
        """Returns the output for an input that is a list or lacks a batch axis; raises the error for a wrong shape.

        Raises:
            ShapeError: if the channels or the number of axes are wrong.
        """
        x = spatial.to_tensor(x)
        if self._is_batch(x):
            output: Tensor = self(x, *args)
            return output
        if self.in_channels is None:
            self.weight.tensor_on(None)  # raises the error of a parameter without shape
        if len(x.shape) == self._ndim - 1 and x.shape[self._channel_axis - 1] == self.in_channels:
            return ops.squeeze(self(ops.expand_dims(x, 0), *args), 0)
        axis_names = ["channels", f"{self.axes} spatial"]
        axes_text = (
            "(batch, " + ", ".join(axis_names if self.data_format == "channels_first" else axis_names[::-1]) + ")"
        )
        shape, is_channels_last = tuple(x.shape), self.data_format != "channels_first"
        hint = ""
        if len(shape) == self._ndim and shape[1 if is_channels_last else -1] == self.in_channels:
            axis_order = "1, -1" if is_channels_last else "-1, 1"
            hint = f"; the channels are on another axis: ops.moveaxis(x, {axis_order})"
        elif len(shape) == self._ndim:
            hint = f"; the input has {shape[self._channel_axis]}: make the layer with as many in_channels"
        elif len(shape) == self._ndim - 1 and self.in_channels == 1:
            hint = f"; add an axis: ops.expand_dims(x, {-1 if is_channels_last else 1})"
        message = f"expected {self.in_channels} channels in an input {axes_text}, got shape {shape}{hint}"
        raise fault(ShapeError(message))


class _Conv(Convolution):
    """The base of convolutions.

    Args:
        in_channels: the number of channels of the input; None if `nn.build` shall find it.
        out_channels: the number of channels of the output.
        kernel_size: the size of the kernel: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows.
        padding: the zeros before and after each axis; or one pair (before, after) for each axis, "valid" for none, or
            "same" for as many as keep the lengths.
        dilation: the distance of neighbouring elements of a window.
        groups: into how many groups the channels are divided, each of which is convolved by itself.
        bias: whether a bias is added.
        padding_mode: the elements that are added: "zeros", "reflect", "replicate" or "circular".
        data_format: "channels_last" if the channels come after the spatial axes.
        rng: draws the initial values, which are uniform within 1 / sqrt(in_channels / groups * size of the kernel), as
            in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight: (out_channels, in_channels / groups, *kernel_size).
        bias: (out_channels,), or None.

    Raises:
        ArgumentError: if an option is invalid, or `groups` does not divide both numbers of channels.
    """

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        *,
        data_format: DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, groups, bias, data_format, rng, dtype
        )
        self.padding = padding = _padding_option(padding, self.axes)
        self.padding_mode = choice_option("padding_mode", padding_mode, tuple(_MODES))
        if padding == "same" and max(self.stride) > 1:
            raise fault(ArgumentError(f"padding='same' needs stride 1, got {self.stride}; give the padding as numbers"))
        self._order = (*range(2, self.axes + 2), 1, 0)
        self._zeros: Any = padding
        self._around: list[tuple[int, int]] | None = None
        if self.padding_mode != "zeros" and padding != "valid":
            padding_pairs = self._padding_pairs()
            is_channels_last = self.data_format == "channels_last"
            self._around = [(0, 0), *[(0, 0)] * (not is_channels_last), *padding_pairs, *[(0, 0)] * is_channels_last]
            self._zeros = "valid"

    def _padding_pairs(self) -> list[tuple[int, int]]:
        """Returns the numbers of elements to add before and after each spatial axis."""
        if isinstance(self.padding, str):
            total_paddings = [
                axis_dilation * (k - 1) for axis_dilation, k in zip(self.dilation, self.kernel_size, strict=True)
            ]
            return [(pads // 2, pads - pads // 2) for pads in total_paddings]
        return [pads if isinstance(pads, tuple) else (pads, pads) for pads in self.padding]

    def __call__(self, x: TensorLike) -> Tensor:
        if not self._is_batch(x):
            return self._call_unbatched(x)
        if self._around is not None:
            x = ops.pad(x, self._around, _MODES[self.padding_mode])
        kernel = ops.transpose(self.weight, self._order)
        return ops.conv(x, kernel, self.stride, self._zeros, self.data_format, self.dilation, self.bias)


class Conv1d(_Conv, axes=1):
    """A convolution of sequences.

    Shape: (batch, in_channels, length), or without batch, to (batch, out_channels, ...).

    Example:
        >>> layer = nn.Conv1d(3, 4, 3, padding=1)
        >>> tuple(layer(ops.zeros((2, 3, 8))).shape)
        (2, 4, 8)
    """


class Conv2d(_Conv, axes=2):
    """A convolution of images.

    Shape: (batch, in_channels, height, width), or without batch, to (batch, out_channels, ...).

    Example:
        >>> layer = nn.Conv2d(3, 4, 3, padding=1)
        >>> tuple(layer(ops.zeros((2, 3, 8, 8))).shape)
        (2, 4, 8, 8)
    """


class Conv3d(_Conv, axes=3):
    """A convolution of volumes.

    Shape: (batch, in_channels, depth, height, width), or without batch, to (batch, out_channels, ...).

    Example:
        >>> layer = nn.Conv3d(3, 4, 3, padding=1)
        >>> tuple(layer(ops.zeros((1, 3, 4, 4, 4))).shape)
        (1, 4, 4, 4, 4)
    """


class _DepthwiseConv(_Conv):
    """The base of depthwise convolutions.

    Args:
        in_channels: the number of channels of the input.
        kernel_size: the size of the kernel: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows.
        padding: the zeros before and after each axis; or one pair (before, after) for each axis, "valid" for none, or
            "same" for as many as keep the lengths.
        dilation: the distance of neighbouring elements of a window.
        depth_multiplier: how many channels of the output each channel of the input gives.
        bias: whether a bias is added.
        padding_mode: the elements that are added: "zeros", "reflect", "replicate" or "circular".
        data_format: "channels_last" if the channels come after the spatial axes.
        rng: draws the initial values, which are uniform within 1 / sqrt(size of the kernel), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight: (in_channels * depth_multiplier, 1, *kernel_size), as a convolution with `groups=in_channels` has it.
        bias: (in_channels * depth_multiplier,), or None.

    Raises:
        ArgumentError: if an option is invalid.
    """

    def __init__(
        self,
        in_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        depth_multiplier: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        *,
        data_format: DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.depth_multiplier = length_option("depth_multiplier", depth_multiplier)
        channels = length_option("in_channels", in_channels)
        super().__init__(
            channels,
            channels * self.depth_multiplier,
            kernel_size,
            stride,
            padding,
            dilation,
            channels,
            bias,
            padding_mode,
            data_format=data_format,
            rng=rng,
            dtype=dtype,
        )


class DepthwiseConv1d(_DepthwiseConv, axes=1):
    """A convolution of sequences that convolves each channel by itself.

    Shape: (batch, in_channels, length), or without batch, to (batch, in_channels * depth_multiplier, ...).

    Example:
        >>> layer = nn.DepthwiseConv1d(3, 3, depth_multiplier=2)
        >>> tuple(layer(ops.zeros((2, 3, 8))).shape), tuple(layer.weight.shape)
        ((2, 6, 6), (6, 1, 3))
    """


class DepthwiseConv2d(_DepthwiseConv, axes=2):
    """A convolution of images that convolves each channel by itself.

    Shape: (batch, in_channels, height, width), or without batch, to (batch, in_channels * depth_multiplier, ...).

    Example:
        >>> layer = nn.DepthwiseConv2d(3, 3, depth_multiplier=2)
        >>> tuple(layer(ops.zeros((2, 3, 8, 8))).shape), tuple(layer.weight.shape)
        ((2, 6, 6, 6), (6, 1, 3, 3))
    """


class DepthwiseConv3d(_DepthwiseConv, axes=3):
    """A convolution of volumes that convolves each channel by itself.

    Shape: (batch, in_channels, depth, height, width), or without batch, to (batch, in_channels * depth_multiplier,
    ...).

    Example:
        >>> layer = nn.DepthwiseConv3d(3, 3, depth_multiplier=2)
        >>> tuple(layer(ops.zeros((1, 3, 4, 4, 4))).shape), tuple(layer.weight.shape)
        ((1, 6, 2, 2, 2), (6, 1, 3, 3, 3))
    """


class _SeparableConv(spatial.Spatial):
    """The base of separable convolutions.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the output.
        kernel_size: the size of the kernel: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows.
        padding: the zeros before and after each axis; or one pair (before, after) for each axis, "valid" for none, or
            "same" for as many as keep the lengths.
        dilation: the distance of neighbouring elements of a window.
        depth_multiplier: how many channels each channel of the input gives, before they are mixed.
        bias: whether a bias is added at the end.
        padding_mode: the elements that are added: "zeros", "reflect", "replicate" or "circular".
        data_format: "channels_last" if the channels come after the spatial axes.
        rng: draws the initial values, which are uniform within 1 / sqrt(inputs of an output), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        depthwise: the convolution of each channel by itself, without bias.
        pointwise: the convolution that mixes the channels, with a kernel of size 1.

    Raises:
        ArgumentError: if an option is invalid.
    """

    depthwise_kind: type[_DepthwiseConv]
    pointwise_kind: type[_Conv]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        depth_multiplier: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        *,
        data_format: DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        generator = rngs.generator(rng)
        self.depthwise = self.depthwise_kind(
            in_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            depth_multiplier,
            False,
            padding_mode,
            data_format=data_format,
            rng=generator,
            dtype=dtype,
        )
        self.pointwise = self.pointwise_kind(
            self.depthwise.out_channels, out_channels, 1, bias=bias, data_format=data_format, rng=generator, dtype=dtype
        )

    def __call__(self, x: TensorLike) -> Tensor:
        return self.pointwise(self.depthwise(x))


class SeparableConv1d(_SeparableConv, axes=1):
    """A convolution of each channel of sequences by itself, and then one of size 1 that mixes the channels.

    Shape: (batch, in_channels, length), or without batch, to (batch, out_channels, ...).

    Example:
        >>> layer = nn.SeparableConv1d(3, 5, 3)
        >>> tuple(layer(ops.zeros((2, 3, 8))).shape), list(layer.state_dict())
        ((2, 5, 6), ['depthwise.weight', 'pointwise.weight', 'pointwise.bias'])
    """

    depthwise_kind, pointwise_kind = DepthwiseConv1d, Conv1d


class SeparableConv2d(_SeparableConv, axes=2):
    """A convolution of each channel of images by itself, and then one of size 1 that mixes the channels.

    Shape: (batch, in_channels, height, width), or without batch, to (batch, out_channels, ...).

    Example:
        >>> layer = nn.SeparableConv2d(3, 5, 3)
        >>> tuple(layer(ops.zeros((2, 3, 8, 8))).shape), list(layer.state_dict())
        ((2, 5, 6, 6), ['depthwise.weight', 'pointwise.weight', 'pointwise.bias'])
    """

    depthwise_kind, pointwise_kind = DepthwiseConv2d, Conv2d


class SeparableConv3d(_SeparableConv, axes=3):
    """A convolution of each channel of volumes by itself, and then one of size 1 that mixes the channels.

    Shape: (batch, in_channels, depth, height, width), or without batch, to (batch, out_channels, ...).

    Example:
        >>> layer = nn.SeparableConv3d(3, 5, 3)
        >>> tuple(layer(ops.zeros((1, 3, 4, 4, 4))).shape), list(layer.state_dict())
        ((1, 5, 2, 2, 2), ['depthwise.weight', 'pointwise.weight', 'pointwise.bias'])
    """

    depthwise_kind, pointwise_kind = DepthwiseConv3d, Conv3d


def _padding_option(value: Any, axes: int) -> Any:
    """Returns the checked option `padding`: "same", "valid", or an integer or a pair for each axis.

    Raises:
        ArgumentError: if it is none of these.
        ArgumentTypeError: if a number is not an integer.
    """
    if isinstance(value, str):
        return choice_option("padding", value, ("same", "valid"))
    if not isinstance(value, (tuple, list)):
        return (length_option("padding", value, 0),) * axes
    if len(value) != axes:
        raise fault(
            ArgumentError(
                f"padding must be one integer, or one integer or pair for each of {axes} axes, {_value_text(value)}"
            )
        )
    return tuple(
        lengths_option("padding", pad, 2, 0) if isinstance(pad, (tuple, list)) else length_option("padding", pad, 0)
        for pad in value
    )


def _value_text(value: Any) -> str:
    return f"got {brief(value)}"
