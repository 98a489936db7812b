"""Rotating, mirroring and rearranging, composed of the ops of `shape`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.options import as_integer
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.shape import flip, reshape, swapaxes, transpose

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import rearranging as shared_rearranging
    from emberharmony.backend.shared.arrays import shape as shared_shape
else:
    shared_rearranging = Deferred("emberharmony.backend.shared.arrays.rearranging")
    shared_shape = Deferred("emberharmony.backend.shared.arrays.shape")


@op
def fliplr(x: TensorLike) -> Tensor:
    """Returns `x` in reverse order along its second axis.

    Args:
        x: a tensor with at least two axes, of any dtype.

    See also: `flipud`, of the first axis; `flip`, of any axes.
    """
    return flip(x, 1)


@op
def flipud(x: TensorLike) -> Tensor:
    """Returns `x` in reverse order along its first axis.

    Args:
        x: a tensor with at least one axis, of any dtype.

    See also: `fliplr`, of the second axis; `flip`, of any axes.
    """
    return flip(x, 0)


@op
def rot90(array: TensorLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Returns `array` rotated k times by 90 degrees, from the first axis towards the second.

    Args:
        array: a tensor with at least two axes, of any dtype.
        k: the number of quarter turns; negative ones go the other way.
        axes: the two axes of the plane of rotation; by default the first two.

    Raises:
        AxisError: if `axes` does not name two different axes.

    See also: `flip`, mirrored; `transpose`, of the axes.

    Example:
        >>> ops.rot90([[1, 2], [3, 4]]).tolist()
        [[2, 4], [1, 3]]
    """
    axes = shared_shape.plane_axes(axes, len(array.shape))
    k = as_index(k) % 4
    if k == 0:
        return array
    if k == 2:
        return flip(array, axes)
    return flip(swapaxes(array, *axes), axes[0]) if k == 1 else swapaxes(flip(array, axes[0]), *axes)


@op
def rearrange(tensor: TensorLike, pattern: str, axes_lengths: Mapping[str, int] | None = None) -> Tensor:
    """Returns `tensor` with its axes split, permuted and joined by a pattern, for example "b (h w) c -> b c h w".

    Names in parentheses share one axis, and the first of them varies slowest. "..." stands for the axes that are not
    named; 1 and () stand for an axis of length 1.

    Args:
        tensor: a tensor of any dtype, with the axes that the left side of the pattern names.
        pattern: the axes of the tensor, "->", and those of the result, by names separated by spaces.
        axes_lengths: the lengths of named axes that do not follow from the shape: for each group of names, all except
            one. None if all follow.

    Raises:
        ArgumentError: if the pattern is malformed.
        ShapeError: if the shape does not fit the pattern.

    See also: `reshape`, without names; `transpose`, without names; `einsum`, with sums.

    Example:
        >>> ops.rearrange([[1, 2, 3], [4, 5, 6]], "a b -> (b a)").tolist()
        [1, 4, 2, 5, 3, 6]
        >>> ops.rearrange([1, 2, 3, 4], "(a b) -> a b", {"a": 2}).tolist()
        [[1, 2], [3, 4]]

    Source: einops (Rogozhnikov 2022), https://einops.rocks.
    """
    split_shape, axis_order, joined_shape = shared_rearranging.rearrangement(pattern, tensor.shape, axes_lengths or {})
    return reshape(transpose(reshape(tensor, split_shape), axis_order), joined_shape)


@op
def space_to_depth(
    x: TensorLike, block_size: int, data_format: Literal["channels_last", "channels_first"] = "channels_last"
) -> Tensor:
    """Returns images with each block of pixels moved into the channels.

    Shape: (N, H, W, C) to (N, H / b, W / b, b * b * C), where the position in the block varies slower than the channel;
    with "channels_first" (N, C, H, W) to (N, b * b * C, H / b, W / b).

    Args:
        x: images (N, H, W, C) of any dtype; `block_size` divides H and W.
        block_size: the number of pixels on each side of a block.
        data_format: "channels_last" for (N, H, W, C), "channels_first" for (N, C, H, W).

    Raises:
        ShapeError: if the image does not divide into blocks.
        ArgumentError: if `data_format` is unknown.

    See also: `depth_to_space`, the inverse.

    Example:
        >>> ops.shape(ops.space_to_depth(ops.zeros((1, 4, 6, 3)), 2))
        (1, 2, 3, 12)
    """
    channels_last_pattern = "n (h a) (w b) c -> n h w (a b c)"
    channels_first_pattern = "n c (h a) (w b) -> n (a b c) h w"
    block_size = as_integer("block_size", block_size, 1)
    return rearrange(
        x,
        channels_last_pattern if shared_rearranging.is_channels_last(data_format) else channels_first_pattern,
        {"a": block_size, "b": block_size},
    )


@op
def depth_to_space(
    x: TensorLike, block_size: int, data_format: Literal["channels_last", "channels_first"] = "channels_last"
) -> Tensor:
    """Returns images with channels moved into blocks of pixels: the inverse of `space_to_depth`.

    Shape: (N, H, W, b * b * C) to (N, H * b, W * b, C); with "channels_first" the channels are the second axis.

    Args:
        x: images (N, H, W, b * b * C) of any dtype, where b is `block_size`.
        block_size: the number of pixels on each side of a block.
        data_format: "channels_last" for (N, H, W, b * b * C), "channels_first" for (N, b * b * C, H, W).

    Raises:
        ShapeError: if the channels do not divide into blocks.
        ArgumentError: if `data_format` is unknown.

    See also: `space_to_depth`, the inverse.

    Example:
        >>> ops.depth_to_space([[[[1, 2, 3, 4]]]], 2).tolist()
        [[[[1], [2]], [[3], [4]]]]
    """
    channels_last_pattern = "n h w (a b c) -> n (h a) (w b) c"
    channels_first_pattern = "n (a b c) h w -> n c (h a) (w b)"
    block_size = as_integer("block_size", block_size, 1)
    return rearrange(
        x,
        channels_last_pattern if shared_rearranging.is_channels_last(data_format) else channels_first_pattern,
        {"a": block_size, "b": block_size},
    )
