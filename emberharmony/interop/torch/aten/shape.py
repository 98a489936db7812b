"""Operators of ATen that change shapes, and join, split and repeat tensors, computed by ops."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten

aten("atleast_1d")(ops.atleast_1d)
aten("atleast_2d")(ops.atleast_2d)
aten("atleast_3d")(ops.atleast_3d)
aten("atleast_1d.Sequence")(lambda tensors: [ops.atleast_1d(x) for x in tensors])
aten("atleast_2d.Sequence")(lambda tensors: [ops.atleast_2d(x) for x in tensors])
aten("atleast_3d.Sequence")(lambda tensors: [ops.atleast_3d(x) for x in tensors])
aten("block_diag")(lambda tensors: ops.block_diag(*tensors))
aten("diag")(ops.diag)
aten("diagonal", "diagonal_copy", "linalg_diagonal")(
    lambda x, offset=0, dim1=0, dim2=1: ops.diagonal(x, offset, dim1, dim2)
)
aten("flip")(lambda x, dims: ops.flip(x, tuple(dims)) if dims else x)
aten("fliplr")(ops.fliplr)
aten("flipud")(ops.flipud)
aten("kron")(ops.kron)
aten("movedim", "moveaxis")(ops.moveaxis)
aten("ravel")(ops.ravel)
aten("stack")(lambda tensors, dim=0: ops.stack(tensors, dim))
aten("t", "t_copy", "numpy_T")(ops.transpose)
aten("mT", "matrix_H", "mH")(ops.matrix_transpose)
aten("tile")(lambda x, dims: ops.tile(x, (1,) * (len(x.shape) - len(dims)) + tuple(dims)))
aten("unbind", "unbind_copy")(lambda x, dim=0: ops.unstack(x, axis=dim))
aten("unsqueeze", "unsqueeze_copy")(ops.expand_dims)


@aten("view", "reshape", "_unsafe_view", "_reshape_copy", "view_copy", "reshape_copy", "_reshape_alias")
def view(x: Any, shape: Sequence[int], stride: object = None) -> Any:
    """Returns a tensor reshaped to another shape."""
    return ops.reshape(x, tuple(shape))


aten("view.dtype", "view_copy.dtype")(ops.view)


@aten("flatten")
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Returns a tensor in which a range of axes is merged into one."""
    shape = tuple(x.shape)
    if not shape:
        return ops.reshape(x, (1,))
    first_axis, last_axis = start_dim % len(shape), end_dim % len(shape)
    return ops.reshape(x, (*shape[:first_axis], math.prod(shape[first_axis : last_axis + 1]), *shape[last_axis + 1 :]))


@aten("unflatten")
def unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Returns a tensor in which one axis is split into several."""
    shape = tuple(x.shape)
    axis = dim % len(shape)
    return ops.reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))


@aten("permute", "permute_copy")
def permute(x: Any, dims: Sequence[int]) -> Any:
    """Returns a tensor with its axes in another order."""
    return ops.transpose(x, tuple(dim % len(dims) for dim in dims)) if dims else x


@aten("transpose", "transpose_copy", "swapaxes", "swapdims")
def transpose(x: Any, dim0: int, dim1: int) -> Any:
    """Returns a tensor with two axes exchanged."""
    return ops.swapaxes(x, dim0, dim1) if len(x.shape) else x


@aten("squeeze", "squeeze_copy")
def squeeze(x: Any, dim: int | Sequence[int] | None = None) -> Any:
    """Returns a tensor without those of the given axes, or of all, whose length is 1."""
    shape = tuple(x.shape)
    axes = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    removed_axes = {axis % len(shape) for axis in axes if shape[axis] == 1} if shape else set()
    return ops.reshape(x, tuple(n for i, n in enumerate(shape) if i not in removed_axes)) if removed_axes else x


@aten("expand", "expand_copy")
def expand(x: Any, size: Sequence[int], implicit: bool = False) -> Any:
    """Returns a tensor repeated along axes of length 1; -1 keeps a length."""
    added_axis_count = len(size) - len(x.shape)
    return ops.broadcast_to(x, tuple(x.shape[i - added_axis_count] if n == -1 else n for i, n in enumerate(size)))


aten("expand_as")(lambda x, other: ops.broadcast_to(x, tuple(other.shape)))
aten("broadcast_to")(expand)
aten("broadcast_tensors")(lambda tensors: ops.broadcast_arrays(*tensors))


@aten("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Returns tensors joined along an axis; those of shape (0,) are left out, as in PyTorch."""
    return ops.concatenate([x for x in tensors if tuple(x.shape) != (0,)] or tensors[:1], axis=dim)


