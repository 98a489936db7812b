"""Colours, margins and patches of images.

Images are (height, width, channels), or a batch of them; with `data_format="channels_first"` (channels, height, width).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import DTypeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.indexing import get_item, where
from emberharmony.ops.arrays.shape import concatenate, expand_dims, moveaxis, pad, squeeze, stack, unstack
from emberharmony.ops.dtype import dtype, finfo
from emberharmony.ops.images.resampling import to_image_dtype
from emberharmony.ops.logic.comparison import equal, greater, less
from emberharmony.ops.math import absolute, add, clip, divide, maximum, minimum, mod, multiply, subtract
from emberharmony.ops.tensor import cast

if TYPE_CHECKING:
    from emberharmony.backend.shared.images import image as shared_image
    from emberharmony.backend.shared.neural import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")
    shared_image = Deferred("emberharmony.backend.shared.images.image")

_LUMA = (0.2989, 0.5870, 0.1140)


@op
def rgb_to_grayscale(
    images: TensorLike, data_format: Literal["channels_last", "channels_first"] | None = None
) -> Tensor:
    """Returns the brightness of RGB images: 0.2989 red + 0.5870 green + 0.1140 blue.

    Shape: the axis of channels has length 1 in the result. Dtype: that of the images; integers are rounded.

    Args:
        images: (height, width, 3), or a batch of them; with `data_format` the channels may come first. Integers or
            floats.

    Raises:
        ShapeError: if there are not three channels.

    See also: `rgb_to_hsv`, with hue.

    Example:
        >>> ops.rgb_to_grayscale(ops.array([[[200, 100, 0]]], "uint8")).tolist()
        [[[118]]]
    """
    axis = shared_image.colour_axis(images.shape, data_format)
    wide_images = cast(images, shared_image.pixel_compute_dtype(dtype(images)))
    red, green, blue = (
        multiply(channel, channel_weight)
        for channel, channel_weight in zip(unstack(wide_images, axis=axis), _LUMA, strict=True)
    )
    return to_image_dtype(expand_dims(add(add(red, green), blue), axis), dtype(images))


@op
def rgb_to_hsv(images: TensorLike, data_format: Literal["channels_last", "channels_first"] | None = None) -> Tensor:
    """Returns hue, saturation and value, from 0 to 1, of RGB images with values from 0 to 1.

    Values whose magnitude is below the dtype's `eps` count as 0.

    Args:
        images: (height, width, 3), or a batch of them; floats from 0 to 1.

    Raises:
        DTypeError: if the images are not floating.
        ShapeError: if there are not three channels.

    See also: `hsv_to_rgb`, the inverse; `rgb_to_grayscale`, the brightness alone.

    Example:
        >>> ops.rgb_to_hsv([[[0.0, 0.5, 0.0], [0.5, 0.5, 0.5]]]).tolist()
        [[[0.3333333432674408, 1.0, 0.5], [0.0, 0.0, 0.5]]]

    Source: Smith, Color gamut transform pairs, 1978, the hexcone model.
    """
    axis, float_dtype = shared_image.colour_axis(images.shape, data_format), _floating_dtype(images)
    x = cast(images, shared_image.pixel_compute_dtype(float_dtype))
    red, green, blue = unstack(where(less(absolute(x), finfo(float_dtype).eps), 0.0, x), axis=axis)
    brightness = maximum(maximum(red, green), blue)
    chroma = subtract(brightness, minimum(minimum(red, green), blue))
    is_coloured = greater(chroma, 0.0)
    six_chromas = multiply(where(is_coloured, chroma, 1.0), 6.0)
    hue_near_green = add(divide(subtract(blue, red), six_chromas), 1.0 / 3.0)
    hue_near_blue = add(divide(subtract(red, green), six_chromas), 2.0 / 3.0)
    hue = where(equal(brightness, green), hue_near_green, hue_near_blue)
    hue = where(equal(brightness, red), divide(subtract(green, blue), six_chromas), hue)
    hue = where(is_coloured, add(hue, where(less(hue, 0.0), 1.0, 0.0)), 0.0)
    is_bright = greater(brightness, 0.0)
    saturation = where(is_bright, divide(chroma, where(is_bright, brightness, 1.0)), 0.0)
    return cast(stack([hue, saturation, brightness], axis), float_dtype)


@op
def hsv_to_rgb(images: TensorLike, data_format: Literal["channels_last", "channels_first"] | None = None) -> Tensor:
    """Returns red, green and blue of images given by hue, saturation and value; the hue counts modulo 1.

    Args:
        images: (height, width, 3), or a batch of them: hue, saturation and value, floats from 0 to 1.

    Raises:
        DTypeError: if the images are not floating.
        ShapeError: if there are not three channels.

    See also: `rgb_to_hsv`, the inverse.

    Example:
        >>> ops.hsv_to_rgb([[[0.5, 1.0, 0.25], [0.0, 0.0, 0.5]]]).tolist()
        [[[0.0, 0.25, 0.25], [0.5, 0.5, 0.5]]]

    Source: Smith, Color gamut transform pairs, 1978, the hexcone model.
    """
    axis, float_dtype = shared_image.colour_axis(images.shape, data_format), _floating_dtype(images)
    hue, saturation, value = unstack(cast(images, shared_image.pixel_compute_dtype(float_dtype)), axis=axis)
    hue_sextant = multiply(mod(hue, 1.0), 6.0)
    channel_shares = [
        subtract(absolute(subtract(hue_sextant, 3.0)), 1.0),
        subtract(2.0, absolute(subtract(hue_sextant, 2.0))),
        subtract(2.0, absolute(subtract(hue_sextant, 4.0))),
    ]
    grey_share = subtract(1.0, saturation)
    channels = [
        multiply(value, add(grey_share, multiply(saturation, clip(channel_share, 0.0, 1.0))))
        for channel_share in channel_shares
    ]
    return cast(stack(channels, axis), float_dtype)


@op
def pad_images(
    images: TensorLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns images with zeros added around them.

    Give two of the three sizes for each direction: for the height, two of `top_padding`, `bottom_padding` and
    `target_height`.

    Args:
        top_padding: the rows to add above, in pixels; None if it follows from the two other heights.
        left_padding: the columns to add on the left, in pixels; None if it follows from the two other widths.
        bottom_padding: the rows to add below, in pixels; None if it follows from the two other heights.
        right_padding: the columns to add on the right, in pixels; None if it follows from the two other widths.
        target_height: the height of the result in pixels; None if it follows from the paddings.
        target_width: the width of the result in pixels; None if it follows from the paddings.

    Raises:
        ArgumentError: if another number of sizes is given, or if a padding would be negative.

    See also: `crop_images`, the inverse; `pad`, of any tensor.

    Example:
        >>> ops.pad_images([[[1], [2]]], 0, 1, 0, target_width=4).tolist()
        [[[0], [1], [2], [0]]]
    """
    height_axis, width_axis = shared_image.spatial_axes(images.shape, data_format)
    height, width = images.shape[height_axis], images.shape[width_axis]
    row_padding = shared_image.margins(
        top_padding, bottom_padding, target_height, height, 1, "top_padding, bottom_padding, target_height"
    )
    column_padding = shared_image.margins(
        left_padding, right_padding, target_width, width, 1, "left_padding, right_padding, target_width"
    )
    padding_by_axis = {height_axis: row_padding, width_axis: column_padding}
    return pad(images, [padding_by_axis.get(a - images.ndim, (0, 0)) for a in range(images.ndim)])


