"""Checks of the arguments of batch and group normalisation, the same on all backends."""

from collections.abc import Sequence
from typing import Any

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.errors import ArgumentError, ShapeError

EPSILON = 1e-7
"""The `epsilon` that stands for None, that of Keras."""


def check_groups(shape: Sequence[int], groups: Any, axis: int, scale: Any, offset: Any) -> int:
    """Returns the index of the axis of channels, after checking the arguments of a group normalisation.

    Raises:
        ArgumentError: if `groups` is not a positive integer, or if the channels are on the axis of the samples.
        ShapeError: if the groups, the scale or the offset do not fit the channels.
    """
    (axis_index,) = nonnegative_axes(axis, len(shape))
    if axis_index == 0:
        raise ArgumentError(f"axis is that of the channels, not {axis}, which is that of the samples")
    if not isinstance(groups, int) or groups < 1:
        raise ArgumentError(f"groups is an integer of at least 1, not {groups!r:.60}")
    if shape[axis_index] % groups:
        raise ShapeError(
            f"expected a number of channels that is a multiple of {groups} groups, got {shape[axis_index]}"
        )
    _check_weights(shape[axis_index], scale, offset)
    return axis_index


def check_channels(shape: Sequence[int], axis: int, scale: Any, offset: Any) -> int:
    """Returns the index of the axis of channels, after checking the scale and the offset.

    Raises:
        ShapeError: if they are not vectors with one number for each channel.
    """
    (axis_index,) = nonnegative_axes(axis, len(shape))
    _check_weights(shape[axis_index], scale, offset)
    return axis_index


def _check_weights(channels: int, scale: Any, offset: Any) -> None:
    for name, weight in (("scale", scale), ("offset", offset)):
        if weight is not None and tuple(weight.shape) != (channels,):
            raise ShapeError(f"expected {name} of shape ({channels},), one for each channel, got {tuple(weight.shape)}")
