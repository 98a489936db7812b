"""Layers that resize the spatial axes of images by interpolation."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony import ops
from emberharmony.backend.shared.images.interpolation import AXES, MODES
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, length_option
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class Upsample(Module):
    """Resizes the spatial axes by interpolation.

    Shape: (batch, channels, *spatial) to (batch, channels, *size).

    Args:
        size: the lengths of the spatial axes of the output, or one integer for all; None takes `scale_factor`.
        scale_factor: the number that multiplies each length, or one for each axis; the result is rounded down. None
            takes `size`.
        mode: "nearest"; "linear", "bilinear" or "trilinear", by the number of spatial axes; "bicubic" for two; or
            "nearest-exact" and "area" of `torch.nn.functional.interpolate`.
        align_corners: whether the centres of the first and last elements keep their places, rather than the edges;
            None is False.
        recompute_scale_factor: whether positions follow from the rounded lengths rather than from `scale_factor`; None
            is False.
        data_format: "channels_last" if the channels come after the spatial axes.

    Dtype: "nearest" and "nearest-exact" take every dtype, "area" makes integers the default float, and the other modes
    take floating dtypes.

    Raises:
        ArgumentError: if `mode` is unknown, if not one of `size` and `scale_factor` is given, or if `align_corners` is
            given with a mode that does not have it.

    Example:
        >>> nn.Upsample(scale_factor=2)([[[1.0, 3.0]]]).tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
        >>> nn.Upsample(3, mode="linear", align_corners=True)([[[1.0, 3.0]]]).tolist()
        [[[1.0, 2.0, 3.0]]]
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        self.mode, self.align_corners = choice_option("mode", mode, MODES), align_corners
        self.data_format = spatial.checked_data_format(data_format)
        if (size is None) == (scale_factor is None):
            raise fault(ArgumentError("give either size or scale_factor"))
        if align_corners is not None and mode not in AXES:
            raise fault(ArgumentError(f"align_corners belongs to {', '.join(map(repr, AXES))}, not to {mode!r}"))
        if recompute_scale_factor and size is not None:
            raise fault(ArgumentError("recompute_scale_factor needs scale_factor, not size"))
        self.recompute_scale_factor = recompute_scale_factor
        self.size = _checked_each(size, lambda value: length_option("size", value)) if size is not None else None
        self.scale_factor = _checked_each(scale_factor, _scale_factor) if scale_factor is not None else None

    def __call__(self, x: TensorLike) -> Tensor:
        mode: Any = self.mode
        upsampling_options = self.size, self.scale_factor, mode, self.align_corners, self.recompute_scale_factor
        return ops.interpolate(x, *upsampling_options, self.data_format)


class UpsamplingNearest2d(Upsample):
    """Resizes images by their nearest pixels: `Upsample` with this mode.

    Args:
        size: the height and width of the output, or one integer for both; None takes `scale_factor`.
        scale_factor: the number that multiplies the height and width, or one for each; None takes `size`.
        data_format: "channels_last" if the channels come after the spatial axes.

    Example:
        >>> nn.UpsamplingNearest2d((1, 4))([[[[1.0, 3.0]]]]).tolist()
        [[[[1.0, 1.0, 3.0, 3.0]]]]
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        super().__init__(size, scale_factor, data_format=data_format)


class UpsamplingBilinear2d(Upsample):
    """Resizes images by bilinear interpolation between the corners: `Upsample` with `align_corners=True`.

    Args:
        size: the height and width of the output, or one integer for both; None takes `scale_factor`.
        scale_factor: the number that multiplies the height and width, or one for each; None takes `size`.
        data_format: "channels_last" if the channels come after the spatial axes.

    Example:
        >>> nn.UpsamplingBilinear2d((1, 3))([[[[1.0, 3.0]]]]).tolist()
        [[[[1.0, 2.0, 3.0]]]]
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        *,
        data_format: DataFormat = "channels_first",
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True, data_format=data_format)


def _checked_each(value: Any, check: Callable[[Any], Any]) -> Any:
    return tuple(map(check, value)) if isinstance(value, (tuple, list)) else check(value)


def _scale_factor(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault(ArgumentTypeError(f"scale_factor must be a number, or one for each axis, got {brief(value)}"))
    if not 0 < value < math.inf:
        raise fault(ArgumentError(f"scale_factor must be positive, got {value}"))
    return float(value)
