"""Layers that enlarge or shrink the spatial axes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, brief
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice, length
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike

_AXES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
"""By mode, the number of spatial axes; other modes take one to three."""
_MODES = ("nearest", "nearest-exact", "area", *_AXES)
_CUBIC = -0.75
"""The parameter of the cubic kernel of Keys, as in PyTorch."""


class Upsample(Module):
    """Resizes the spatial axes by interpolation.

    Shape: (batch, channels, *spatial) to (batch, channels, *size).

    Args:
        size: the lengths of the spatial axes of the output, or one integer for all.
        scale_factor: instead of `size`, the number that multiplies each length, or one for each axis; the result is
            rounded down.
        mode: "nearest"; "linear", "bilinear" or "trilinear", by the number of spatial axes; "bicubic" for two; or
            "nearest-exact" and "area" of `torch.nn.functional.interpolate`.
        align_corners: whether the centres of the first and last elements keep their places, rather than the edges;
            None is False.
        recompute_scale_factor: whether positions follow from the rounded lengths rather than from `scale_factor`.
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
        self.mode, self.align_corners = choice("mode", mode, _MODES), align_corners
        self.data_format = spatial.data_format(data_format)
        if (size is None) == (scale_factor is None):
            raise fault(ArgumentError("give either size or scale_factor"))
        if align_corners is not None and mode not in _AXES:
            raise fault(ArgumentError(f"align_corners belongs to {', '.join(map(repr, _AXES))}, not to {mode!r}"))
        if recompute_scale_factor and size is not None:
            raise fault(ArgumentError("recompute_scale_factor needs scale_factor, not size"))
        self.recompute_scale_factor = recompute_scale_factor
        self.size = _each(size, lambda value: length("size", value)) if size is not None else None
        self.scale_factor = _each(scale_factor, _factor) if scale_factor is not None else None

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.tensor(x)
        n = len(x.shape) - 2
        if n != _AXES.get(self.mode, n) or not 1 <= n <= 3:
            wanted = _AXES.get(self.mode, "one to three")
            raise fault(
                ShapeError(
                    f"mode {self.mode!r} takes a batch, channels and {wanted} spatial axes, got {tuple(x.shape)}"
                )
            )
        first = 1 if self.data_format == "channels_last" else 2
        axes = tuple(range(first, first + n))
        lengths = [x.shape[axis] for axis in axes]
        if 0 in lengths:
            raise fault(ShapeError(f"expected spatial axes with elements, got shape {tuple(x.shape)}"))
        size, steps = self._geometry(lengths)
        if self.mode == "area":
            return ops.adaptive_average_pool(x, size, self.data_format)
        if self.mode.startswith("nearest"):
            found: Tensor = x
            for axis, count, wanted, step in zip(axes, lengths, size, steps, strict=True):
                found = _nearest(found, axis, count, wanted, step, 0.5 if self.mode == "nearest-exact" else 0.0)
            return found
        kind = ops.dtype(x)
        if not kind.is_floating:
            raise fault(DTypeError(f"mode {self.mode!r} takes a floating tensor, got {kind.name}; cast it"))
        if self.mode == "bicubic":
            return _cubic(x, axes, size, steps, bool(self.align_corners))
        shape = list(x.shape)
        scales, offsets = [], []
        for axis, count, wanted, step in zip(axes, lengths, size, steps, strict=True):
            scale, offset = 1 / step, 0.0
            if self.align_corners and count > 1:
                # The first element stays at its place, which is 1/2 in both images.
                scale = (wanted - 1) / (count - 1) if wanted > 1 else 1.0
                offset = 0.5 - 0.5 * scale
            elif self.align_corners:
                scale = float(wanted)
            scales.append(scale)
            offsets.append(offset)
            shape[axis] = wanted
        return ops.scale_and_translate(x, shape, scales, offsets, axes, "linear", False)

    def _geometry(self, lengths: Sequence[int]) -> tuple[list[int], list[float]]:
        """Returns the lengths of the output, and by how much the position in the input grows from one to the next."""
        given: Any = self.size if self.size is not None else self.scale_factor
        values = given if isinstance(given, tuple) else (given,) * len(lengths)
        if len(values) != len(lengths):
            name = "size" if self.size is not None else "scale_factor"
            raise fault(ShapeError(f"{name}={given} does not fit {len(lengths)} spatial axes"))
        if self.size is not None:
            return list(values), [count / wanted for count, wanted in zip(lengths, values, strict=True)]
        size = [math.floor(count * factor) for count, factor in zip(lengths, values, strict=True)]
        if min(size) < 1:
            raise fault(ShapeError(f"scale_factor={given} leaves no elements of spatial axes {tuple(lengths)}"))
        if self.recompute_scale_factor:
            return size, [count / wanted for count, wanted in zip(lengths, size, strict=True)]
        return size, [1 / factor for factor in values]


