"""Geometric image transforms: each output pixel samples a position of the input.

`fill_mode` says how the image continues outside: "constant" (`fill_value`), "nearest" (the edge pixel), "wrap" (the
image repeats), "mirror" (mirrored about the centre of the edge pixel) or "reflect" (mirrored about the outer side of
the edge pixel). Layout and dtype are those of `ops/images/resampling.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.shared.random import Generator
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.options import as_number, constant
from emberharmony.core.types import Tensor, TensorLike, Varying
from emberharmony.ops.arrays.creation import arange, ones_like
from emberharmony.ops.arrays.indexing import get_item, take, where
from emberharmony.ops.arrays.shape import expand_dims, moveaxis, reshape, squeeze, unstack
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import cast_option, dtype, result_type
from emberharmony.ops.elementwise.rounding import floor, round, trunc
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.images.resampling import gaussian_blur, to_image_dtype
from emberharmony.ops.logic.comparison import equal, greater_equal, less, logical_and
from emberharmony.ops.math import absolute, add, clip, divide, minimum, mod, multiply, sign, subtract
from emberharmony.ops.random_ops import random_normal
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared.images import image as shared_image
else:
    shared_image = Deferred("emberharmony.backend.shared.images.image")

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
_FAR = 2.0**31
_ORDERS = {"nearest": 0, "bilinear": 1}


@op
def map_coordinates(
    inputs: TensorLike,
    coordinates: TensorLike,
    order: int,
    fill_mode: Literal["constant", "nearest", "wrap", "mirror", "reflect"] = "constant",
    fill_value: Varying = 0.0,
) -> Tensor:
    """Returns the values of a tensor at positions between its elements.

    With order 0, a position halfway between two elements takes the one farther from 0.

    Args:
        inputs: a tensor of any number of axes; integers or floats.
        coordinates: positions along each axis of `inputs`: its first axis has one entry for each axis of `inputs`.
        order: 0 (nearest element) or 1 (linear interpolation).

    Shape: that of `coordinates` without its first axis. Dtype: that of `inputs`.

    Raises:
        ArgumentError: if `order` or `fill_mode` is unknown.
        ShapeError: if `coordinates` does not have one row for each axis, or if `inputs` is empty.

    See also: `grid_sample`, of images; `interp`, along a line.

    Example:
        >>> ops.map_coordinates([1.0, 2.0, 4.0], [[0.5, 1.5, 9.0]], 1).tolist()
        [1.5, 3.0, 0.0]

    Source: `scipy.ndimage.map_coordinates`, its modes "grid-constant", "nearest", "grid-wrap", "mirror" and "reflect".
    """
    if as_index(order) not in (0, 1):
        raise ArgumentError(f"expected order 0 or 1, got {order!r}")
    if coordinates.ndim < 1 or inputs.ndim < 1 or coordinates.shape[0] != inputs.ndim:
        raise ShapeError(
            f"expected {inputs.ndim} rows of coordinates, one for each axis, got shape {tuple(coordinates.shape)}"
        )
    positions = unstack(to_device(coordinates, get_device(inputs)))
    sampled_rows = _rows_at(reshape(inputs, (-1, 1)), inputs.shape, positions, order, fill_mode, fill_value)
    return get_item(sampled_rows, (..., 0))


@op
def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: Literal["bilinear", "nearest"] = "bilinear",
    fill_mode: Literal["constant", "nearest", "wrap", "mirror", "reflect"] = "constant",
    fill_value: Varying = 0.0,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns images whose pixel (x, y) shows the input at `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`.

    There `k = c0 x + c1 y + 1`; where k is 0, the pixel shows position (-2, -2). Positions are in pixels, and 0 is the
    centre of the first pixel.

    Args:
        images: (height, width, channels), or a batch of them; with `data_format` the channels may come first.
        transform: the numbers `a0, a1, a2, b0, b1, b2, c0, c1`, of shape (8,), or one such row for each image.

    Raises:
        ArgumentError: if `interpolation` or `fill_mode` is unknown.
        ShapeError: if the shape of `transform` does not fit the images.

    See also: `perspective_transform`, by four points; `grid_sample`, by any positions.

    Example:
        >>> ops.affine_transform([[[1.0], [2.0], [4.0]]], [1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0]).tolist()
        [[[1.5], [3.0], [2.0]]]
    """
    x = _as_batch(images, data_format)
    image_count, height, width, _ = x.shape
    if tuple(transform.shape) not in ((8,), (1, 8), (image_count, 8)):
        raise ShapeError(f"expected transforms of shape (8,) or ({image_count}, 8), got {tuple(transform.shape)}")
    result_dtype = result_type(
        shared_image.pixel_compute_dtype(dtype(transform)), shared_image.pixel_compute_dtype(dtype(images))
    )
    coefficients = to_device(reshape(cast(transform, result_dtype), (-1, 8, 1, 1)), get_device(images))
    a0, a1, a2, b0, b1, b2, c0, c1 = unstack(coefficients, axis=1)
    column_grid, row_grid = _pixel_grid(height, width, coefficients)

    def transform_grid(first: Tensor, second: Tensor, third: Tensor) -> Tensor:
        return add(add(multiply(first, column_grid), multiply(second, row_grid)), third)

    divisor = transform_grid(c0, c1, ones_like(c0))
    is_horizon = equal(divisor, 0.0)
    divisor = where(is_horizon, 1.0, divisor)
    source_positions = [
        where(is_horizon, -2.0, divide(coordinate, divisor))
        for coordinate in (transform_grid(b0, b1, b2), transform_grid(a0, a1, a2))
    ]
    return _restore_layout(_pixels_at(x, source_positions, interpolation, fill_mode, fill_value), images, data_format)


