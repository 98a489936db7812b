"""Layers of transposed convolutions, for 1, 2 and 3 spatial axes."""

from collections.abc import Sequence
from typing import Literal

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.layers.convolution import Convolution
from emberharmony.nn.locate import fault
from emberharmony.nn.options import choice_option, lengths_option
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class _ConvTranspose(Convolution):
    """The base of transposed convolutions.

    Args:
        in_channels: the number of channels of the input; None if `nn.build` shall find it.
        out_channels: the number of channels of the output.
        kernel_size: the size of the kernel: one integer, or one for each spatial axis; so for the next options.
        stride: by how much the elements of the input are spread in the output.
        padding: the elements that are cut off at both ends of each axis of the output.
        output_padding: the elements that are added at the end of each axis of the output.
        groups: into how many groups the channels are divided, each of which is convolved by itself.
        bias: whether a bias is added.
        dilation: the distance of neighbouring elements of a window.
        padding_mode: only "zeros", as in PyTorch.
        data_format: "channels_last" if the channels come after the spatial axes.
        rng: draws the initial values, which are uniform within 1 / sqrt(out_channels / groups * size of the kernel), as
            in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight: (in_channels, out_channels / groups, *kernel_size).
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
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: Literal["zeros"] = "zeros",
        *,
        data_format: DataFormat = "channels_first",
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, dilation, groups, bias, data_format, rng, dtype
        )
        axis_count = self.axes
        self.padding = lengths_option("padding", padding, axis_count, 0)
        self.output_padding = lengths_option("output_padding", output_padding, axis_count, 0)
        self.padding_mode = choice_option("padding_mode", padding_mode, ("zeros",))
        for axis_output_padding, step, axis_dilation in zip(
            self.output_padding, self.stride, self.dilation, strict=True
        ):
            if axis_output_padding >= max(step, axis_dilation):
                raise fault(
                    ArgumentError(
                        f"output_padding must be smaller than the stride or the dilation, got {self.output_padding} "
                        f"with stride {self.stride} and dilation {self.dilation}"
                    )
                )
        self._order = (*range(2, axis_count + 2), 1, 0)
        self._grouped_order = (*range(3, axis_count + 3), 0, 2, 1)

    def _channel_lengths(self, sources: int) -> tuple[int, int]:
        return sources, self.out_channels // self.groups

    def __call__(self, x: TensorLike, output_size: Sequence[int] | None = None) -> Tensor:
        """Returns the transposed convolution of an input, of the given output size or the default one.

        Args:
            x: the input.
            output_size: the lengths of the spatial axes of the output, instead of `output_padding`.

        Raises:
            ShapeError: if the channels or the number of axes are wrong, or if no output has the size.
        """
        if not self._is_batch(x):
            return self._call_unbatched(x, output_size)
        output_paddings = self.output_padding if output_size is None else self._output_padding(x, output_size)
        weight = self.weight
        if self.groups == 1:
            kernel = ops.transpose(weight, self._order)
        else:
            output_channels, input_channels = self.out_channels // self.groups, weight.shape[0] // self.groups
            grouped_weight = ops.reshape(weight, (self.groups, input_channels, output_channels, *self.kernel_size))
            kernel = ops.reshape(
                ops.transpose(grouped_weight, self._grouped_order),
                (*self.kernel_size, self.out_channels, input_channels),
            )
        return ops.conv_transpose(
            x, kernel, self.stride, self.padding, output_paddings, self.data_format, self.dilation, self.bias
        )

    def _output_padding(self, x: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Returns the output padding with which the output has a requested size."""
        output_lengths = tuple(output_size)
        output_lengths = (
            output_lengths[-self.axes :]
            if self.data_format == "channels_first" and len(output_lengths) > self.axes
            else output_lengths
        )
        first_axis = 2 if self.data_format == "channels_first" else 1
        axis_options = zip(
            x.shape[first_axis : first_axis + self.axes],
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            strict=True,
        )
        least_lengths = [
            (n - 1) * step - 2 * axis_padding + axis_dilation * (k - 1) + 1
            for n, k, step, axis_padding, axis_dilation in axis_options
        ]
        output_paddings = tuple(
            output_length - least_length
            for output_length, least_length in zip(output_lengths, least_lengths, strict=False)
        )
        padding_limits = [max(step, dilation) for step, dilation in zip(self.stride, self.dilation, strict=True)]
        if len(output_lengths) != self.axes or not all(
            0 <= e < limit for e, limit in zip(output_paddings, padding_limits, strict=True)
        ):
            greatest_lengths = [
                least_length + limit - 1 for least_length, limit in zip(least_lengths, padding_limits, strict=True)
            ]
            raise fault(
                ShapeError(
                    f"output_size must be from {tuple(least_lengths)} to {tuple(greatest_lengths)}, got "
                    f"{tuple(output_size)}"
                )
            )
        return output_paddings


class ConvTranspose1d(_ConvTranspose, axes=1):
    """A transposed convolution of sequences: the gradient of `Conv1d` by its input.

    Shape: (batch, in_channels, length), or without batch, to (batch, out_channels, ...). A length n
    becomes (n - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding.

    Example:
        >>> layer = nn.ConvTranspose1d(3, 4, 2, stride=2)
        >>> tuple(layer(ops.zeros((2, 3, 8))).shape)
        (2, 4, 16)
    """


class ConvTranspose2d(_ConvTranspose, axes=2):
    """A transposed convolution of images: the gradient of `Conv2d` by its input.

    Shape: (batch, in_channels, height, width), or without batch, to (batch, out_channels, ...). A length n
    becomes (n - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding.

    Example:
        >>> layer = nn.ConvTranspose2d(3, 4, 2, stride=2)
        >>> tuple(layer(ops.zeros((2, 3, 8, 8))).shape)
        (2, 4, 16, 16)
    """


class ConvTranspose3d(_ConvTranspose, axes=3):
    """A transposed convolution of volumes: the gradient of `Conv3d` by its input.

    Shape: (batch, in_channels, depth, height, width), or without batch, to (batch, out_channels, ...). A length n
    becomes (n - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding.

    Example:
        >>> layer = nn.ConvTranspose3d(3, 4, 2, stride=2)
        >>> tuple(layer(ops.zeros((1, 3, 4, 4, 4))).shape)
        (1, 4, 8, 8, 8)
    """
