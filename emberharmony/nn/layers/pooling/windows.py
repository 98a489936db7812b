"""Pooling layers with windows of a fixed size, and `MaxUnpool` layers, which put maxima back to their places."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError, brief
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.options import length_option, lengths_option
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class _Pool(spatial.Spatial):
    """The base of pools with windows of a fixed size."""

    def _set_windows(self, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, data_format: Any) -> None:
        axis_count = self.axes
        self.kernel_size = lengths_option("kernel_size", kernel_size, axis_count)
        self.stride = None if stride is None else lengths_option("stride", stride, axis_count)
        self.padding = lengths_option("padding", padding, axis_count, 0)
        for axis_size, axis_padding in zip(self.kernel_size, self.padding, strict=True):
            if axis_padding > axis_size // 2:
                raise fault(
                    ArgumentError(
                        f"padding must be at most half of the window, got {self.padding} and {self.kernel_size}"
                    )
                )
        self.ceil_mode, self.data_format = bool(ceil_mode), spatial.checked_data_format(data_format)


class _MaxPool(_Pool):
    """The base of maximum pools.

    Args:
        kernel_size: the size of the windows: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows; None is `kernel_size`.
        padding: the elements before and after each axis that do not count, at most half of the window.
        dilation: the distance of neighbouring elements of a window.
        return_indices: whether to return a pair, of the results and their indices in the flattened spatial axes.
        ceil_mode: whether elements that are left at the end of an axis get a window of their own.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if an option is invalid.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        self._set_windows(kernel_size, stride, padding, ceil_mode, data_format)
        self.dilation, self.return_indices = lengths_option("dilation", dilation, self.axes), bool(return_indices)

    def _pool(self, x: Tensor) -> Any:
        pool_options = (self.kernel_size, self.stride, self.padding, self.data_format, self.dilation, self.ceil_mode)
        pooled_x = ops.max_pool(x, *pool_options)
        return (pooled_x, ops.max_pool_indices(x, *pool_options)) if self.return_indices else pooled_x

    def __call__(self, x: TensorLike) -> Any:
        return spatial.apply_to_batch(self._pool, x, self.axes)


class MaxPool1d(_MaxPool, axes=1):
    """Returns the largest element of each window of sequences.

    Shape: (batch, channels, length), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.MaxPool1d(2)([[[1.0, 3.0, 2.0, 0.0]]]).tolist()
        [[[3.0, 2.0]]]
    """


class MaxPool2d(_MaxPool, axes=2):
    """Returns the largest element of each window of images.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.MaxPool2d((1, 2))([[[[1.0, 3.0, 2.0, 0.0]]]]).tolist()
        [[[[3.0, 2.0]]]]
    """


class MaxPool3d(_MaxPool, axes=3):
    """Returns the largest element of each window of volumes.

    Shape: (batch, channels, depth, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.MaxPool3d((1, 1, 2))([[[[[1.0, 3.0, 2.0, 0.0]]]]]).tolist()
        [[[[[3.0, 2.0]]]]]
    """


class _MaxUnpool(spatial.Spatial):
    """The base of layers that put the results of a maximum pool back to their places.

    Args:
        kernel_size: the size of the windows of the pool: one integer, or one for each spatial axis.
        stride: the distance of neighbouring windows of the pool; None is `kernel_size`.
        padding: how many elements the pool has added at both ends of each spatial axis.
        data_format: "channels_last" if the channels come after the spatial axes.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        axis_count = self.axes
        self.kernel_size = lengths_option("kernel_size", kernel_size, axis_count)
        self.stride = None if stride is None else lengths_option("stride", stride, axis_count)
        self.padding, self.data_format = (
            lengths_option("padding", padding, axis_count, 0),
            spatial.checked_data_format(data_format),
        )

    def __call__(self, x: TensorLike, indices: TensorLike, output_size: Sequence[int] | None = None) -> Tensor:
        """Returns zeros in the unpooled shape with the elements of `x` at the indices of the maximum pool.

        Args:
            x: the results of a pool.
            indices: the indices that the pool returned with `return_indices=True`.
            output_size: the lengths of the spatial axes of the output; None computes them from the options.
        """
        x, indices = spatial.to_tensor(x), spatial.to_tensor(indices)
        if tuple(indices.shape) != tuple(x.shape):
            raise fault(ShapeError(f"expected indices of shape {tuple(x.shape)}, got {tuple(indices.shape)}"))
        if len(x.shape) == self.axes + 1:
            indices = ops.expand_dims(indices, 0)

        def unpool(batch: Tensor) -> Tensor:
            return ops.max_unpool(batch, indices, self._output_size(batch, output_size), self.data_format)

        return spatial.apply_to_batch(unpool, x, self.axes)

    def _output_size(self, x: Tensor, output_size: Sequence[int] | None) -> list[int]:
        if output_size is not None:
            output_lengths = list(output_size)
            return output_lengths[-self.axes :] if self.data_format == "channels_first" else output_lengths
        first_axis = 2 if self.data_format == "channels_first" else 1
        axis_options = zip(
            x.shape[first_axis : first_axis + self.axes],
            self.kernel_size,
            self.stride or self.kernel_size,
            self.padding,
            strict=True,
        )
        return [(n - 1) * step - 2 * axis_padding + k for n, k, step, axis_padding in axis_options]


class MaxUnpool1d(_MaxUnpool, axes=1):
    """Puts the results of `MaxPool1d` back to their places; all other elements are 0.

    Shape: (batch, channels, length), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.MaxUnpool1d(2)([[[3.0, 2.0]]], [[[1, 2]]]).tolist()
        [[[0.0, 3.0, 2.0, 0.0]]]
    """


class MaxUnpool2d(_MaxUnpool, axes=2):
    """Puts the results of `MaxPool2d` back to their places; all other elements are 0.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.MaxUnpool2d((1, 2))([[[[3.0, 2.0]]]], [[[[1, 2]]]]).tolist()
        [[[[0.0, 3.0, 2.0, 0.0]]]]
    """


class MaxUnpool3d(_MaxUnpool, axes=3):
    """Puts the results of `MaxPool3d` back to their places; all other elements are 0.

    Shape: (batch, channels, depth, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.MaxUnpool3d((1, 1, 2))([[[[[3.0, 2.0]]]]], [[[[[1, 2]]]]]).tolist()
        [[[[[0.0, 3.0, 2.0, 0.0]]]]]
    """


class _AvgPool(_Pool):
    """The base of mean pools.

    Args:
        kernel_size: the size of the windows: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows; None is `kernel_size`.
        padding: the zeros before and after each axis, at most half of the window.
        ceil_mode: whether elements that are left at the end of an axis get a window of their own.
        count_include_pad: whether the zeros of the padding count as elements of the mean.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if an option is invalid.
    """

    divisor_override: int | None = None

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        self._set_windows(kernel_size, stride, padding, ceil_mode, data_format)
        self.count_include_pad = bool(count_include_pad)

    def _pool(self, x: Tensor) -> Tensor:
        return ops.average_pool(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.data_format,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def __call__(self, x: TensorLike) -> Tensor:
        return spatial.apply_to_batch(self._pool, x, self.axes)


class _DividedPool(_AvgPool):
    """The base of mean pools whose divisor may be given.

    Args:
        kernel_size: the size of the windows: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows; None is `kernel_size`.
        padding: the zeros before and after each axis, at most half of the window.
        ceil_mode: whether elements that are left at the end of an axis get a window of their own.
        count_include_pad: whether the zeros of the padding count as elements of the mean.
        divisor_override: the number by which the sums are divided; None is the number of elements.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if an option is invalid.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad, data_format=data_format)
        self.divisor_override = (
            None if divisor_override is None else length_option("divisor_override", divisor_override)
        )


