"""Image ops that sum weighted neighbouring pixels: resizing, blurring, edges, similarity.

Images are (height, width, channels), or a batch of them; with `data_format="channels_first"` (channels, height, width).
Dtype: that of the images, unless the op says otherwise. Integers are computed in the default float and half precision
in float32; then the result is rounded to the dtype of the images. Complex images raise `DTypeError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import DType, default_float
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.options import constant, is_number
from emberharmony.core.types import Tensor, TensorLike, Varying
from emberharmony.ops.arrays.indexing import get_item, take
from emberharmony.ops.arrays.shape import pad, stack
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import cast_option, dtype, result_type
from emberharmony.ops.elementwise.rounding import round, saturate_cast
from emberharmony.ops.math import add, divide, multiply, square, subtract
from emberharmony.ops.reductions.reduction import mean
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared.images import image as shared_image
    from emberharmony.backend.shared.images.image import Taps
    from emberharmony.backend.shared.neural import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")
    shared_image = Deferred("emberharmony.backend.shared.images.image")

_RESIZES = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


@op
def resize(
    images: TensorLike,
    size: Sequence[int],
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"] = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: Literal["constant"] = "constant",
    fill_value: Varying = 0.0,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns images resized to a height and width.

    Args:
        size: (height, width) of the result, in pixels.
        interpolation: "nearest", "bilinear", "bicubic" (the kernel of Keys with a = -1/2), "lanczos3" or "lanczos5".
        antialias: whether to widen the kernel where the image shrinks.
        crop_to_aspect_ratio: whether to crop the image first, about its centre, to the aspect ratio of `size`.
        pad_to_aspect_ratio: whether to pad the image first with `fill_value` to the aspect ratio of `size`.
        fill_mode: only "constant" is accepted: what `pad_to_aspect_ratio` adds is `fill_value`.
        fill_value: the value that `pad_to_aspect_ratio` adds: a number, or a tensor that broadcasts to the result.

    Raises:
        ArgumentError: if `interpolation` or `fill_mode` is unknown, or if both cropping and padding are requested.
        ShapeError: if there are no pixels.

    See also: `interpolate`, as in PyTorch; `scale_and_translate`, along any axes; `nn.Upsample`, the layer.

    Example:
        >>> ops.resize([[[1.0], [3.0]]], (1, 4)).tolist()
        [[[1.0], [1.5], [2.5], [3.0]]]

    Source: `jax.image.resize`.
    """
    size_pair = shared_convolution.integers_per_axis(size, 2, "size")
    axes = shared_image.spatial_axes(images.shape, data_format)
    if fill_mode != "constant":
        raise ArgumentError(f"expected fill_mode 'constant', got {fill_mode!r}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ArgumentError("expected crop_to_aspect_ratio or pad_to_aspect_ratio, got both")
    shared_image.check_method(interpolation, _RESIZES)
    if 0 in images.shape:
        raise ShapeError(f"expected images with pixels, got shape {tuple(images.shape)}")
    if crop_to_aspect_ratio:
        images = _fit_to_ratio(images, axes, size_pair)
    if pad_to_aspect_ratio:
        images = _fit_to_ratio(images, axes, size_pair, fill_value)
    axis_lengths = [
        (axis, images.shape[axis], target_length) for axis, target_length in zip(axes, size_pair, strict=True)
    ]
    if interpolation == "nearest":
        for axis, length, target_length in axis_lengths:
            images = take(images, shared_image.nearest_indices(length, target_length), axis)
        return images
    x = cast(images, shared_image.pixel_compute_dtype(dtype(images)))
    for axis, length, target_length in axis_lengths:
        if length != target_length:
            x = _sum_taps(
                x,
                shared_image.resampling_taps(
                    length, target_length, length / target_length, 0.0, interpolation, antialias
                ),
                axis,
            )
    return to_image_dtype(x, dtype(images))


@op
def scale_and_translate(
    images: TensorLike,
    output_shape: Sequence[int],
    scale: Tensor | Sequence[float] | float,
    translation: Tensor | Sequence[float] | float,
    spatial_dims: Sequence[int],
    method: Literal[
        "linear", "bilinear", "trilinear", "triangle", "cubic", "bicubic", "tricubic", "lanczos3", "lanczos5"
    ],
    antialias: bool = True,
) -> Tensor:
    """Returns images in which the content at position p moves to position `p * scale + translation` along some axes.

    Pixel i has the position i + 1/2. Pixels of the result that show a position outside the input are 0. `scale` and
    `translation` are read on the host, so they get no gradient.

    Args:
        images: a tensor of any number of axes; integers or floats.
        output_shape: the length of each axis of the result; axes that are not in `spatial_dims` keep their length.
        scale: one number, or one for each of `spatial_dims`.
        translation: in pixels of the result, in the same forms as `scale`.
        spatial_dims: the axes along which the content moves, from -ndim to ndim - 1.
        method: "linear" ("bilinear", "trilinear", "triangle"), "cubic" ("bicubic", "tricubic"), "lanczos3" or
            "lanczos5".
        antialias: whether to widen the kernel where the image shrinks.

    Raises:
        ArgumentError: if `method` is unknown, a scale is not positive, or a number is not finite.
        ShapeError: if `output_shape` changes the length of an axis that is not in `spatial_dims`.
        AxisError: if an axis in `spatial_dims` is out of range.

    See also: `resize`, by a size; `affine_transform`, with rotation.

    Example:
        >>> ops.scale_and_translate([1.0, 3.0], (4,), [2.0], [0.0], (0,), "linear").tolist()
        [1.0, 1.5, 2.5, 3.0]

    Source: `jax.image.scale_and_translate`.
    """
    shared_image.check_method(method)
    axes = nonnegative_axes(tuple(spatial_dims), images.ndim)
    scales = shared_image.numbers_per_axis(_on_host("scale", scale), len(axes), "scale")
    offsets = shared_image.numbers_per_axis(
        _on_host("translation", translation), len(axes), "translation", positive=False
    )
    result_shape = tuple(output_shape)
    other_axes = [a for a in range(images.ndim) if a not in axes]
    if len(result_shape) != images.ndim or any(result_shape[a] != images.shape[a] for a in other_axes):
        raise ShapeError(
            f"shape {tuple(images.shape)} can change along axes {axes} only, got output_shape {result_shape}"
        )
    if any(images.shape[a] == 0 for a in axes):
        raise ShapeError(f"expected images with pixels along axes {axes}, got shape {tuple(images.shape)}")
    x = cast(images, shared_image.pixel_compute_dtype(dtype(images)))
    for axis, factor, offset in zip(axes, scales, offsets, strict=True):
        x = _sum_taps(
            x,
            shared_image.resampling_taps(x.shape[axis], result_shape[axis], 1.0 / factor, offset, method, antialias),
            axis - x.ndim,
        )
    return to_image_dtype(x, dtype(images))


@op
def gaussian_blur(
    images: TensorLike,
    kernel_size: int | Sequence[int] = (3, 3),
    sigma: Tensor | Sequence[float] | float = (1.0, 1.0),
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns images smoothed by a Gaussian kernel; pixels outside the images count as zeros.

    Args:
        kernel_size: (height, width) of the kernel, in pixels; its weights sum to 1.
        sigma: the standard deviations of the kernel down and across, in pixels.

    Raises:
        ArgumentError: if the kernel is empty or a `sigma` is not positive.

    See also: `conv`, with any kernel.

    Example:
        >>> ops.gaussian_blur([[[1.0], [1.0]]], 1).tolist()
        [[[1.0], [1.0]]]
    """
    axes, x = (
        shared_image.spatial_axes(images.shape, data_format),
        cast(images, shared_image.pixel_compute_dtype(dtype(images))),
    )
    kernel_lengths, sigmas = (
        shared_convolution.integers_per_axis(kernel_size, 2, "kernel_size"),
        shared_image.numbers_per_axis(_on_host("sigma", sigma), 2, "sigma"),
    )
    for axis, kernel_length, sigma_of_axis in zip(axes, kernel_lengths, sigmas, strict=True):
        left_padding, length = (kernel_length - 1) // 2, max(x.shape[axis], 1)
        # Weights that only meet pixels outside the image would multiply zeros, so leave them out.
        first_weight, weight_end = max(left_padding - length + 1, 0), min(left_padding + length, kernel_length)
        x = _correlate(
            _pad_axis(x, axis, left_padding - first_weight, weight_end - 1 - left_padding),
            shared_image.gaussian_window(kernel_length, sigma_of_axis)[first_weight:weight_end],
            axis,
        )
    return to_image_dtype(x, dtype(images))


@op
def sobel_edges(images: TensorLike, data_format: Literal["channels_last", "channels_first"] | None = None) -> Tensor:
    """Returns the Sobel derivatives of images, down and across; edge pixels are repeated outside the images.

    Shape: that of the images with a last axis of length 2 added. Dtype: integers become the default float.

    See also: `gaussian_blur`, to smooth before.

    Example:
        >>> ops.sobel_edges([[[1.0], [2.0], [4.0]]]).tolist()
        [[[[0.0, 4.0]], [[0.0, 12.0]], [[0.0, 8.0]]]]

    Source: `scipy.ndimage.sobel`.
    """
    height_axis, width_axis = shared_image.spatial_axes(images.shape, data_format)
    wide_images = cast(images, shared_image.pixel_compute_dtype(dtype(images)))
    x = pad(wide_images, [(int(a - images.ndim in (height_axis, width_axis)),) * 2 for a in range(images.ndim)], "edge")
    edges = [
        _correlate(_correlate(x, (-1.0, 0.0, 1.0), slope_axis), (1.0, 2.0, 1.0), smoothing_axis)
        for slope_axis, smoothing_axis in ((height_axis, width_axis), (width_axis, height_axis))
    ]
    return cast(stack(edges, -1), _floating_or_default(dtype(images)))


@op
def ssim(
    image1: TensorLike,
    image2: TensorLike,
    max_val: Varying = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: Varying = 0.01,
    k2: Varying = 0.03,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns the structural similarity of two images, from -1 to 1, as the mean over all windows and channels.

    Args:
        image1: (height, width, channels), or a batch of them, at least as large as the window.
        image2: the images to compare with, in the same shape.
        max_val: the largest value that a pixel can have.
        filter_size: the side length of the Gaussian window, in pixels.
        filter_sigma: the standard deviation of the window, in pixels.
        k1: keeps the quotient of dark windows finite; `(k1 * max_val)**2` is added to it.
        k2: keeps the quotient of flat windows finite; `(k2 * max_val)**2` is added to it.

    Shape: that of the batch. Dtype: the promoted dtype of both; integers become the default float.

    Raises:
        ShapeError: if the shapes differ, or if the images are smaller than the window.

    See also: `psnr`, by squares.

    Example:
        >>> ops.ssim(ops.ones((11, 11, 1)), ops.ones((11, 11, 1))).tolist()
        1.0

    Source: Wang et al., Image quality assessment: from error visibility to structural similarity, 2004, section III.
    """
    axes = shared_image.spatial_axes(image1.shape, data_format)
    if tuple(image1.shape) != tuple(image2.shape):
        raise ShapeError(f"expected images of the same shape, got {tuple(image1.shape)} and {tuple(image2.shape)}")
    if min(image1.shape[a] for a in axes) < filter_size:
        raise ShapeError(f"images of shape {tuple(image1.shape)} are smaller than filter_size={filter_size}")
    result_dtype = result_type(image1, image2)
    x, y = (
        cast(image1, shared_image.pixel_compute_dtype(result_dtype)),
        cast(image2, shared_image.pixel_compute_dtype(result_dtype)),
    )
    (window_length, _), (window_sigma, _) = (
        shared_convolution.integers_per_axis(filter_size, 2, "filter_size"),
        shared_image.numbers_per_axis(filter_sigma, 2, "filter_sigma"),
    )
    weights = shared_image.gaussian_window(window_length, window_sigma)

    def smooth(z: Tensor) -> Tensor:
        for axis in axes:
            z = _correlate(z, weights, axis)
        return z

    mean1, mean2 = smooth(x), smooth(y)
    mean_product, mean_squares = multiply(mean1, mean2), add(square(mean1), square(mean2))
    covariance = subtract(smooth(multiply(x, y)), mean_product)
    variances = subtract(smooth(add(square(x), square(y))), mean_squares)
    value_range = cast_option("max_val", max_val, x)
    stabilizer1, stabilizer2 = (
        _stabilizer(cast_option(name, k, x), value_range) for name, k in (("k1", k1), ("k2", k2))
    )
    numerator = multiply(add(multiply(mean_product, 2.0), stabilizer1), add(multiply(covariance, 2.0), stabilizer2))
    similarity = divide(numerator, multiply(add(mean_squares, stabilizer1), add(variances, stabilizer2)))
    return cast(mean(similarity, (-3, -2, -1)), _floating_or_default(result_dtype))


def _stabilizer(k: Any, limit: Any) -> Any:
    return (k * limit) ** 2 if is_number(k) and is_number(limit) else square(multiply(k, limit))


def _on_host(name: str, value: Any) -> Any:
    """Returns numbers as host values; Python numbers are unchanged, so they keep all their digits."""
    return to_numpy(constant(name, value)) if hasattr(value, "dtype") else value


def _floating_or_default(kind: DType) -> DType:
    return kind if kind.is_floating else default_float()


def to_image_dtype(x: Tensor, kind: DType) -> Tensor:
    """Returns computed pixels in the dtype of the images; integers and booleans are rounded and clipped."""
    return cast(x, kind) if kind.is_floating else saturate_cast(round(x), kind)


def _sum_taps(x: Tensor, taps: Taps, axis: int) -> Tensor:
    """Returns the sums of weighted slices of an axis, which is counted from the end."""
    device = get_device(x)
    tap_sum: Any = None
    tap_positions = convert_to_tensor(taps.places, device=device)
    tap_weights = convert_to_tensor(
        taps.weights.reshape(*taps.weights.shape, *[1] * (-axis - 1)), dtype(x), device=device
    )
    for tap_index in range(len(taps.places)):
        weighted_tap = multiply(take(x, get_item(tap_positions, tap_index), axis), get_item(tap_weights, tap_index))
        tap_sum = weighted_tap if tap_sum is None else add(tap_sum, weighted_tap)
    return tap_sum


def _correlate(x: Tensor, weights: Sequence[float], axis: int) -> Tensor:
    """Returns the correlation with weights along an axis, which is counted from the end."""
    result_length = x.shape[axis] - len(weights) + 1
    weighted_sum: Any = None
    for offset, weight in enumerate(weights):
        if weight:
            weighted_slice = multiply(
                get_item(x, (..., slice(offset, offset + result_length), *[slice(None)] * (-axis - 1))), weight
            )
            weighted_sum = weighted_slice if weighted_sum is None else add(weighted_sum, weighted_slice)
    return weighted_sum


def _pad_axis(x: Tensor, axis: int, before: int, after: int, value: Any = None) -> Tensor:
    """Returns `x` with a value added on both sides of an axis, which is counted from the end."""
    paddings = [(before, after) if a - x.ndim == axis else (0, 0) for a in range(x.ndim)]
    return pad(x, paddings, constant_values=value) if before or after else x


def _fit_to_ratio(x: Tensor, axes: Sequence[int], target: Sequence[int], fill_value: Any = None) -> Tensor:
    """Returns images cropped or padded, equally on both sides, to the aspect ratio of the target."""
    lengths = [x.shape[a] for a in axes]
    for axis, length, fitted_length in zip(axes, lengths, shared_image.proportional_size(lengths, target), strict=True):
        if fill_value is not None:
            margin = max(fitted_length - length, 0) // 2
            x = _pad_axis(x, axis, margin, margin, fill_value)
        else:
            cropped_length = max(min(length, fitted_length), 1)
            start = (length - cropped_length) // 2
            x = get_item(x, (..., slice(start, start + cropped_length), *[slice(None)] * (-axis - 1)))
    return x
