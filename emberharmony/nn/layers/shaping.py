"""Layers that change the shape of tensors, or the order of their elements."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError, brief
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option, lengths_option
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class Flatten(Module):
    """Joins several axes to one.

    Args:
        start_dim: the first of the axes that become one; a negative number counts from the end.
        end_dim: the last of the axes that become one; a negative number counts from the end.

    Example:
        >>> tuple(nn.Flatten()(ops.zeros((2, 3, 4))).shape)
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = _axis_option("start_dim", start_dim), _axis_option("end_dim", end_dim)

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        shape = tuple(x.shape)
        axis_count = max(len(shape), 1)
        first_axis, last_axis = (
            _axis_from_start("start_dim", self.start_dim, axis_count),
            _axis_from_start("end_dim", self.end_dim, axis_count),
        )
        if first_axis > last_axis:
            raise fault(ArgumentError(f"start_dim={self.start_dim} is after end_dim={self.end_dim} in shape {shape}"))
        joined_length = 1
        for axis_length in shape[first_axis : last_axis + 1]:
            joined_length *= axis_length
        return ops.reshape(x, (*shape[:first_axis], joined_length, *shape[last_axis + 1 :]))


class Unflatten(Module):
    """Divides an axis into several.

    Args:
        dim: the axis that is divided, from -ndim to ndim - 1.
        unflattened_size: the lengths of the new axes, one of which may be -1.

    Raises:
        ArgumentError: if a length is below -1, or several are -1.

    Example:
        >>> tuple(nn.Unflatten(1, (2, -1))(ops.zeros((5, 6))).shape)
        (5, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = (
            _axis_option("dim", dim),
            _lengths_option("unflattened_size", unflattened_size),
        )

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        shape = tuple(x.shape)
        axis = _axis_from_start("dim", self.dim, len(shape))
        new_lengths = _complete_lengths(shape[axis], self.unflattened_size, shape)
        return ops.reshape(x, (*shape[:axis], *new_lengths, *shape[axis + 1 :]))


class Reshape(Module):
    """Changes the shape of each sample; the first axis, the batch, stays.

    Args:
        shape: the lengths of all axes but the first, one of which may be -1.

    Raises:
        ArgumentError: if a length is below -1, or several are -1.

    Example:
        >>> tuple(nn.Reshape((2, -1))(ops.zeros((5, 6))).shape)
        (5, 2, 3)
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = _lengths_option("shape", shape)

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        shape = tuple(x.shape)
        if not shape:
            raise fault(ShapeError("expected a batch, got a tensor without axes"))
        element_count = 1
        for axis_length in shape[1:]:
            element_count *= axis_length
        return ops.reshape(x, (shape[0], *_complete_lengths(element_count, self.shape, shape)))


class Permute(Module):
    """Changes the order of the axes.

    Args:
        axes: which axis stands at each place, as for `ops.transpose`; the batch is axis 0.

    Example:
        >>> tuple(nn.Permute((0, 2, 1))(ops.zeros((5, 2, 3))).shape)
        (5, 3, 2)
    """

    def __init__(self, axes: Sequence[int]) -> None:
        if not isinstance(axes, (tuple, list)):
            raise ArgumentTypeError(f"axes must be a sequence of integers, got {brief(axes)}")
        self.axes = tuple(_axis_option("axes", axis) for axis in axes)

    def __call__(self, x: TensorLike) -> Tensor:
        return ops.transpose(x, self.axes)