class AvgPool1d(_AvgPool, axes=1):
    """Returns the mean of each window of sequences.

    Shape: (batch, channels, length), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AvgPool1d(2)([[[1.0, 3.0, 2.0, 0.0]]]).tolist()
        [[[2.0, 1.0]]]
    """


class AvgPool2d(_DividedPool, axes=2):
    """Returns the mean of each window of images.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AvgPool2d((1, 2))([[[[1.0, 3.0, 2.0, 0.0]]]]).tolist()
        [[[[2.0, 1.0]]]]
    """


class AvgPool3d(_DividedPool, axes=3):
    """Returns the mean of each window of volumes.

    Shape: (batch, channels, depth, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.AvgPool3d((1, 1, 2))([[[[[1.0, 3.0, 2.0, 0.0]]]]]).tolist()
        [[[[[2.0, 1.0]]]]]
    """


class _LPPool(_Pool):
    """The base of pools of a power mean.

    Args:
        norm_type: the power p; infinity gives the maximum.
        kernel_size: the size of the windows: one integer, or one for each spatial axis; so for the next options.
        stride: the distance of neighbouring windows; None is `kernel_size`.
        ceil_mode: whether elements that are left at the end of an axis get a window of their own.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if an option is invalid.
    """

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)):
            raise fault(ArgumentTypeError(f"norm_type must be a number, got {brief(norm_type)}"))
        if not norm_type > 0:
            raise fault(ArgumentError(f"norm_type must be positive, got {norm_type}"))
        self.norm_type = norm_type
        self._set_windows(kernel_size, stride, 0, ceil_mode, data_format)

    def _pool(self, x: Tensor) -> Tensor:
        return ops.lp_pool(x, self.norm_type, self.kernel_size, self.stride, self.data_format, self.ceil_mode)

    def __call__(self, x: TensorLike) -> Tensor:
        return spatial.apply_to_batch(self._pool, x, self.axes)


class LPPool1d(_LPPool, axes=1):
    """Returns `sum(x ** p) ** (1 / p)` of each window of sequences; see `ops.lp_pool`.

    Shape: (batch, channels, length), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.LPPool1d(2, 2)([[[3.0, 4.0, 6.0, 8.0]]]).tolist()
        [[[5.0, 10.0]]]
    """


class LPPool2d(_LPPool, axes=2):
    """Returns `sum(x ** p) ** (1 / p)` of each window of images; see `ops.lp_pool`.

    Shape: (batch, channels, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.LPPool2d(2, (1, 2))([[[[3.0, 4.0, 6.0, 8.0]]]]).tolist()
        [[[[5.0, 10.0]]]]
    """


class LPPool3d(_LPPool, axes=3):
    """Returns `sum(x ** p) ** (1 / p)` of each window of volumes; see `ops.lp_pool`.

    Shape: (batch, channels, depth, height, width), or without batch, to (batch, channels, ...).

    Example:
        >>> nn.LPPool3d(2, (1, 1, 2))([[[[[3.0, 4.0, 6.0, 8.0]]]]]).tolist()
        [[[[[5.0, 10.0]]]]]
    """