class UpsamplingNearest2d(Upsample):
    """Resizes images by their nearest pixels: `Upsample` with this mode.

    Args:
        size: the height and width of the output, or one integer for both.
        scale_factor: instead of `size`, the number that multiplies the height and width, or one for each.
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
        size: the height and width of the output, or one integer for both.
        scale_factor: instead of `size`, the number that multiplies the height and width, or one for each.
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


def _each(value: Any, check: Callable[[Any], Any]) -> Any:
    return tuple(map(check, value)) if isinstance(value, (tuple, list)) else check(value)


def _factor(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault(ArgumentTypeError(f"scale_factor must be a number, or one for each axis, got {brief(value)}"))
    if not 0 < value < math.inf:
        raise fault(ArgumentError(f"scale_factor must be positive, got {value}"))
    return float(value)


def _single(value: float) -> float:
    """Returns a number rounded to the 24 bits of float32, by arithmetic that `torch.compile` can trace."""
    wide = value * (2**29 + 1)
    return wide - (wide - value)


def _nearest(x: Tensor, axis: int, count: int, wanted: int, step: float, centre: float) -> Tensor:
    """Returns the nearest elements along an axis, at the positions that PyTorch computes in float32."""
    if wanted % count == 0 and step * wanted == count:
        return x if wanted == count else ops.repeat(x, wanted // count, axis)
    step = _single(step)
    places = [min(math.floor(_single((place + centre) * step)), count - 1) for place in range(wanted)]
    return ops.take(x, ops.convert_to_tensor(places, device=ops.get_device(x)), axis)


def _cubic(x: Tensor, axes: Sequence[int], size: Sequence[int], steps: Sequence[float], corners: bool) -> Tensor:
    """Returns a tensor resized by the cubic kernel; elements at the edges are repeated outside."""
    kind = ops.dtype(x)
    if kind.bits == 16:
        x = ops.cast(x, "float32")
    for axis, wanted, step in zip(axes, size, steps, strict=True):
        count = x.shape[axis]
        if corners:
            step = (count - 1) / (wanted - 1) if wanted > 1 else 0.0
        positions = [place * step if corners else (place + 0.5) * step - 0.5 for place in range(wanted)]
        starts = [math.floor(position) for position in positions]
        rests = [position - start for position, start in zip(positions, starts, strict=True)]
        device = ops.get_device(x)
        total: Any = None
        for tap in range(-1, 3):
            places = [min(max(start + tap, 0), count - 1) for start in starts]
            part = ops.take(x, ops.convert_to_tensor(places, device=device), axis)
            shares = [_keys(abs(rest - tap)) for rest in rests]
            weights = ops.convert_to_tensor(shares, ops.dtype(x), device=device)
            part = ops.multiply(part, ops.reshape(weights, (-1, *[1] * (len(x.shape) - axis - 1))))
            total = part if total is None else ops.add(total, part)
        x = total
    return ops.cast(x, kind)


def _keys(distance: float) -> float:
    """Returns the cubic kernel at a distance of at most 2."""
    if distance <= 1:
        return ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance * distance + 1
    return ((distance - 5) * distance + 8) * distance * _CUBIC - 4 * _CUBIC