class PixelShuffle(Module):
    """Moves channels into blocks of pixels, which enlarges images.

    Shape: (..., channels * r * r, height, width) to (..., channels, height * r, width * r); of the channels, the place
    in the block varies fastest.

    Args:
        upscale_factor: the factor r.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the factor is not a positive integer.

    Example:
        >>> nn.PixelShuffle(2)([[[[1]], [[2]], [[3]], [[4]]]]).tolist()
        [[[[1, 2], [3, 4]]]]
    """

    def __init__(self, upscale_factor: int, *, data_format: DataFormat = "channels_first") -> None:
        self.upscale_factor = length_option("upscale_factor", upscale_factor)
        self.data_format = spatial.checked_data_format(data_format)

    def __call__(self, x: TensorLike) -> Tensor:
        x, r = spatial.to_tensor(x), self.upscale_factor
        *batch, channels, height, width = _image_shape(x, self.data_format)
        if channels % (r * r):
            raise fault(ShapeError(f"expected channels that {r} * {r} divides, got {channels} in {tuple(x.shape)}"))
        batch_rank, channels_left = len(batch), channels // (r * r)
        leading_axes = list(range(batch_rank))
        if self.data_format == "channels_last":
            x = ops.reshape(x, (*batch, height, width, channels_left, r, r))
            x = ops.transpose(
                x, (*leading_axes, batch_rank, batch_rank + 3, batch_rank + 1, batch_rank + 4, batch_rank + 2)
            )
            return ops.reshape(x, (*batch, height * r, width * r, channels_left))
        x = ops.reshape(x, (*batch, channels_left, r, r, height, width))
        x = ops.transpose(
            x, (*leading_axes, batch_rank, batch_rank + 3, batch_rank + 1, batch_rank + 4, batch_rank + 2)
        )
        return ops.reshape(x, (*batch, channels_left, height * r, width * r))


class PixelUnshuffle(Module):
    """Moves blocks of pixels into the channels: the inverse of `PixelShuffle`.

    Shape: (..., channels, height * r, width * r) to (..., channels * r * r, height, width).

    Args:
        downscale_factor: the factor r.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the factor is not a positive integer.

    Example:
        >>> nn.PixelUnshuffle(2)([[[[1, 2], [3, 4]]]]).tolist()
        [[[[1]], [[2]], [[3]], [[4]]]]
    """

    def __init__(self, downscale_factor: int, *, data_format: DataFormat = "channels_first") -> None:
        self.downscale_factor = length_option("downscale_factor", downscale_factor)
        self.data_format = spatial.checked_data_format(data_format)

    def __call__(self, x: TensorLike) -> Tensor:
        x, r = spatial.to_tensor(x), self.downscale_factor
        *batch, channels, height, width = _image_shape(x, self.data_format)
        if height % r or width % r:
            raise fault(ShapeError(f"expected a height and width that {r} divides, got shape {tuple(x.shape)}"))
        batch_rank, blocks_per_column, blocks_per_row = len(batch), height // r, width // r
        leading_axes = list(range(batch_rank))
        if self.data_format == "channels_last":
            x = ops.reshape(x, (*batch, blocks_per_column, r, blocks_per_row, r, channels))
            x = ops.transpose(
                x, (*leading_axes, batch_rank, batch_rank + 2, batch_rank + 4, batch_rank + 1, batch_rank + 3)
            )
            return ops.reshape(x, (*batch, blocks_per_column, blocks_per_row, channels * r * r))
        x = ops.reshape(x, (*batch, channels, blocks_per_column, r, blocks_per_row, r))
        x = ops.transpose(
            x, (*leading_axes, batch_rank, batch_rank + 2, batch_rank + 4, batch_rank + 1, batch_rank + 3)
        )
        return ops.reshape(x, (*batch, channels * r * r, blocks_per_column, blocks_per_row))