@aten("split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(x: Any, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """Returns the parts of a tensor along an axis, of given lengths."""
    return ops.split(x, [sum(split_sizes[:i]) for i in range(1, len(split_sizes))], axis=dim)


@aten("split", "split_copy", "unsafe_split")
def split(x: Any, split_size: int | Sequence[int], dim: int = 0) -> Any:
    """Returns the parts of a tensor along an axis, of one length, which the last may not reach, or of given lengths."""
    if not isinstance(split_size, int):
        return split_with_sizes(x, split_size, dim)
    return ops.split(x, list(range(split_size, x.shape[dim], split_size)), axis=dim) if split_size else [x]


@aten("chunk", "unsafe_chunk")
def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    """Returns at most `chunks` parts of a tensor along an axis, of equal length but for a shorter last one."""
    return split(x, max(-(-x.shape[dim] // chunks), 1), dim)


@aten("tensor_split.sections")
def tensor_split(x: Any, sections: int, dim: int = 0) -> Any:
    """Returns a number of parts of a tensor along an axis, whose lengths differ by at most 1."""
    return ops.array_split(x, sections, axis=dim)


@aten("tensor_split.indices")
def tensor_split_at(x: Any, indices: Sequence[int], dim: int = 0) -> Any:
    """Returns the parts of a tensor between the given indices of an axis."""
    return ops.array_split(x, list(indices), axis=dim)


@aten("repeat")
def repeat(x: Any, repeats: Sequence[int]) -> Any:
    """Returns a tensor tiled: repeated a number of times along each axis."""
    return ops.tile(x, tuple(repeats))


@aten("repeat_interleave.self_int")
def repeat_interleave(x: Any, repeats: int, dim: int | None = None, output_size: object = None) -> Any:
    """Returns each element along an axis repeated the same number of times."""
    return ops.repeat(x, repeats, axis=dim)


@aten("repeat_interleave.self_Tensor")
def repeat_interleave_each(x: Any, repeats: Any, dim: int | None = None, output_size: object = None) -> Any:
    """Returns each element along an axis repeated as often as a tensor of counts says."""
    return ops.repeat(x, repeats, axis=dim)


@aten("roll")
def roll(x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Returns a tensor whose elements are shifted cyclically along axes, or in the flattened tensor."""
    if not len(x.shape):
        return x
    return ops.roll(x, tuple(shifts), axis=tuple(dims)) if dims else ops.roll(x, shifts[0])


@aten("rot90")
def rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Returns a tensor rotated by `k` quarter turns in the plane of two axes."""
    return ops.rot90(x, k, tuple(dims))


@aten("unfold", "unfold_copy")
def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Returns the sliding windows along an axis, with the elements of a window along a new last axis."""
    if not len(x.shape):
        return ops.reshape(x, (1,))[:size]
    axis = dimension % len(x.shape)
    window_starts = ops.multiply(ops.arange((x.shape[axis] - size) // step + 1), step)
    windows = ops.take(x, ops.add(ops.expand_dims(window_starts, -1), ops.arange(size)), axis=axis)
    return ops.moveaxis(windows, axis + 1, -1)


@aten("as_strided", "as_strided_copy")
def as_strided(x: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """Returns a strided view of a tensor's memory, which is assumed to be contiguous, as a gather of elements."""
    flat_indices = ops.convert_to_tensor(storage_offset or 0, "int64")
    for axis, (length, axis_stride) in enumerate(zip(size, stride, strict=True)):
        axis_shape = (length,) + (1,) * (len(size) - axis - 1)
        flat_indices = ops.add(flat_indices, ops.reshape(ops.multiply(ops.arange(length), axis_stride), axis_shape))
    return ops.take(ops.ravel(x), ops.broadcast_to(flat_indices, tuple(size)))


@aten("diag_embed")
def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Returns matrices with the elements of the last axis on a diagonal, and 0 elsewhere."""
    matrix_size = x.shape[-1] + abs(offset)
    row_indices = ops.add(ops.arange(x.shape[-1]), max(-offset, 0))
    column_indices = ops.add(ops.arange(x.shape[-1]), max(offset, 0))
    zeros = ops.zeros((*x.shape[:-1], matrix_size, matrix_size), ops.dtype(x))
    return ops.moveaxis(ops.set_item(zeros, (..., row_indices, column_indices), x), (-2, -1), (dim1, dim2))


@aten("meshgrid")
def meshgrid(tensors: Sequence[Any], indexing: str = "ij") -> Any:
    """Returns the coordinate tensors of the grid that vectors span."""
    return ops.meshgrid(*tensors, indexing="xy" if indexing == "xy" else "ij")


@aten("cartesian_prod")
def cartesian_prod(tensors: Sequence[Any]) -> Any:
    """Returns all combinations of the elements of vectors, as rows."""
    coordinate_grids = ops.meshgrid(*tensors, indexing="ij")
    return (
        ops.stack([ops.ravel(grid) for grid in coordinate_grids], axis=-1) if len(coordinate_grids) > 1 else tensors[0]
    )


@aten("pixel_shuffle")
def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    """Rearranges channels to pixels: from (..., c * r * r, h, w) to (..., c, h * r, w * r)."""
    *leading_shape, channels, height, width = x.shape
    r = upscale_factor
    leading_axis_count = len(leading_shape)
    blocks = ops.reshape(x, (*leading_shape, channels // (r * r), r, r, height, width))
    moved_blocks = ops.transpose(
        blocks,
        (
            *range(leading_axis_count),
            leading_axis_count,
            leading_axis_count + 3,
            leading_axis_count + 1,
            leading_axis_count + 4,
            leading_axis_count + 2,
        ),
    )
    return ops.reshape(moved_blocks, (*leading_shape, channels // (r * r), height * r, width * r))


@aten("pixel_unshuffle")
def pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    """Rearranges pixels to channels: from (..., c, h * r, w * r) to (..., c * r * r, h, w)."""
    *leading_shape, channels, height, width = x.shape
    r = downscale_factor
    leading_axis_count = len(leading_shape)
    blocks = ops.reshape(x, (*leading_shape, channels, height // r, r, width // r, r))
    moved_blocks = ops.transpose(
        blocks,
        (
            *range(leading_axis_count),
            leading_axis_count,
            leading_axis_count + 2,
            leading_axis_count + 4,
            leading_axis_count + 1,
            leading_axis_count + 3,
        ),
    )
    return ops.reshape(moved_blocks, (*leading_shape, channels * r * r, height // r, width // r))


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(x: Any, groups: int) -> Any:
    """Returns an image with its channels reordered so that the groups are interleaved."""
    batch, channels, *size = x.shape
    grouped_channels = ops.reshape(x, (batch, groups, channels // groups, *size))
    return ops.reshape(ops.swapaxes(grouped_channels, 1, 2), (batch, channels, *size))


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""The modes of `pad` by PyTorch's names."""


@aten("pad")
def pad(x: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Returns a tensor padded at the ends of its last axes, or cropped where a number is negative."""
    padding_widths = [(0, 0)] * (len(x.shape) - len(pad) // 2)
    padding_widths += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -2, -2)]
    if any(n < 0 for pair in padding_widths for n in pair):
        kept_slices = [
            slice(max(-before, 0), length - max(-after, 0))
            for (before, after), length in zip(padding_widths, x.shape, strict=True)
        ]
        x = ops.get_item(x, tuple(kept_slices))
        padding_widths = [(max(before, 0), max(after, 0)) for before, after in padding_widths]
    if mode == "constant":
        return ops.pad(x, padding_widths, "constant", value or 0)
    return ops.pad(x, padding_widths, _MODES[mode])  # type: ignore[arg-type]


@aten("constant_pad_nd")
def constant_pad_nd(x: Any, pad_: Sequence[int], value: float = 0) -> Any:
    """Returns a tensor padded with a number at the ends of its last axes."""
    return pad(x, pad_, "constant", value)


aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")(lambda x, padding: pad(x, padding, "reflect"))
aten("replication_pad1d", "replication_pad2d", "replication_pad3d")(lambda x, padding: pad(x, padding, "replicate"))
