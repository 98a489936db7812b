"""Interpolation of batches along their spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.errors import DTypeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.indexing import take
from emberharmony.ops.arrays.shape import repeat, reshape
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype
from emberharmony.ops.images.resampling import scale_and_translate
from emberharmony.ops.math import add, multiply
from emberharmony.ops.neural.pooling import adaptive_average_pool
from emberharmony.ops.tensor import cast, convert_to_tensor

if TYPE_CHECKING:
    from emberharmony.backend.shared.images import interpolation as shared_interpolation
    from emberharmony.backend.shared.images.interpolation import Geometry
    from emberharmony.backend.shared.neural import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")
    shared_interpolation = Deferred("emberharmony.backend.shared.images.interpolation")


@op
def interpolate(
    x: TensorLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: Literal["nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic", "trilinear"] = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    data_format: Literal["channels_last", "channels_first"] | None = None,
) -> Tensor:
    """Returns a batch whose spatial axes are resized by interpolation.

    Args:
        x: (batch, *spatial, channels), or (batch, channels, *spatial); see `data_format`.
        size: the lengths of the spatial axes of the result, or one integer for all; None takes `scale_factor`.
        scale_factor: the number that multiplies each length, or one for each axis; the result is rounded down. None
            takes `size`.
        mode: "nearest"; "linear", "bilinear" or "trilinear", by the number of spatial axes; "bicubic" for two (the
            kernel of Keys with a = -3/4); "nearest-exact", which measures from the centres of the elements; or "area",
            which is `adaptive_average_pool`.
        align_corners: whether the centres of the first and last elements keep their places, rather than the edges; None
            is False. It belongs to the modes other than "nearest", "nearest-exact" and "area".
        recompute_scale_factor: whether positions follow from the rounded lengths rather than from `scale_factor`; None
            is False.
        data_format: "channels_last" (None) for (batch, *spatial, channels), or "channels_first" for (batch, channels,
            *spatial).

    Dtype: that of `x`. "nearest" and "nearest-exact" take every dtype, "area" makes integers the default float, and the
    other modes take floating dtypes; they compute half precision in float32.

    Raises:
        ArgumentError: if an option is wrong, or does not belong to the others.
        DTypeError: if the mode needs a floating dtype.
        ShapeError: if the number of axes does not fit, or if an axis has no elements before or after.

    See also: `resize`, as in Keras; `nn.Upsample`, the layer.

    Example:
        >>> ops.interpolate([[[1.0], [3.0]]], 3, mode="linear", align_corners=True).tolist()
        [[[1.0], [2.0], [3.0]]]
        >>> ops.interpolate([[[1, 3]]], scale_factor=2, data_format="channels_first").tolist()
        [[[1, 1, 3, 3]]]

    Source: `torch.nn.functional.interpolate`.
    """
    is_channels_last = shared_convolution.has_channels_last(data_format)
    aligns_corners = bool(align_corners)
    geometry = shared_interpolation.interpolation_geometry(
        x.shape, size, scale_factor, mode, align_corners, recompute_scale_factor, is_channels_last
    )
    if mode == "area":
        return adaptive_average_pool(x, geometry.size, data_format)
    if mode in ("nearest", "nearest-exact"):
        resized_x: Tensor = x
        for axis, count, output_length, step in zip(*geometry, strict=True):
            resized_x = _resize_nearest(
                resized_x, axis, count, output_length, step, 0.5 if mode == "nearest-exact" else 0.0
            )
        return resized_x
    x_dtype = dtype(x)
    if not x_dtype.is_floating:
        raise DTypeError(f"mode {mode!r} takes a floating tensor, got {x_dtype.name}; cast it")
    if mode == "bicubic":
        return _resize_cubic(x, geometry, aligns_corners)
    output_shape = list(x.shape)
    scales, offsets = [], []
    for axis, count, output_length, step in zip(*geometry, strict=True):
        scale, offset = 1 / step, 0.0
        if aligns_corners and count > 1:
            # The first element stays at its place, which is 1/2 in both images.
            scale = (output_length - 1) / (count - 1) if output_length > 1 else 1.0
            offset = 0.5 - 0.5 * scale
        elif aligns_corners:
            scale = float(output_length)
        scales.append(scale)
        offsets.append(offset)
        output_shape[axis] = output_length
    return scale_and_translate(x, output_shape, scales, offsets, geometry.axes, "linear", False)


def _resize_nearest(x: Tensor, axis: int, count: int, output_length: int, step: float, centre: float) -> Tensor:
    """Returns the nearest elements along an axis."""
    if output_length % count == 0 and step * output_length == count:
        return x if output_length == count else repeat(x, output_length // count, axis)
    source_positions = shared_interpolation.nearest_source_indices(count, output_length, step, centre)
    return take(x, convert_to_tensor(source_positions, device=get_device(x)), axis)


def _resize_cubic(x: Tensor, plan: Geometry, corners: bool) -> Tensor:
    """Returns a tensor resized by the cubic kernel; elements at the edges are repeated outside."""
    x_dtype = dtype(x)
    x = cast(x, "float32") if x_dtype.bits == 16 else x
    for axis, count, output_length, step in zip(*plan, strict=True):
        device = get_device(x)
        tap_sum: Any = None
        for positions, tap_weights in shared_interpolation.cubic_taps(count, output_length, step, corners):
            tap_values = take(x, convert_to_tensor(positions, device=device), axis)
            weight_tensor = convert_to_tensor(tap_weights, dtype(x), device=device)
            tap_values = multiply(tap_values, reshape(weight_tensor, (-1, *[1] * (len(x.shape) - axis - 1))))
            tap_sum = tap_values if tap_sum is None else add(tap_sum, tap_values)
        x = tap_sum
    return cast(x, x_dtype)