@op
def grid_sample(
    images: TensorLike,
    grid: TensorLike,
    interpolation: Literal["bilinear", "nearest"] = "bilinear",
    fill_mode: Literal["constant", "nearest", "wrap", "mirror", "reflect"] = "constant",
    fill_value: Varying = 0.0,
    align_corners: bool = False,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the values of images, or of volumes, at positions that are a share of their sizes.

    A position has one number for each spatial axis, that of the last axis first: (x, y) in an image, (x, y, z) in a
    volume. -1 and 1 are the ends of an axis: the outer sides of the first and last pixels, or, with `align_corners`,
    their centres.

    Args:
        images: of shape (batch, height, width, channels) or (batch, depth, height, width, channels); with `data_format`
            the channels may be the second axis.
        grid: positions, of shape (batch, *size, number of spatial axes).
        interpolation: "bilinear", which is linear along each axis, or "nearest", where a position halfway between two
            pixels belongs to the one with the even index.
        align_corners: whether -1 and 1 are the centres of the first and last pixels; else they are their outer sides.
        data_format: "channels_last" for (batch, height, width, channels), "channels_first" for (batch, channels,
            height, width); None is "channels_last".

    Shape: (batch, *size, channels), or (batch, channels, *size) with `data_format="channels_first"`. Dtype: that of
    the images.

    Raises:
        ArgumentError: if `interpolation` or `fill_mode` is unknown.
        ShapeError: if the shape of `grid` does not fit the images.

    See also: `affine_transform`, by a matrix; `map_coordinates`, of any tensor.

    Example:
        >>> ops.image.grid_sample([[[[1.0], [2.0]]]], [[[[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]]]).tolist()
        [[[[1.5], [2.0], [1.0]]]]

    Source: Jaderberg et al., Spatial transformer networks, 2015. The positions are those of `torch.nn.functional`,
    whose padding modes "zeros", "border" and "reflection" are "constant", "nearest" and "reflect" (with
    `align_corners` "mirror") here.
    """
    spatial_count = len(grid.shape) - 2
    if (
        spatial_count < 1
        or len(images.shape) != spatial_count + 2
        or grid.shape[-1] != spatial_count
        or grid.shape[0] != images.shape[0]
    ):
        raise ShapeError(
            f"expected positions of shape (batch, *size, {max(len(images.shape) - 2, 1)}) for images of shape "
            f"{tuple(images.shape)}, got {tuple(grid.shape)}"
        )
    is_channels_last = shared_image.spatial_axes(images.shape, data_format, spatial_count)[0] == -spatial_count - 1
    x = images if is_channels_last else moveaxis(images, 1, -1)
    wide_dtype = shared_image.pixel_compute_dtype(dtype(grid))
    axis_shares = unstack(cast(to_device(grid, get_device(images)), wide_dtype), axis=-1)[::-1]
    source_positions = [
        multiply(add(axis_share, 1.0), (size - 1) / 2)
        if align_corners
        else subtract(multiply(add(axis_share, 1.0), size / 2), 0.5)
        for axis_share, size in zip(axis_shares, x.shape[1:-1], strict=True)
    ]
    if interpolation == "nearest":
        source_positions = [round(position) for position in source_positions]
    sampled_pixels = _pixels_at(x, source_positions, interpolation, fill_mode, fill_value)
    return sampled_pixels if is_channels_last else moveaxis(sampled_pixels, -1, 1)


@op
def perspective_transform(
    images: TensorLike,
    start_points: Tensor | Sequence[Any],
    end_points: Tensor | Sequence[Any],
    interpolation: Literal["bilinear", "nearest"] = "bilinear",
    fill_value: Varying = 0.0,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns images warped so that four points of each image move to four other points.

    The points are read on the host, so they get no gradient.

    Args:
        start_points: the points (x, y) in the input, of shape (4, 2) or (batch, 4, 2), in pixels.
        end_points: the points (x, y) in the result, of the same shape.

    Raises:
        ArgumentError: if `interpolation` is unknown.
        ShapeError: if the points have another shape.
        LinAlgError: if three of the end points are on one line.

    See also: `affine_transform`, by a matrix.

    Example:
        >>> corners = [[0, 0], [2, 0], [0, 2], [2, 2]]
        >>> moved = [[x + 1, y] for x, y in corners]
        >>> ops.perspective_transform([[[1.0], [2.0], [4.0]]], corners, moved).tolist()
        [[[0.0], [1.0], [2.0]]]
    """
    corner_points = [
        to_numpy(constant("start_points or end_points", corner_points))
        if hasattr(corner_points, "dtype")
        else corner_points
        for corner_points in (start_points, end_points)
    ]
    homography = shared_image.homography(*corner_points)
    coefficients = convert_to_tensor(
        homography, shared_image.pixel_compute_dtype(dtype(images)), device=get_device(images)
    )
    return affine_transform(images, coefficients, interpolation, "constant", fill_value, data_format)


@op
def elastic_transform(
    images: TensorLike,
    alpha: Varying = 20.0,
    sigma: float = 5.0,
    interpolation: Literal["bilinear", "nearest"] = "bilinear",
    fill_mode: Literal["constant", "nearest", "wrap", "mirror", "reflect"] = "reflect",
    fill_value: Varying = 0.0,
    seed: Any = None,
    data_format: Literal["channels_last", "channels_first"] | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns images whose pixels are moved by smooth random displacements, with new displacements for each image.

    Args:
        alpha: how far pixels move: the factor of the smoothed normal random numbers of standard deviation `sigma`.
        sigma: how smooth the displacements are: the standard deviation of the Gaussian kernel, in pixels.
        seed: an integer or a `Generator`, from which every backend draws the same displacements; None draws from the
            default stream.

    Raises:
        ArgumentError: if `interpolation` or `fill_mode` is unknown, or if `sigma` is not positive.

    See also: `affine_transform`, without chance.

    Source: Simard et al., Best practices for convolutional neural networks applied to visual document analysis, 2003,
    section 2.
    """
    x = _as_batch(images, data_format)
    image_count, height, width, _ = x.shape
    sigma = as_number("sigma", sigma)
    noise = random_normal((image_count, height, width, 2), 0.0, sigma, "float32", seed, generator)
    displacements = gaussian_blur(to_device(noise, get_device(images)), shared_image.smoothing_size(sigma), sigma)
    column_grid, row_grid = _pixel_grid(height, width, displacements)
    scaled_displacements = unstack(multiply(displacements, cast_option("alpha", alpha, displacements)), axis=-1)
    source_positions = [add(row_grid, scaled_displacements[1]), add(column_grid, scaled_displacements[0])]
    return _restore_layout(_pixels_at(x, source_positions, interpolation, fill_mode, fill_value), images, data_format)


def _as_batch(images: Tensor, data_format: Literal["channels_last", "channels_first"] | None) -> Tensor:
    """Returns images as a batch with the channels on the last axis."""
    is_channels_last = shared_image.spatial_axes(images.shape, data_format)[0] == -3
    x = images if is_channels_last else moveaxis(images, -3, -1)
    return x if x.ndim == 4 else expand_dims(x, 0)


def _restore_layout(
    batch: Tensor, images: Tensor, data_format: Literal["channels_last", "channels_first"] | None
) -> Tensor:
    """Returns a batch with the channels on the last axis in the layout of the images."""
    x = batch if images.ndim == 4 else squeeze(batch, 0)
    return x if shared_image.spatial_axes(images.shape, data_format)[0] == -3 else moveaxis(x, -1, -3)


def _pixel_grid(height: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the positions of pixels across, (width,), and down, (height, 1), on the device of a tensor."""
    column_numbers, row_numbers = (arange(n, dtype=dtype(like), device=get_device(like)) for n in (width, height))
    return column_numbers, expand_dims(row_numbers, -1)


def _pixels_at(x: Tensor, places: Sequence[Tensor], interpolation: str, mode: str, value: Any) -> Tensor:
    """Returns the pixels of a batch at positions along each spatial axis."""
    if interpolation not in _ORDERS:
        raise ArgumentError(f"expected interpolation to be one of {', '.join(_ORDERS)}, got {interpolation!r}")
    image_count, *spatial_shape, channels = x.shape
    image_index = reshape(arange(image_count, device=get_device(x)), (image_count, *[1] * len(spatial_shape)))
    pixels = reshape(x, (image_count * math.prod(spatial_shape), channels))
    return _rows_at(pixels, spatial_shape, places, _ORDERS[interpolation], mode, value, image_index)


def _rows_at(
    rows: Tensor,
    shape: Sequence[int],
    places: Sequence[Tensor],
    order: int,
    mode: str,
    value: Any,
    first: Tensor | None = None,
) -> Tensor:
    """Returns rows, which hold the elements of a tensor of a shape, at positions along each axis of that shape.

    Args:
        first: for each position, the index of the block of rows to sample, if the rows hold several such tensors.
    """
    if mode not in _MODES:
        raise ArgumentError(f"expected fill_mode to be one of {', '.join(_MODES)}, got {mode!r}")
    if 0 in shape:
        raise ShapeError(f"expected a tensor with elements, got shape {tuple(shape)}")
    rows_dtype = dtype(rows)
    wide_dtype = shared_image.pixel_compute_dtype(rows_dtype)
    is_varying = hasattr(value, "shape") or isinstance(value, list)
    outside_value = (
        cast_option("fill_value", value, rows) if is_varying else shared_image.clipped_pixel(value, rows_dtype)
    )
    table = cast(rows, wide_dtype) if order else rows
    weighted_sum: Any = None
    for corner in itertools.product(
        *(_neighbour_nodes(position, n, order, mode) for position, n in zip(places, shape, strict=True))
    ):
        row_index: Any = first
        is_inside: Any = None
        corner_weight: Any = None
        for n, (node, node_inside, share) in zip(shape, corner, strict=True):
            row_index = node if row_index is None else add(multiply(row_index, n), node)
            if node_inside is not None:
                is_inside = node_inside if is_inside is None else logical_and(is_inside, node_inside)
            if share is not None:
                corner_weight = share if corner_weight is None else multiply(corner_weight, share)
        corner_values = take(table, row_index, 0)
        if is_inside is not None:
            corner_values = where(expand_dims(is_inside, -1), corner_values, outside_value)
        if corner_weight is not None:
            corner_values = multiply(corner_values, expand_dims(cast(corner_weight, wide_dtype), -1))
        weighted_sum = corner_values if weighted_sum is None else add(weighted_sum, corner_values)
    return to_image_dtype(weighted_sum, rows_dtype) if order else cast(weighted_sum, rows_dtype)


def _neighbour_nodes(place: Tensor, n: int, order: int, mode: str) -> list[tuple[Tensor, Tensor | None, Tensor | None]]:
    """Returns the elements next to positions on an axis: their indices, whether they exist, and their weights.

    The second is None if all elements exist; the third is None if there is only one element.
    """
    x = cast(place, shared_image.pixel_compute_dtype(dtype(place)))
    if mode == "constant":
        x = clip(x, -1.0, float(n))
    elif mode == "nearest":
        x = clip(x, 0.0, float(n - 1))
    if order == 0:
        truncated_x = trunc(x)
        rounds_away = greater_equal(absolute(subtract(x, truncated_x)), 0.5)
        return [(*_element_index(add(truncated_x, where(rounds_away, sign(x), 0.0)), n, mode), None)]
    lower_index = floor(x)
    upper_share = subtract(x, lower_index)
    return [
        (*_element_index(lower_index, n, mode), subtract(1.0, upper_share)),
        (*_element_index(add(lower_index, 1.0), n, mode), upper_share),
    ]


def _element_index(number: Tensor, n: int, mode: str) -> tuple[Tensor, Tensor | None]:
    """Returns the index of the element at an integer position on an axis that is continued by `mode`.

    The second value is where the element exists, or None if it always does.
    """
    # Casting NaN or a huge float to int64 is undefined; replace them by 0.
    index = cast(stop_gradient(where(less(absolute(number), _FAR), number, 0.0)), "int64")
    if mode == "constant":
        return clip(index, 0, n - 1), logical_and(greater_equal(number, 0.0), less(number, float(n)))
    if mode == "nearest":
        return clip(index, 0, n - 1), None
    if mode == "wrap":
        return mod(index, n), None
    mirror_sum = 2 * n - 2 if mode == "mirror" else 2 * n - 1
    period = max(2 * n - 2, 1) if mode == "mirror" else 2 * n
    index = mod(index, period)
    return minimum(index, subtract(mirror_sum, index)), None
