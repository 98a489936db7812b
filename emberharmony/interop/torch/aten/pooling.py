"""Operators of ATen that pool, resize and sample images, computed by ops."""

from collections.abc import Callable, Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.convolution import Sizes, numbers_per_axis
from emberharmony.interop.torch.aten.table import aten


def _apply_to_batch(function: Callable[..., Any], count: int, x: Any, *options: Any) -> Any:
    """Applies a function of a batch of images to a batch, or to one image, which gets a batch axis meanwhile."""
    if len(x.shape) == count + 2:
        return function(x, *options)
    pooled_images = function(ops.expand_dims(x, 0), *options)
    return (
        tuple(ops.squeeze(y, 0) for y in pooled_images)
        if isinstance(pooled_images, tuple)
        else ops.squeeze(pooled_images, 0)
    )


def _window_options(
    kernel_size: Sizes, stride: Sizes | None, padding: Sizes, count: int
) -> tuple[list[int], list[int], Any]:
    """Returns the size, stride and padding of pooling windows for each axis; the stride is the size by default."""
    window_size = numbers_per_axis(kernel_size, count)
    strides = window_size if stride is None or stride == [] else numbers_per_axis(stride, count)
    return window_size, strides, [(n, n) for n in numbers_per_axis(padding, count)]


def _max_pool_function(count: int, indices: bool) -> Callable[..., Any]:
    def pool(
        x: Any,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Any:
        window_size, strides, padding_pairs = _window_options(kernel_size, stride, padding, count)
        options = (window_size, strides, padding_pairs, "channels_first", numbers_per_axis(dilation, count), ceil_mode)
        if not indices:
            return _apply_to_batch(ops.max_pool, count, x, *options)
        return _apply_to_batch(ops.max_pool, count, x, *options), _apply_to_batch(
            ops.max_pool_indices, count, x, *options
        )

    return pool


def _average_pool_function(count: int) -> Callable[..., Any]:
    def pool(
        x: Any,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        window_size, strides, padding_pairs = _window_options(kernel_size, stride, padding, count)
        options = (
            window_size,
            strides,
            padding_pairs,
            "channels_first",
            ceil_mode,
            count_include_pad,
            divisor_override,
        )
        return _apply_to_batch(ops.average_pool, count, x, *options)

    return pool


def _adaptive_pool_function(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def pool(x: Any, output_size: Sizes) -> Any:
        output_sizes = [n or x.shape[i - count] for i, n in enumerate(numbers_per_axis(output_size, count))]
        return _apply_to_batch(lambda batch: function(batch, output_sizes, "channels_first"), count, x)

    return pool


aten("max_pool1d")(_max_pool_function(1, False))
aten("max_pool2d")(_max_pool_function(2, False))
aten("max_pool3d")(_max_pool_function(3, False))
aten("max_pool1d_with_indices")(_max_pool_function(1, True))
aten("max_pool2d_with_indices")(_max_pool_function(2, True))
aten("max_pool3d_with_indices")(_max_pool_function(3, True))
aten("avg_pool1d")(_average_pool_function(1))
aten("avg_pool2d")(_average_pool_function(2))
aten("avg_pool3d")(_average_pool_function(3))
aten("adaptive_avg_pool1d")(_adaptive_pool_function(ops.adaptive_average_pool, 1))
aten("adaptive_avg_pool2d", "_adaptive_avg_pool2d")(_adaptive_pool_function(ops.adaptive_average_pool, 2))
aten("adaptive_avg_pool3d", "_adaptive_avg_pool3d")(_adaptive_pool_function(ops.adaptive_average_pool, 3))


def _adaptive_max_pool_function(count: int) -> Callable[..., Any]:
    pool = _adaptive_pool_function(ops.adaptive_max_pool, count)

    def pool_with_indices(x: Any, output_size: Sizes) -> tuple[Any, Any]:
        largest_values = pool(x, output_size)
        return largest_values, _first_largest_places(x, largest_values, count)

    return pool_with_indices


def _first_largest_places(x: Any, values: Any, count: int) -> Any:
    """Returns for each adaptive window the flat spatial index of the first of its largest elements."""
    leading_axis_count, sizes, output_sizes = len(x.shape) - count, x.shape[-count:], values.shape[-count:]
    flat_windows = ops.reshape(x, (*x.shape[:leading_axis_count], *[1] * count, -1))
    is_in_window: Any = True
    stride = 1
    flat_positions = ops.arange(flat_windows.shape[-1])
    for axis in reversed(range(count)):
        axis_position = ops.mod(ops.floor_divide(flat_positions, stride), sizes[axis])
        stride *= sizes[axis]
        window_numbers = ops.reshape(ops.arange(output_sizes[axis]), (-1,) + (1,) * (count - axis))
        first_index = ops.floor_divide(ops.multiply(window_numbers, sizes[axis]), output_sizes[axis])
        end_index = ops.negative(
            ops.floor_divide(ops.multiply(ops.add(window_numbers, 1), -sizes[axis]), output_sizes[axis])
        )
        is_in_window = ops.logical_and(
            is_in_window,
            ops.logical_and(ops.greater_equal(axis_position, first_index), ops.less(axis_position, end_index)),
        )
    is_largest = ops.equal(flat_windows, ops.expand_dims(values, -1))
    return ops.argmax(ops.cast(ops.logical_and(is_in_window, is_largest), "int32"), axis=-1)


aten("adaptive_max_pool1d")(_adaptive_max_pool_function(1))
aten("adaptive_max_pool2d")(_adaptive_max_pool_function(2))
aten("adaptive_max_pool3d")(_adaptive_max_pool_function(3))


def _unpool_function(count: int) -> Callable[..., Any]:
    def unpool(x: Any, indices: Any, output_size: Sequence[int], *unused_options: object) -> Any:
        def unpool_batch(batch: Any, places: Any) -> Any:
            leading_shape = tuple(batch.shape[:2])
            zeros = ops.zeros((*leading_shape, *_as_tuple(output_size)), ops.dtype(batch))
            flat_zeros = ops.reshape(zeros, (*leading_shape, -1))
            leading_indices = (
                ops.reshape(ops.arange(leading_shape[0]), (-1, 1, 1)),
                ops.reshape(ops.arange(leading_shape[1]), (1, -1, 1)),
            )
            flat_result = ops.set_item(
                flat_zeros,
                (*leading_indices, ops.reshape(places, (*leading_shape, -1))),
                ops.reshape(batch, (*leading_shape, -1)),
            )
            return ops.reshape(flat_result, tuple(zeros.shape))

        if len(x.shape) == count + 2:
            return unpool_batch(x, indices)
        return ops.squeeze(unpool_batch(ops.expand_dims(x, 0), ops.expand_dims(indices, 0)), 0)

    return unpool


def _as_tuple(size: Sequence[int]) -> tuple[int, ...]:
    return tuple(size)


aten("max_unpool2d")(_unpool_function(2))
aten("max_unpool3d")(_unpool_function(3))


def _resize_function(mode: Any, corners: bool, scaled: int) -> Callable[..., Any]:
    """Returns a function that resizes images in a mode, with the arguments of PyTorch's operator.

    Args:
        mode: the mode of `ops.interpolate`.
        corners: whether the operator has an argument `align_corners`.
        scaled: the number of spatial axes, for each of which an overload may have a scale.
    """

    def resize(x: Any, output_size: Sequence[int] | None, *options: Any) -> Any:
        align_corners = options[0] if corners else None
        scale_arguments = options[1:] if corners else options
        scale_factors = (
            scale_arguments[0]
            if len(scale_arguments) == 1 and isinstance(scale_arguments[0], (list, tuple))
            else scale_arguments[-scaled:]
        )
        if output_size is None:
            return ops.interpolate(x, None, list(scale_factors), mode, align_corners, data_format="channels_first")
        if scale_factors and all(factor is not None for factor in scale_factors):
            # Overloads with both sizes and factors compute the sampling positions by the factors.
            scaled_sizes = [int(n * factor) for n, factor in zip(x.shape[2:], scale_factors, strict=True)]
            if scaled_sizes == list(output_size):
                return ops.interpolate(x, None, list(scale_factors), mode, align_corners, data_format="channels_first")
        return ops.interpolate(x, list(output_size), None, mode, align_corners, data_format="channels_first")

    return resize


aten("upsample_nearest1d")(_resize_function("nearest", False, 1))
aten("upsample_nearest2d")(_resize_function("nearest", False, 2))
aten("upsample_nearest3d")(_resize_function("nearest", False, 3))
aten("_upsample_nearest_exact1d")(_resize_function("nearest-exact", False, 1))
aten("_upsample_nearest_exact2d")(_resize_function("nearest-exact", False, 2))
aten("_upsample_nearest_exact3d")(_resize_function("nearest-exact", False, 3))
aten("upsample_linear1d")(_resize_function("linear", True, 1))
aten("upsample_bilinear2d")(_resize_function("bilinear", True, 2))
aten("upsample_trilinear3d")(_resize_function("trilinear", True, 3))
aten("upsample_bicubic2d")(_resize_function("bicubic", True, 2))


_PADDINGS = ("constant", "nearest", "reflect")
"""The modes of `ops.image.grid_sample` by PyTorch's numbers."""


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(x: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Returns the values of images (batch, channels, *size) at the relative positions of a grid, from -1 to 1."""
    padding_name = "mirror" if padding_mode == 2 and align_corners else _PADDINGS[padding_mode]
    if interpolation_mode == 2:
        return _sample_bicubic(x, grid, padding_name, align_corners)
    mode_name: Any = ("bilinear", "nearest")[interpolation_mode]
    return ops.image.grid_sample(x, grid, mode_name, padding_name, 0.0, align_corners, "channels_first")  # type: ignore[arg-type]


def _sample_bicubic(x: Any, grid: Any, fill: Any, align_corners: bool) -> Any:
    """Returns the values of images at grid positions by bicubic interpolation of 4 times 4 pixels, with a = -3/4."""
    sizes = x.shape[:1:-1]
    scales = [(n - 1) / 2 if align_corners else n / 2 for n in sizes]
    offset = 0.0 if align_corners else 0.5
    relative_coordinates = ops.unstack(grid, axis=-1)
    pixel_positions = [
        ops.subtract(ops.multiply(ops.add(relative_coordinate, 1), scale), offset)
        for relative_coordinate, scale in zip(relative_coordinates, scales, strict=True)
    ]
    lower_pixels = [ops.floor(pixel_position) for pixel_position in pixel_positions]
    axis_weights = [
        _cubic_weights(ops.subtract(pixel_position, lower_pixel))
        for pixel_position, lower_pixel in zip(pixel_positions, lower_pixels, strict=True)
    ]
    weighted_sum: Any = 0
    for row_step in range(4):
        for column_step in range(4):
            neighbour_coordinates = [
                ops.subtract(ops.divide(ops.add(lower_pixel, step - 1 + offset), scale), 1)
                for lower_pixel, step, scale in zip(lower_pixels, (column_step, row_step), scales, strict=True)
            ]
            neighbour_grid = ops.stop_gradient(ops.stack(neighbour_coordinates, -1))
            neighbour_values = ops.image.grid_sample(
                x, neighbour_grid, "nearest", fill, 0.0, align_corners, "channels_first"
            )
            weight = ops.multiply(axis_weights[0][column_step], axis_weights[1][row_step])
            weighted_sum = ops.add(weighted_sum, ops.multiply(neighbour_values, ops.expand_dims(weight, 1)))
    return weighted_sum


def _cubic_weights(t: Any) -> list[Any]:
    """Returns the cubic weights of four neighbouring pixels for a position at the share `t` after the second one."""
    a = -0.75

    def far_weight(s: Any) -> Any:  # weight at a distance from 1 to 2
        return ops.multiply(a, ops.subtract(ops.multiply(ops.add(ops.multiply(ops.subtract(s, 5), s), 8), s), 4))

    def near_weight(s: Any) -> Any:
        return ops.add(ops.multiply(ops.multiply(ops.subtract(ops.multiply(a + 2, s), a + 3), s), s), 1)

    one_minus_t = ops.subtract(1, t)
    return [far_weight(ops.add(t, 1)), near_weight(t), near_weight(one_minus_t), far_weight(ops.add(one_minus_t, 1))]


def _fractional_max_pool_function(count: int) -> Callable[..., Any]:
    def pool(x: Any, kernel_size: Sizes, output_size: Sizes, samples: Any) -> tuple[Any, Any]:
        """Returns the largest elements of windows whose positions follow from random samples, and their indices."""
        if len(x.shape) == count + 1:
            largest_values, indices = pool(ops.expand_dims(x, 0), kernel_size, output_size, samples)
            return ops.squeeze(largest_values, 0), ops.squeeze(indices, 0)
        sizes, kernel_sizes, output_sizes = (
            x.shape[2:],
            numbers_per_axis(kernel_size, count),
            numbers_per_axis(output_size, count),
        )
        flat_indices: Any = 0
        for axis in range(count):
            # The samples are in the reverse order of the axes: that of the last axis comes first.
            window_starts = _window_starts(
                samples[..., count - 1 - axis], sizes[axis], kernel_sizes[axis], output_sizes[axis]
            )
            window_indices = ops.add(ops.expand_dims(window_starts, -1), ops.arange(kernel_sizes[axis]))
            axis_shape = [1] * (2 * count)
            axis_shape[axis], axis_shape[count + axis] = output_sizes[axis], kernel_sizes[axis]
            flat_indices = ops.add(
                ops.multiply(flat_indices, sizes[axis]), ops.reshape(window_indices, (*x.shape[:2], *axis_shape))
            )
        flat_indices = ops.reshape(flat_indices, (*x.shape[:2], *output_sizes, -1))
        flat_images = ops.reshape(x, (*x.shape[:2], -1))
        batch_indices = ops.reshape(ops.arange(x.shape[0]), (-1, *[1] * (count + 2)))
        channel_indices = ops.reshape(ops.arange(x.shape[1]), (-1, *[1] * (count + 1)))
        windows = ops.get_item(flat_images, (batch_indices, channel_indices, flat_indices))
        index_of_largest = ops.argmax(windows, axis=-1, keepdims=True)
        return tuple(
            ops.squeeze(ops.take_along_axis(y, index_of_largest, axis=-1), -1) for y in (windows, flat_indices)
        )  # type: ignore[return-value]

    return pool


def _window_starts(sample: Any, size: int, kernel: int, count: int) -> Any:
    """Returns the starts of random pooling windows along an axis, from a random sample for each image and channel."""
    sample = ops.expand_dims(sample, -1)
    if count == 1:
        return ops.cast(ops.add(ops.zeros_like(sample), size - kernel), "int64")
    alpha = (size - kernel) / (count - 1)
    window_numbers = ops.cast(ops.arange(count), ops.dtype(sample))
    starts = ops.subtract(
        ops.trunc(ops.multiply(ops.add(window_numbers, sample), alpha)), ops.trunc(ops.multiply(sample, alpha))
    )
    return ops.cast(ops.where(ops.equal(window_numbers, count - 1), size - kernel, starts), "int64")


aten("fractional_max_pool2d")(_fractional_max_pool_function(2))
aten("fractional_max_pool3d")(_fractional_max_pool_function(3))
