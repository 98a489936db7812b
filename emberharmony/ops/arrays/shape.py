"""Changing the shape: reshaping, transposing, joining, splitting, repeating.

Axes count from -ndim to ndim - 1. An axis that is out of range, or named twice, raises `AxisError`. Dtype: that of the
input; joined tensors are promoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from emberharmony.backend.promote import nonnegative_axes, nonnegative_axis
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.errors import DTypeError, ShapeError
from emberharmony.core.numeric.promotion import promote
from emberharmony.core.types import Axis, Shape, Tensor, TensorLike, Tensors, Varying
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.tensor import cast, convert_to_tensor, on_host

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import shape as shared
    from emberharmony.ops.arrays import indexing
else:
    shared = Deferred("emberharmony.backend.shared.arrays.shape")
    indexing = Deferred("emberharmony.ops.arrays.indexing")  # which imports this module


@op(view=True)
def reshape(x: TensorLike, shape: Shape, copy: bool | None = None) -> Tensor:
    """Returns the same elements in another shape; one length may be -1, which is inferred.

    Args:
        shape: the lengths of the axes; one of them may be -1, which follows from the number of elements.
        copy: True always copies, False never copies, and None copies only where it is necessary.

    Raises:
        ShapeError: if the number of elements differs.
        ArgumentError: if `copy` is False and a copy is necessary.

    See also: `ravel`, into one axis; `transpose`, in another order; `rearrange`, by a pattern.

    Example:
        >>> ops.reshape([1, 2, 3, 4], (2, -1)).tolist()
        [[1, 2], [3, 4]]
    """
    ...


@op(view=True)
def ravel(x: TensorLike) -> Tensor:
    """Returns all elements along one axis.

    See also: `reshape`, into any shape.

    Example:
        >>> ops.ravel([[1, 2], [3, 4]]).tolist()
        [1, 2, 3, 4]
    """
    return reshape(x, -1)


@op(view=True)
def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Returns `x` with its axes in another order; by default they are reversed.

    Args:
        axes: the axes of `x` in their new order; None reverses them.

    Raises:
        AxisError: if `axes` does not name every axis exactly once.

    See also: `matrix_transpose`, of the last two axes; `moveaxis`, of some axes; `rearrange`, by a pattern.

    Example:
        >>> ops.transpose([[1, 2], [3, 4]]).tolist()
        [[1, 3], [2, 4]]
    """
    ...


permute_dims = alias("permute_dims", transpose)


@op(view=True)
def matrix_transpose(x: TensorLike) -> Tensor:
    """Returns `x` with its last two axes swapped.

    Args:
        x: matrices (..., m, n) of any dtype.

    Raises:
        ShapeError: if `x` has fewer than two axes.

    See also: `transpose`, of all axes; `swapaxes`, of any two.
    """
    return swapaxes(shared.require_matrices(x), -1, -2)


@op(view=True)
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Returns `x` with two axes swapped.

    Args:
        axis1: one of the two axes, from -ndim to ndim - 1.
        axis2: the other axis, from -ndim to ndim - 1.

    See also: `moveaxis`, that keeps the order; `transpose`, of all axes.
    """
    axis_order = list(range(len(x.shape)))
    a, b = nonnegative_axis(axis1, len(axis_order)), nonnegative_axis(axis2, len(axis_order))
    axis_order[a], axis_order[b] = b, a
    return transpose(x, tuple(axis_order))


@op(view=True)
def moveaxis(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Returns `x` with axes moved to new positions; the other axes keep their order.

    Args:
        source: one axis, or several, of `x`.
        destination: the position of each in the result; as many as in `source`.

    See also: `swapaxes`, of two axes; `transpose`, of all axes.
    """
    sources, destinations = shared.axes_and_places(source, destination, len(x.shape))
    axis_order = [axis for axis in range(len(x.shape)) if axis not in sources]
    for destination_axis, axis in sorted(zip(destinations, sources, strict=True)):
        axis_order.insert(destination_axis, axis)
    return transpose(x, tuple(axis_order))


