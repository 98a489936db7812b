"""The geometry of the op `interpolate`: lengths, steps and positions that follow from its options."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from emberharmony.backend.shared.device import check_memory
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.options import constant

AXES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
"""By mode, the number of spatial axes; other modes take one to three."""
MODES = ("nearest", "nearest-exact", "area", *AXES)
_CUBIC = -0.75
"""The parameter of the cubic kernel of Keys, as in PyTorch."""


class Geometry(NamedTuple):
    """The spatial axes of an interpolation, their old and new lengths, and the steps between positions.

    Attributes:
        axes: the spatial axes.
        lengths: their lengths.
        size: those of the result.
        steps: by how much the position in the input grows from one element of the result to the next.
    """

    axes: tuple[int, ...]
    lengths: list[int]
    size: list[int]
    steps: list[float]


def interpolation_geometry(
    shape: Sequence[int], size: Any, scale_factor: Any, mode: str, corners: Any, recompute: Any, last: bool
) -> Geometry:
    """Returns the axes, lengths and steps of an interpolation, from the options of `interpolate`.

    Raises:
        ArgumentError: if an option is wrong, or does not belong to the others.
        OutOfMemoryError: if no memory holds the result.
        ShapeError: if the number of axes is wrong, or if an axis has no elements before or after.
    """
    if mode not in MODES:
        raise ArgumentError(f"mode is one of {', '.join(map(repr, MODES))}, not {mode!r:.60}")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("give either size or scale_factor")
    if corners is not None and mode not in AXES:
        raise ArgumentError(f"align_corners belongs to {', '.join(map(repr, AXES))}, not to {mode!r}")
    if recompute and size is not None:
        raise ArgumentError("recompute_scale_factor needs scale_factor, not size")
    n = len(shape) - 2
    if n != AXES.get(mode, n) or not 1 <= n <= 3:
        axes_text = AXES.get(mode, "one to three")
        raise ShapeError(f"mode {mode!r} takes a batch, channels and {axes_text} spatial axes, got {tuple(shape)}")
    axes = tuple(range(1, n + 1) if last else range(2, n + 2))
    lengths = [shape[axis] for axis in axes]
    if 0 in lengths:
        raise ShapeError(f"expected spatial axes with elements, got shape {tuple(shape)}")
    size_or_scale = scale_factor if size is None else size
    targets = tuple(size_or_scale) if isinstance(size_or_scale, (tuple, list)) else (size_or_scale,) * n
    argument_name = "scale_factor" if size is None else "size"
    constant(argument_name, targets, "the shape of the result depends on it")
    if len(targets) != n:
        raise ShapeError(f"{argument_name}={size_or_scale} does not fit {n} spatial axes")
    number_classes = (int, float) if size is None else (int,)
    if not all(
        isinstance(item, number_classes) and not isinstance(item, bool) and 0 < item < math.inf for item in targets
    ):
        axes_text = "a positive number" if size is None else "a positive integer"
        raise ArgumentError(f"{argument_name} is {axes_text}, or one for each axis, not {size_or_scale!r:.60}")
    if size is not None:
        check_memory(targets, 1)  # before the host lists the places of the elements
        return Geometry(axes, lengths, list(targets), [n / m for n, m in zip(lengths, targets, strict=True)])
    new_lengths = [math.floor(count * factor) for count, factor in zip(lengths, targets, strict=True)]
    check_memory(new_lengths, 1)
    if min(new_lengths) < 1:
        raise ShapeError(f"scale_factor={size_or_scale} leaves no elements of spatial axes {tuple(lengths)}")
    if recompute:
        return Geometry(axes, lengths, new_lengths, [n / m for n, m in zip(lengths, new_lengths, strict=True)])
    return Geometry(axes, lengths, new_lengths, [1 / factor for factor in targets])


def nearest_source_indices(count: int, target_count: int, step: float, centre: float) -> list[int]:
    """Returns the indices of the nearest elements along an axis, at the positions that PyTorch computes in float32."""
    step = _round_to_float32(step)
    return [min(math.floor(_round_to_float32((index + centre) * step)), count - 1) for index in range(target_count)]


def _round_to_float32(value: float) -> float:
    """Returns a number rounded to the 24 bits of float32, by arithmetic that `torch.compile` can trace."""
    split_value = value * (2**29 + 1)
    return split_value - (split_value - value)


def cubic_taps(count: int, target_count: int, step: float, corners: bool) -> list[tuple[list[int], list[float]]]:
    """Returns, for each of four neighbours, its index and its weight for each element of the result along an axis."""
    if corners:
        step = (count - 1) / (target_count - 1) if target_count > 1 else 0.0
    positions = [index * step if corners else (index + 0.5) * step - 0.5 for index in range(target_count)]
    starts = [math.floor(position) for position in positions]
    fractions = [position - start for position, start in zip(positions, starts, strict=True)]
    return [
        (
            [min(max(start + tap, 0), count - 1) for start in starts],
            [_keys_kernel(abs(fraction - tap)) for fraction in fractions],
        )
        for tap in range(-1, 3)
    ]


def _keys_kernel(distance: float) -> float:
    """Returns the cubic kernel at a distance of at most 2."""
    if distance <= 1:
        return ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance * distance + 1
    return ((distance - 5) * distance + 8) * distance * _CUBIC - 4 * _CUBIC
