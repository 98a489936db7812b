"""Turning, mirroring and rearranging: what is composed of the ops of `shape`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from emberharmony.backend.shared.rearranging import is_last, rearrangement
from emberharmony.backend.shared.shape import plane
from emberharmony.core.dispatch import op
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.shape import flip, reshape, swapaxes, transpose


@op
def fliplr(x: TensorLike) -> Tensor:
    """Returns `x` in reverse order along its second axis."""
    return flip(x, 1)


@op
def flipud(x: TensorLike) -> Tensor:
    """Returns `x` in reverse order along its first axis."""
    return flip(x, 0)


@op
def rot90(x: TensorLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Returns `x` turned by k right angles, from the first axis towards the second.

    Raises: AxisError unless two different axes are given.

    Example:
        >>> ops.rot90([[1, 2], [3, 4]]).tolist()
        [[2, 4], [1, 3]]
    """
    axes = plane(axes, len(x.shape))
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, axes)
    return flip(swapaxes(x, *axes), axes[0]) if k == 1 else swapaxes(flip(x, axes[0]), *axes)


@op
def rearrange(x: TensorLike, pattern: str, axes_lengths: Mapping[str, int] | None = None) -> Tensor:
    """Returns `x` with axes named, split, permuted and joined by a pattern, as in "b (h w) c -> b c h w".

    Names in parentheses share one axis, the first varying slowest; "..." stands for the axes not named, 1 and () for an
    axis of length 1.

    Args:
        axes_lengths: lengths of axes that the shape does not tell: of each group all but one.

    Raises: ArgumentError for a pattern that cannot be read; ShapeError for a shape that does not fit.

    Example:
        >>> ops.rearrange([[1, 2, 3], [4, 5, 6]], "a b -> (b a)").tolist()
        [1, 4, 2, 5, 3, 6]
        >>> ops.rearrange([1, 2, 3, 4], "(a b) -> a b", {"a": 2}).tolist()
        [[1, 2], [3, 4]]

    Source: einops (Rogozhnikov 2022), https://einops.rocks.
    """
    apart, order, joined = rearrangement(pattern, x.shape, axes_lengths or {})
    return reshape(transpose(reshape(x, apart), order), joined)


@op
def space_to_depth(
    x: TensorLike, block_size: int, data_format: Literal["channels_last", "channels_first"] = "channels_last"
) -> Tensor:
    """Returns images with each block of pixels moved into the channels.

    Shape: (N, H, W, C) gives (N, H / b, W / b, b * b * C), the place in the block varying slower than the channel;
    with "channels_first" (N, C, H, W) gives (N, b * b * C, H / b, W / b).

    Raises: ShapeError if the image does not divide into blocks; ArgumentError for another `data_format`.

    Example:
        >>> ops.shape(ops.space_to_depth(ops.zeros((1, 4, 6, 3)), 2))
        (1, 2, 3, 12)
    """
    last = "n (h a) (w b) c -> n h w (a b c)"
    first = "n c (h a) (w b) -> n (a b c) h w"
    return rearrange(x, last if is_last(data_format) else first, {"a": block_size, "b": block_size})


@op
def depth_to_space(
    x: TensorLike, block_size: int, data_format: Literal["channels_last", "channels_first"] = "channels_last"
) -> Tensor:
    """Returns images with channels moved out into blocks of pixels; undoes `space_to_depth`.

    Shape: (N, H, W, b * b * C) gives (N, H * b, W * b, C); with "channels_first" the channels stand second.

    Raises: ShapeError if the channels do not divide into blocks; ArgumentError for another `data_format`.

    Example:
        >>> ops.depth_to_space([[[[1, 2, 3, 4]]]], 2).tolist()
        [[[[1], [2]], [[3], [4]]]]
    """
    last = "n h w (a b c) -> n (h a) (w b) c"
    first = "n (a b c) h w -> n c (h a) (w b)"
    return rearrange(x, last if is_last(data_format) else first, {"a": block_size, "b": block_size})