@op(view=True)
def expand_dims(x: TensorLike, axis: int | Sequence[int] = 0) -> Tensor:
    """Returns `x` with axes of length 1 inserted.

    Args:
        axis: the positions of the new axes in the result.

    See also: `squeeze`, the inverse; `reshape`, into any shape.

    Example:
        >>> ops.shape(ops.expand_dims([1, 2], (0, 2)))
        (1, 2, 1)
    """
    return reshape(x, tuple(shared.expanded_shape(x.shape, axis)))


@op(view=True)
def atleast_1d(x: TensorLike) -> Tensor:
    """Returns `x`, or a vector of one element if it has no axes.

    See also: `atleast_2d`, with two axes; `expand_dims`, at any place.

    Example:
        >>> ops.atleast_1d(5).tolist()
        [5]
    """
    return x if x.shape else reshape(x, (1,))


@op(view=True)
def atleast_2d(x: TensorLike) -> Tensor:
    """Returns `x` with at least two axes: a vector of n elements becomes (1, n).

    See also: `atleast_1d`, with one axis; `atleast_3d`, with three axes.

    Example:
        >>> ops.atleast_2d([1, 2]).tolist()
        [[1, 2]]
    """
    return x if len(x.shape) >= 2 else reshape(x, (1, *(x.shape or (1,))))


@op(view=True)
def atleast_3d(x: TensorLike) -> Tensor:
    """Returns `x` with at least three axes: a vector of n elements becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    See also: `atleast_2d`, with two axes.

    Example:
        >>> ops.shape(ops.atleast_3d([1, 2]))
        (1, 2, 1)
    """
    return x if len(x.shape) >= 3 else expand_dims(atleast_2d(x), 2)


@op(view=True)
def squeeze(x: TensorLike, axis: Axis = None) -> Tensor:
    """Returns `x` without axes of length 1; by default all of them are removed.

    Args:
        axis: the axis or the axes to remove, which have length 1; None removes all that have.

    Raises:
        ShapeError: if a named axis has another length than 1.

    See also: `expand_dims`, the inverse; `reshape`, into any shape.

    Example:
        >>> ops.shape(ops.squeeze([[[1], [2]]]))
        (2,)
    """
    axes = [a for a, n in enumerate(x.shape) if n == 1] if axis is None else nonnegative_axes(axis, len(x.shape))
    return reshape(x, tuple(shared.squeezed_shape(x.shape, axes)))


@op(view=True)
def broadcast_to(x: TensorLike, shape: Shape) -> Tensor:
    """Returns `x` repeated along its axes of length 1 to fill a shape.

    The result may share memory between its elements, so do not write into it.

    Args:
        x: a tensor of any dtype, whose axes have length 1 or that of `shape`; missing axes are added in front.
        shape: the lengths of the axes of the result.

    Raises:
        ShapeError: if `x` does not broadcast to the shape.

    See also: `tile`, of any number of copies; `broadcast_arrays`, of several.
    """
    ...


@op(view=True)
def broadcast_arrays(*arrays: TensorLike) -> tuple[Tensor, ...]:
    """Returns all tensors broadcast to their common shape.

    Args:
        *arrays: tensors of any shape and dtype; each keeps its dtype.

    Raises:
        ShapeError: if the shapes do not broadcast.

    See also: `broadcast_shapes`, the shape alone; `broadcast_to`, a given shape.
    """
    full_shape = shared.broadcast_shapes(*(tuple(x.shape) for x in arrays))
    return tuple([broadcast_to(x, full_shape) for x in arrays])