@op
def crop_images(
    images: TensorLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns images without their margins.

    Give two of the three sizes for each direction: for the height, two of `top_cropping`, `bottom_cropping` and
    `target_height`.

    Args:
        top_cropping: the rows to remove above, in pixels; None if it follows from the two other heights.
        left_cropping: the columns to remove on the left, in pixels; None if it follows from the two other widths.
        bottom_cropping: the rows to remove below, in pixels; None if it follows from the two other heights.
        right_cropping: the columns to remove on the right, in pixels; None if it follows from the two other widths.
        target_height: the height of the result in pixels; None if it follows from the croppings.
        target_width: the width of the result in pixels; None if it follows from the croppings.

    Raises:
        ArgumentError: if another number of sizes is given, or if a margin would be negative.

    See also: `pad_images`, the inverse.

    Example:
        >>> ops.crop_images([[[1], [2], [3]]], 0, 1, 0, target_width=1).tolist()
        [[[2]]]
    """
    height_axis, width_axis = shared_image.spatial_axes(images.shape, data_format)
    height, width = images.shape[height_axis], images.shape[width_axis]
    top_margin, bottom_margin = shared_image.margins(
        top_cropping, bottom_cropping, target_height, height, -1, "top_cropping, bottom_cropping, target_height"
    )
    left_margin, right_margin = shared_image.margins(
        left_cropping, right_cropping, target_width, width, -1, "left_cropping, right_cropping, target_width"
    )
    inner_slices = (..., slice(top_margin, height - bottom_margin), slice(left_margin, width - right_margin))
    return get_item(images, (*inner_slices, slice(None)) if width_axis == -2 else inner_slices)


@op
def extract_patches(
    images: TensorLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: Literal["valid", "same"] = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the patches of images as channels; for a `size` of three numbers, the patches of volumes.

    Patches are adjacent unless `strides` is given. The other options are those of `conv`.

    Shape: the axis of channels has length `patch height * patch width * channels`; the channels of a pixel are
    adjacent.

    Args:
        size: (height, width) of a patch, or one integer for both; three numbers for volumes.
        strides: by how many pixels neighbouring patches are apart: one integer, or one for each spatial axis; None is
            `size`.
        padding: "valid" takes patches that are entirely inside; "same" pads with zeros, so that the length is divided
            by the stride and rounded up.

    Raises:
        ShapeError: if no patch fits.

    See also: `unfold`, as in PyTorch; `extract_patches_3d`, of volumes; `conv`, with a kernel.

    Example:
        >>> ops.extract_patches([[[1], [2], [3], [4]]], (1, 2)).tolist()
        [[[1, 2], [3, 4]]]
    """
    spatial_count = 2 if isinstance(size, int) else len(size)
    axes = shared_image.spatial_axes(images.shape, data_format, spatial_count)
    is_channels_last, is_batched = axes[-1] == -2, images.ndim == spatial_count + 2
    x = images if is_channels_last else moveaxis(images, -spatial_count - 1, -1)
    x = x if is_batched else expand_dims(x, 0)
    patch_shape = shared_convolution.integers_per_axis(size, spatial_count, "size")
    window_plan = shared_convolution.windows(
        x.shape[1:-1], patch_shape, patch_shape if strides is None else strides, padding, dilation_rate
    )
    if any(map(any, window_plan.padding)):
        x = pad(x, [(0, 0), *window_plan.padding, (0, 0)])
    patches = concatenate(
        [get_item(x, (slice(None), *input_slices)) for _, input_slices in window_plan.positions_and_slices()], -1
    )
    patches = patches if is_batched else squeeze(patches, 0)
    return patches if is_channels_last else moveaxis(patches, -1, -spatial_count - 1)


@op
def extract_patches_3d(
    volumes: TensorLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: Literal["valid", "same"] = "valid",
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the patches of volumes as channels.

    Shape: (depth, height, width, channels), or a batch; otherwise like `extract_patches`.

    Args:
        volumes: (depth, height, width, channels), or a batch of them, of any dtype.
        size: (depth, height, width) of a patch, or one integer for all.
        strides: by how many voxels neighbouring patches are apart: one integer, or one for each spatial axis; None is
            `size`.
        padding: "valid" takes patches that are entirely inside; "same" pads with zeros, so that the length is divided
            by the stride and rounded up.
        data_format: "channels_last" for (depth, height, width, channels), "channels_first" for (channels, depth,
            height, width); None is "channels_last".

    See also: `extract_patches`, of images.

    Example:
        >>> ops.extract_patches_3d(ops.ones((4, 4, 4, 3)), 2).shape[-1]
        24
    """
    return extract_patches(
        volumes, shared_convolution.integers_per_axis(size, 3, "size"), strides, dilation_rate, padding, data_format
    )


def _floating_dtype(images: Tensor) -> DType:
    """Returns the dtype of images, which must be floating.

    Raises:
        DTypeError: if it is not floating.
    """
    images_dtype = dtype(images)
    if not images_dtype.is_floating:
        raise DTypeError(
            f"expected floating images with values from 0 to 1, got {images_dtype.name}; cast and scale them"
        )
    return images_dtype
