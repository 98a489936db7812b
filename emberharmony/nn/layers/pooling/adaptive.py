"""Pools whose windows follow from the size of the output, and pools of all elements of a channel."""

from collections.abc import Sequence

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ShapeError, brief
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class _AdaptivePool(spatial.Spatial):
    """The base of pools whose windows follow from the size of the output.

    Args:
        output_size: the number of windows along each axis, one integer for all, or None for the length of the axis.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if a number is not a positive integer.
    """

    def __init__(
        self, output_size: int | Sequence[int | None] | None, *, data_format: DataFormat = "channels_first"
    ) -> None:
        sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * self.axes
        if len(sizes) != self.axes:
            raise fault(ArgumentError(f"output_size must be one integer or {self.axes}, got {brief(output_size)}"))
        self.output_size = tuple(
            None if axis_size is None else length_option("output_size", axis_size) for axis_size in sizes
        )
        self.data_format = spatial.checked_data_format(data_format)

    def _output_size(self, x: Tensor) -> list[int]:
        first_axis = 2 if self.data_format == "channels_first" else 1
        axes_and_sizes = enumerate(self.output_size, first_axis)
        return [x.shape[axis] if output_size is None else output_size for axis, output_size in axes_and_sizes]


class _AdaptiveAvgPool(_AdaptivePool):
    """The base of adaptive mean pools."""

    def __call__(self, x: TensorLike) -> Tensor:
        return spatial.apply_to_batch(
            lambda batch: ops.adaptive_average_pool(batch, self._output_size(batch), self.data_format), x, self.axes
        )


class _AdaptiveMaxPool(_AdaptivePool):
    """The base of adaptive maximum pools."""

    def __call__(self, x: TensorLike) -> Tensor:
        return spatial.apply_to_batch(
            lambda batch: ops.adaptive_max_pool(batch, self._output_size(batch), self.data_format), x, self.axes
        )


class AdaptiveAvgPool1d(_AdaptiveAvgPool, axes=1):
    """Returns the means of windows of sequences, whose number is given and whose size follows from it.

    Shape: (batch, channels, length), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AdaptiveAvgPool1d(2)([[[1.0, 3.0, 2.0, 0.0]]]).tolist()
        [[[2.0, 1.0]]]
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPool, axes=2):
    """Returns the means of windows of images, whose number is given and whose size follows from it.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AdaptiveAvgPool2d((None, 2))([[[[1.0, 3.0, 2.0, 0.0]]]]).tolist()
        [[[[2.0, 1.0]]]]
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPool, axes=3):
    """Returns the means of windows of volumes, whose number is given and whose size follows from it.

    Shape: (batch, channels, depth, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AdaptiveAvgPool3d((None, None, 2))([[[[[1.0, 3.0, 2.0, 0.0]]]]]).tolist()
        [[[[[2.0, 1.0]]]]]
    """


class AdaptiveMaxPool1d(_AdaptiveMaxPool, axes=1):
    """Returns the largest elements of windows of sequences, whose number is given and whose size follows from it.

    Shape: (batch, channels, length), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AdaptiveMaxPool1d(2)([[[1.0, 3.0, 2.0, 0.0]]]).tolist()
        [[[3.0, 2.0]]]
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPool, axes=2):
    """Returns the largest elements of windows of images, whose number is given and whose size follows from it.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AdaptiveMaxPool2d((None, 2))([[[[1.0, 3.0, 2.0, 0.0]]]]).tolist()
        [[[[3.0, 2.0]]]]
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPool, axes=3):
    """Returns the largest elements of windows of volumes, whose number is given and whose size follows from it.

    Shape: (batch, channels, depth, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AdaptiveMaxPool3d((None, None, 2))([[[[[1.0, 3.0, 2.0, 0.0]]]]]).tolist()
        [[[[[3.0, 2.0]]]]]
    """


class _GlobalPool(Module):
    """The base of pools of all elements of each channel."""

    def __init__(self, keepdims: bool = False, *, data_format: DataFormat = "channels_first") -> None:
        self.keepdims, self.data_format = bool(keepdims), spatial.checked_data_format(data_format)

    def _spatial_axes(self, x: Tensor) -> tuple[int, ...]:
        axis_count = len(x.shape)
        if axis_count < 3:
            raise fault(ShapeError(f"expected a batch, channels and spatial axes, got shape {tuple(x.shape)}"))
        return tuple(range(2, axis_count)) if self.data_format == "channels_first" else tuple(range(1, axis_count - 1))


class GlobalAvgPool(_GlobalPool):
    """Returns the mean of each channel.

    Shape: (batch, channels, *spatial) to (batch, channels).

    Args:
        keepdims: whether the spatial axes stay, with length 1.
        data_format: "channels_last" if the channels come after the spatial axes.

    Example:
        >>> nn.GlobalAvgPool()([[[1.0, 3.0], [4.0, 8.0]]]).tolist()
        [[2.0, 6.0]]
    """

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        return ops.mean(x, self._spatial_axes(x), keepdims=self.keepdims)


class GlobalMaxPool(_GlobalPool):
    """Returns the largest element of each channel.

    Shape: (batch, channels, *spatial) to (batch, channels).

    Args:
        keepdims: whether the spatial axes stay, with length 1.
        data_format: "channels_last" if the channels come after the spatial axes.

    Example:
        >>> nn.GlobalMaxPool()([[[1.0, 3.0], [4.0, 8.0]]]).tolist()
        [[3.0, 8.0]]
    """

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        return ops.max(x, self._spatial_axes(x), keepdims=self.keepdims)