class ChannelShuffle(Module):
    """Divides the channels into groups and takes them from each group in turn.

    Args:
        groups: the number of groups, which divides the number of channels.
        data_format: "channels_last" if the channels are on the last axis; otherwise they are on the second.

    Raises:
        ArgumentError: if the number is not a positive integer.

    Example:
        >>> nn.ChannelShuffle(2)([[[1], [2], [3], [4]]]).tolist()
        [[[1], [3], [2], [4]]]
    """

    def __init__(self, groups: int, *, data_format: DataFormat = "channels_first") -> None:
        self.groups, self.data_format = length_option("groups", groups), spatial.checked_data_format(data_format)

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        shape = tuple(x.shape)
        if len(shape) < 3:
            raise fault(ShapeError(f"expected a batch, channels and spatial axes, got shape {shape}"))
        channel_axis = len(shape) - 1 if self.data_format == "channels_last" else 1
        if shape[channel_axis] % self.groups:
            raise fault(
                ShapeError(f"expected channels that {self.groups} groups divide, got {shape[channel_axis]} in {shape}")
            )
        grouped_channels = ops.reshape(
            x, (*shape[:channel_axis], self.groups, shape[channel_axis] // self.groups, *shape[channel_axis + 1 :])
        )
        return ops.reshape(ops.swapaxes(grouped_channels, channel_axis, channel_axis + 1), shape)


class Unfold(Module):
    """Returns the windows of images as columns.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels * window size, windows).

    Args:
        kernel_size: the height and width of a window, or one integer for both; so for the others.
        dilation: the distance of neighbouring elements of a window.
        padding: the zeros before and after each axis.
        stride: the distance of neighbouring windows.

    Raises:
        ArgumentError: if an option is invalid.

    Example:
        >>> nn.Unfold(2)([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]).tolist()
        [[[1.0, 2.0], [2.0, 3.0], [4.0, 5.0], [5.0, 6.0]]]
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        self.kernel_size, self.dilation = (
            lengths_option("kernel_size", kernel_size, 2),
            lengths_option("dilation", dilation, 2),
        )
        self.padding, self.stride = lengths_option("padding", padding, 2, 0), lengths_option("stride", stride, 2)

    def __call__(self, x: TensorLike) -> Tensor:
        return spatial.apply_to_batch(
            lambda batch: ops.unfold(batch, self.kernel_size, self.dilation, self.padding, self.stride), x, 2
        )


class Fold(Module):
    """Returns images that are the sums of overlapping windows: the adjoint of `Unfold`.

    Shape: (batch, channels * window size, windows), or without batch, to (batch, channels, *output_size).

    Args:
        output_size: the height and width of the images, or one integer for both; so for the others.
        kernel_size: the height and width of a window.
        dilation: the distance of neighbouring elements of a window.
        padding: the zeros before and after each axis that `Unfold` added.
        stride: the distance of neighbouring windows.

    Raises:
        ArgumentError: if an option is invalid.

    Example:
        >>> nn.Fold((1, 3), (1, 2))([[[1.0, 2.0], [2.0, 3.0]]]).tolist()
        [[[[1.0, 4.0, 3.0]]]]
    """

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        self.output_size = lengths_option("output_size", output_size, 2)
        self.kernel_size, self.dilation = (
            lengths_option("kernel_size", kernel_size, 2),
            lengths_option("dilation", dilation, 2),
        )
        self.padding, self.stride = lengths_option("padding", padding, 2, 0), lengths_option("stride", stride, 2)

    def __call__(self, x: TensorLike) -> Tensor:
        fold_options = (self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
        return spatial.apply_to_batch(lambda batch: ops.fold(batch, *fold_options), x, 1)


def _axis_option(name: str, value: Any) -> int:
    """Returns an option of a layer after a check that it is an axis, an integer that may be negative."""
    return length_option(name, value, least=-64)


def _axis_from_start(name: str, axis: int, count: int) -> int:
    """Returns a possibly negative axis counted from the beginning, after a check that it exists.

    Raises:
        AxisError: if there is no such axis.
    """
    if not -count <= axis < count:
        raise fault(AxisError(f"{name}={axis} is out of range for an input of {count} axes"))
    return axis % count


def _lengths_option(name: str, value: Any) -> tuple[int, ...]:
    """Returns an option of a layer as a tuple of lengths, after a check that at most one is -1."""
    if not isinstance(value, (tuple, list)):
        value = (value,)
    sizes = tuple(length_option(name, axis_size, least=-1) for axis_size in value)
    if sizes.count(-1) > 1:
        raise fault(ArgumentError(f"{name} may contain -1 once, got {sizes}"))
    return sizes


def _complete_lengths(count: int, parts: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns lengths of axes in which -1 is replaced by the length that gives the known product.

    Raises:
        ShapeError: if their product is not the number of elements.
    """
    known_size = 1
    for axis_length in parts:
        known_size *= 1 if axis_length == -1 else axis_length
    if -1 in parts and known_size and count % known_size == 0:
        return tuple(count // known_size if part == -1 else part for part in parts)
    if -1 in parts or known_size != count:
        raise fault(ShapeError(f"{count} elements of shape {shape} do not fill {parts}"))
    return parts


def _image_shape(x: Tensor, data_format: DataFormat) -> list[int]:
    """Returns the shape of images as (*batch, channels, height, width), whatever their data format is.

    Raises:
        ShapeError: if there are fewer than three axes.
    """
    shape = list(x.shape)
    if len(shape) < 3:
        raise fault(ShapeError(f"expected channels, a height and a width, got shape {tuple(shape)}"))
    return [*shape[:-3], shape[-1], *shape[-3:-1]] if data_format == "channels_last" else shape