@op
def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """Returns the shape that several shapes broadcast to.

    Args:
        *shapes: shapes: lengths, or sequences of lengths.

    Raises:
        ShapeError: if the shapes do not broadcast.

    See also: `broadcast_arrays`, of the tensors.

    Example:
        >>> ops.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return shared.broadcast_shapes(*shapes)


@op
def concatenate(xs: Tensors, axis: int | None = 0) -> Tensor:
    """Returns tensors joined along an axis; with `axis=None` all are flattened first.

    Args:
        xs: at least one tensor; they have the same lengths on all axes but `axis`, and are promoted to one dtype.
        axis: the axis along which they are joined, from -ndim to ndim - 1; None flattens all of them first.

    Raises:
        ShapeError: if the tensors differ in another axis, or if there are no tensors.

    See also: `split`, the inverse; `stack`, along a new axis; `append`, of two.

    Example:
        >>> ops.concatenate([[1, 2], [3]]).tolist()
        [1, 2, 3]
    """
    ...


concat = alias("concat", concatenate)


@op
def append(x1: TensorLike, x2: TensorLike, axis: int | None = None) -> Tensor:
    """Returns two tensors joined along an axis; by default both are flattened first.

    Args:
        x1: the tensor that comes first, of any dtype; both are promoted to one.
        x2: the tensor that follows, with the same lengths on all axes but `axis`.
        axis: the axis along which they are joined, from -ndim to ndim - 1; None flattens both first.

    See also: `concatenate`, of any number.
    """
    return concatenate([x1, x2], axis)


@op
def stack(x: Tensors, axis: int = 0) -> Tensor:
    """Returns tensors of the same shape joined along a new axis.

    Args:
        x: at least one tensor; they have one shape, and are promoted to one dtype.
        axis: the place of the new axis in the result; as long as there are tensors.

    Raises:
        ShapeError: if the shapes differ, or if there are no tensors.

    See also: `unstack`, the inverse; `concatenate`, along an axis that exists.

    Example:
        >>> ops.stack([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    distinct_shapes = {tuple(tensor.shape): None for tensor in x}
    if len(distinct_shapes) > 1:
        raise ShapeError(f"tensors of shapes {', '.join(map(str, distinct_shapes))} do not stack")
    axis = nonnegative_axis(axis, len(x[0].shape) + 1) if x else axis  # concatenate says that there are no tensors
    return concatenate([expand_dims(tensor, axis) for tensor in x], axis)


@op
def hstack(xs: Tensors) -> Tensor:
    """Returns tensors joined along the second axis; vectors are joined along the first.

    Args:
        xs: at least one tensor; they differ in the second axis at most, vectors in the first.

    See also: `vstack`, along the first axis; `concatenate`, along any axis.

    Example:
        >>> ops.hstack([[[1], [2]], [[3], [4]]]).tolist()
        [[1, 3], [2, 4]]
    """
    tensors = [reshape(x, 1) if len(x.shape) == 0 else x for x in xs]
    return concatenate(tensors, 1 if tensors and len(tensors[0].shape) > 1 else 0)


@op
def vstack(xs: Tensors) -> Tensor:
    """Returns tensors joined along the first axis; vectors become rows.

    Args:
        xs: at least one tensor; they differ in the first axis at most, vectors have one length.

    See also: `hstack`, along the second axis; `concatenate`, along any axis.
    """
    return concatenate([reshape(x, (1, -1)) if len(x.shape) < 2 else x for x in xs], 0)


@op
def dstack(xs: Tensors) -> Tensor:
    """Returns tensors joined along the third axis.

    A matrix first gets a third axis of length 1; a vector of length n gets the shape (1, n, 1).

    Args:
        xs: at least one tensor; they differ in the third axis at most.

    See also: `concatenate`, along any axis.

    Example:
        >>> ops.dstack([[1, 2], [3, 4]]).tolist()
        [[[1, 3], [2, 4]]]
    """
    tensors = [reshape(x, (1, -1, 1)) if len(x.shape) < 2 else x for x in xs]
    return concatenate([expand_dims(x, 2) if len(x.shape) == 2 else x for x in tensors], 2)


@op(view=True)
def split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Returns the parts of `x` along an axis: equal parts, or parts cut at indices.

    Args:
        indices_or_sections: the number of equal parts, or the indices before which `x` is cut.
        axis: the axis that is cut, from -ndim to ndim - 1; by default the first.

    Raises:
        ShapeError: if equal parts are impossible.

    See also: `concatenate`, the inverse; `array_split`, of unequal parts; `unstack`, into slices.

    Example:
        >>> [part.tolist() for part in ops.split([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
    """
    (axis,) = nonnegative_axes(axis, len(x.shape))
    leading_slices = (slice(None),) * axis
    section_bounds = shared.part_bounds(x.shape[axis], on_host(indices_or_sections))
    return [indexing.get_item(x, (*leading_slices, slice(a, b))) for a, b in section_bounds]


@op(view=True)
def array_split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Returns the parts of `x` like `split`; if equal parts are impossible, the first ones are longer by one.

    Args:
        indices_or_sections: the number of parts, or the indices before which `x` is cut.
        axis: the axis that is cut, from -ndim to ndim - 1; by default the first.

    Raises:
        ShapeError: if the number of parts is less than 1.
        ArgumentError: if there are more parts than elements, and more than 65536.

    See also: `split`, of equal parts.

    Example:
        >>> [part.tolist() for part in ops.array_split([1, 2, 3], 2)]
        [[1, 2], [3]]
    """
    (axis_index,) = nonnegative_axes(axis, len(x.shape))
    return split(x, shared.cut_indices_of(x.shape[axis_index], indices_or_sections), axis_index)


@op(view=True)
def hsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Returns `x` split along its second axis, or a vector along its first; see `split`.

    Args:
        x: a tensor with at least one axis, of any dtype.
        indices_or_sections: the number of equal parts, or the indices before which `x` is cut.

    See also: `split`, along any axis.
    """
    return split(x, indices_or_sections, 1 if len(x.shape) > 1 else 0)


@op(view=True)
def vsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Returns `x`, which has at least two axes, split along its first; see `split`.

    Args:
        x: a tensor with at least two axes, of any dtype.
        indices_or_sections: the number of equal parts, or the indices before which `x` is cut.

    See also: `split`, along any axis.
    """
    return split(shared.require_matrices(x), indices_or_sections, 0)


@op(view=True)
def dsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Returns `x` split along its third axis; see `split`.

    Args:
        x: a tensor with at least three axes, of any dtype.
        indices_or_sections: the number of equal parts, or the indices before which `x` is cut.

    See also: `split`, along any axis.
    """
    return split(x, indices_or_sections, 2)


@op(view=True)
def unstack(x: TensorLike, num: int | None = None, axis: int = 0) -> tuple[Tensor, ...]:
    """Returns the slices of `x` along an axis.

    Args:
        num: the length of the axis, if it is to be checked; None checks nothing.
        axis: the axis that is taken apart, from -ndim to ndim - 1; by default the first.

    Raises:
        ShapeError: if `num` is not the length of the axis.

    See also: `stack`, the inverse.

    Example:
        >>> [row.tolist() for row in ops.unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    axis = shared.unstack_axis(num, axis, x.shape)
    leading_slices = (slice(None),) * axis
    return tuple([indexing.get_item(x, (*leading_slices, i)) for i in range(x.shape[axis])])


@op
def tile(x: TensorLike, repeats: int | Sequence[int]) -> Tensor:
    """Returns copies of the whole `x` side by side, a number of times along each axis.

    Args:
        repeats: how often along each axis; one integer counts for the last axis, and missing axes are added in front.

    See also: `repeat`, element by element; `broadcast_to`, without a copy.

    Example:
        >>> ops.tile([1, 2], 2).tolist()
        [1, 2, 1, 2]
    """
    split_shape, full_shape, result_shape = shared.tile_shapes(repeats, x.shape)
    return reshape(broadcast_to(reshape(x, split_shape), full_shape), result_shape)


@op
def repeat(x: TensorLike, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Returns `x` with each slice along an axis repeated; with `axis=None` each element of the flattened `x`.

    Args:
        repeats: one count for all slices, or one count for each; a tensor of counts forces evaluation on MLX.
        axis: the axis whose slices are repeated; None repeats the elements of the flattened `x`.

    Raises:
        ArgumentError: if a count is negative.
        ShapeError: if the number of counts differs from the number of slices.

    See also: `tile`, of the whole.

    Example:
        >>> ops.repeat([1, 2], 2).tolist()
        [1, 1, 2, 2]
    """
    x, axis = (ravel(x), 0) if axis is None else (x, nonnegative_axis(axis, len(x.shape)))
    return indexing.take(x, shared.repeated_places(on_host(repeats), x.shape, axis), axis)


@op
def flip(x: TensorLike, axis: Axis = None) -> Tensor:
    """Returns `x` in reverse order along axes, by default along all.

    Args:
        axis: the axis or the axes to reverse; None reverses all of them.

    See also: `fliplr`, of the second axis; `flipud`, of the first axis; `roll`, cyclically.

    Example:
        >>> ops.flip([1, 2, 3]).tolist()
        [3, 2, 1]
    """
    for a in nonnegative_axes(axis, len(x.shape)):
        x = indexing.take(x, range(x.shape[a] - 1, -1, -1), a)
    return x


@op
def roll(x: TensorLike, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Returns `x` shifted cyclically along axes; with `axis=None` the flattened `x` is shifted.

    Args:
        shift: by how many places towards higher indices, one integer for each axis; negative ones go the other way.
        axis: the axis or the axes along which elements move; None moves them in the flattened `x`.

    See also: `flip`, in reverse order; `fftshift`, by half of the length.

    Example:
        >>> ops.roll([1, 2, 3], 1).tolist()
        [3, 1, 2]
    """
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = tuple(nonnegative_axis(a, len(x.shape)) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    for shift_count, a in zip(*shared.shifts_and_axes(shift, axes), strict=True):
        leading_slices, cut_index = (slice(None),) * a, -shift_count % max(x.shape[a], 1)
        if cut_index:
            swapped_slices = slice(cut_index, None), slice(0, cut_index)
            x = concatenate([indexing.get_item(x, (*leading_slices, half_slice)) for half_slice in swapped_slices], a)
    return x


@op
def pad(
    x: TensorLike,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: Literal["constant", "reflect", "symmetric", "edge", "wrap"] = "constant",
    constant_values: Varying | None = None,
) -> Tensor:
    """Returns `x` with elements added before and after each axis.

    Args:
        pad_width: one number for all sides, a pair (before, after) for all axes, or one pair for each axis.
        mode: "constant" (adds `constant_values`), "edge" (repeats the last element), "reflect" (mirrors without the
            edge), "symmetric" (mirrors with the edge) or "wrap" (continues periodically).
        constant_values: the value to add: a number, or a tensor that broadcasts to the result; None is 0.

    Raises:
        ArgumentError: if `mode` is unknown, or if `constant_values` is given with another mode than "constant".
        ShapeError: if the widths do not fit the axes, or a tensor of constants does not fit the result.
        DTypeError: if a tensor of constants has a dtype of another kind than integers `x`.

    See also: `pad_images`, of images; `roll`, cyclically.

    Example:
        >>> ops.pad([1, 2], 1).tolist()
        [0, 1, 2, 0]
    """
    # The built-in backends run this body only if `constant_values` is a tensor.
    has_tensor_values = shared.check_pad(mode, constant_values)
    width_pairs = shared.pad_pairs(pad_width, len(x.shape))
    if mode != "constant":
        for axis, (before, after) in enumerate(width_pairs):
            positions = shared.pad_indices(x.shape[axis], before, after, mode) if before or after else ()
            axis_slices = [
                x[(*[slice(None)] * axis, slice(position, position + 1), ...)] for position in map(int, positions)
            ]
            x = concatenate(axis_slices, axis) if axis_slices else x
        return x
    dtype = dtype_of(x)
    fill_number = 0 if constant_values is None else constant_values
    if isinstance(fill_number, complex) and dtype.kind != "complex":
        raise DTypeError(f"the complex number {fill_number} does not fit {dtype.name}")
    fill_tensor = convert_to_tensor(fill_number) if has_tensor_values else convert_to_tensor(fill_number, dtype)
    if promote(dtype, dtype_of(fill_tensor)).kind != dtype.kind:
        raise DTypeError(
            f"constant_values of {dtype_of(fill_tensor).name} cannot pad a tensor of {dtype.name}; cast it"
        )
    padded_shape = [before + n + after for n, (before, after) in zip(x.shape, width_pairs, strict=True)]
    fill_block, padded_x = broadcast_to(cast(fill_tensor, dtype), padded_shape), x
    for axis in range(len(padded_shape) - 1, -1, -1):
        before, after = width_pairs[axis]
        leading_slices = [slice(start, start + n) for n, (start, _) in zip(x.shape[:axis], width_pairs, strict=False)]
        after_start = padded_shape[axis] - after
        padded_x = concatenate(
            [
                fill_block[(*leading_slices, slice(before), ...)],
                padded_x,
                fill_block[(*leading_slices, slice(after_start, None), ...)],
            ],
            axis,
        )
    return padded_x
