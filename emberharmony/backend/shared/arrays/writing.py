"""The positions that a key selects, computed on the host, for writing by any key that `get_item` reads by."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import Promotion
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType, python_dtype
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError
from emberharmony.core.numeric.promotion import promote, promote_weak

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

MODES = ("set", "add", "multiply", "min", "max")
_COMBINE = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}
"""By the name of a mode, the op that combines old and new values."""
_BY_KIND: dict[str, type] = {"bool": bool, "signed": int, "unsigned": int, "float": float, "complex": complex}
_KINDS = ("bool", "unsigned", "signed", "float", "complex")
"""The kinds of dtypes; numbers of one can be cast to the same or a later one."""
_NUMBERS = (bool, int, float, complex)
Nonzero = Callable[[Any], Sequence[Any]]


class Selection(NamedTuple):
    """What a key selects from a tensor, as the axes and indices by which `scatter_update` reaches it."""

    shape: tuple[int, ...]
    """The shape of what the key selects."""
    block: tuple[list[int], list[int]] | None
    """The start and the lengths of the block that the key selects, if it selects one."""
    lead: list[int]
    """The axes of the selection that the indices run over; the others are whole axes of the tensor."""
    axes: list[int]
    """The axes of the tensor that are indexed."""
    columns: list[Any]
    """The indices of each of these axes: an array or a tensor."""
    column_shapes: list[tuple[int, ...]]
    """The shape in which each column broadcasts against the others."""


def selection_of(parts: Sequence[tuple[Any, int, bool]], shape: Sequence[int], nonzero: Nonzero) -> Selection:
    """Returns the selection of a key: the shape, axes and indices of what it selects, in the order of NumPy.

    Args:
        parts: those of the key, from `key_parts_of`.
        shape: of the tensor.
        nonzero: returns the indices of the True elements of a mask of the backend, one tensor for each axis.

    Raises:
        ShapeError: if the index tensors do not broadcast.
    """
    parts = parts or [(Ellipsis, 0, False)]
    next_axes = [axis for _, axis, _ in parts[1:]] + [len(shape)]
    kept_axes: list[
        tuple[int, int | None, range | None]
    ] = []  # the length; the axis of the tensor; its range, if not whole
    arrays: list[tuple[int | None, Any]] = []
    block_start, block_lengths, is_block = [0] * len(shape), list(shape), True
    joint_axis, has_later_part, is_split = 0, False, False  # `is_split`: whether other parts separate the index tensors
    for (key_part, axis, mask), next_axis in zip(parts, next_axes, strict=True):
        indices = _axis_indices(key_part, mask, nonzero)
        if indices is not None:
            joint_axis, is_split = (joint_axis, is_split or has_later_part) if arrays else (len(kept_axes), False)
            is_block = is_block and key_part.__class__ is int
            if is_block:
                block_start[axis], block_lengths[axis] = key_part, 1
            arrays += [(axis + i, index) for i, index in enumerate(indices)] or [
                (None, np.zeros(int(bool(key_part)), int))
            ]
            axis += len(indices)
        else:
            has_later_part = bool(arrays)
            if key_part is None:
                kept_axes.append((1, None, None))
            elif key_part is not Ellipsis:
                positions = range(shape[axis])[key_part]
                is_block = is_block and positions.step == 1
                block_start[axis], block_lengths[axis] = min(positions.start, shape[axis]), len(positions)
                kept_axes.append((len(positions), axis, None if positions == range(shape[axis]) else positions))
                axis += 1
        kept_axes += [(shape[a], a, None) for a in range(axis, next_axis)]
    return _assemble_selection(
        kept_axes, arrays, 0 if is_split else joint_axis, (block_start, block_lengths) if is_block else None
    )


def _axis_indices(part: Any, mask: bool, nonzero: Nonzero) -> Sequence[Any] | None:
    """Returns the indices by which a part of a key reads axes, one for each; None for slices, None and Ellipsis."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return None
    if isinstance(part, bool) or (mask and not part.ndim):
        return ()
    if mask:
        return part.nonzero() if isinstance(part, np.ndarray) else nonzero(part)
    return (np.asarray(part),) if isinstance(part, int) else (part,)


def _assemble_selection(
    kept_parts: list[tuple[int, int | None, range | None]],
    arrays: list[tuple[int | None, Any]],
    first: int,
    block: tuple[list[int], list[int]] | None,
) -> Selection:
    """Returns a selection whose index tensors, broadcast, put their axes at position `first` of the other axes."""
    shapes = [tuple(index.shape) for _, index in arrays]
    try:
        joint_shape = np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(f"the index tensors of shapes {', '.join(map(str, shapes))} do not broadcast") from error
    rank = len(joint_shape)
    shape = (*(n for n, _, _ in kept_parts[:first]), *joint_shape, *(n for n, _, _ in kept_parts[first:]))
    slices_by_axis = {
        i if i < first else i + rank: (length, axis, positions)
        for i, (length, axis, positions) in enumerate(kept_parts)
        if axis is None or positions is not None
    }
    leading_axes = sorted({*slices_by_axis, *range(first, first + rank)})
    axes: list[int] = []
    columns: list[Any] = []
    column_shapes: list[tuple[int, ...]] = []
    for result_axis, (length, axis, places) in slices_by_axis.items():
        if axis is not None and places is not None:
            axes.append(axis)
            columns.append(np.arange(places.start, places.stop, places.step))
            column_shapes.append(tuple(length if i == result_axis else 1 for i in leading_axes))
    preceding_count = sum(leading_axis < first for leading_axis in leading_axes)
    for axis, index in arrays:
        if axis is not None:
            axes.append(axis)
            columns.append(index)
            index_shape = (*(1,) * (rank - len(index.shape)), *index.shape)
            column_shapes.append(
                (*(1,) * preceding_count, *index_shape, *(1,) * (len(leading_axes) - preceding_count - rank))
            )
    return Selection(shape, block, leading_axes, axes, columns, column_shapes)


def stack_columns(columns: Sequence[Any], column_shapes: Sequence[tuple[int, ...]]) -> "np.ndarray | None":
    """Returns the columns of a selection as one array of index vectors; None if one is a tensor of a backend."""
    if not all(isinstance(column, np.ndarray) for column in columns):
        return None
    full_columns = [column.reshape(column_shape) for column, column_shape in zip(columns, column_shapes, strict=True)]
    return np.stack(np.broadcast_arrays(*full_columns), -1)


def check_mode(mode: str) -> None:
    """Checks that the mode of `set_item` or `put_along_axis` is a known one.

    Raises:
        ArgumentError: if it is unknown.
    """
    if mode not in MODES:
        raise ArgumentError(f"the mode {mode!r} is unknown; use {', '.join(map(repr, MODES))}")


def is_weak(value: Any) -> bool:
    """Returns whether a value is a Python number or a nested list of these."""
    if isinstance(value, (list, tuple, range)):
        return all(is_weak(item) for item in value)
    return type(value) in _NUMBERS


def check_dtype_holds(value_dtype: DType, target_dtype: DType, weak: bool) -> None:
    """Checks that a dtype can hold a value that is written into a tensor of it.

    One of the same kind can, as in an assignment of NumPy and PyTorch, though it may round, or wrap.

    Args:
        value_dtype: the dtype of the value.
        target_dtype: the dtype of the tensor.
        weak: whether the value consists of Python numbers, of which only the kind counts.

    Raises:
        DTypeError: if it cannot.
    """
    common_kind = promote_weak(target_dtype, _BY_KIND[value_dtype.kind]) if weak else promote(target_dtype, value_dtype)
    if common_kind is not target_dtype and (weak or _KINDS.index(value_dtype.kind) > _KINDS.index(target_dtype.kind)):
        value_text = f"Python numbers of kind {value_dtype.kind}" if weak else f"dtype {value_dtype.name}"
        raise DTypeError(
            f"a value of {value_text} would be narrowed to {target_dtype.name}, the dtype of x; cast the value, or "
            f"cast x to {common_kind.name} (ops.cast)"
        )


def value_like(backend: Any, promotion: Promotion, value: Any, x: Any) -> Any:
    """Returns a value as a tensor of a backend in the dtype of `x`, with shortcuts for frequent kinds of values.

    Raises:
        EmberError: as `convert_like` does.
    """
    if isinstance(value, backend.tensor_type) and value.dtype == x.dtype:
        return value
    if _fits_kind(value, promotion.kinds[x.dtype]):
        return promotion.scalar(value, x.dtype)
    return convert_like(backend, value, x)


def convert_like(backend: Any, value: Any, x: Any) -> Any:
    """Returns a value as a tensor of a backend in the dtype of `x`.

    Raises:
        EmberError: as `check_dtype_holds` and `Backend.convert` do.
    """
    dtype = backend.dtype_of(x)
    if type(value) in _NUMBERS:
        check_dtype_holds(python_dtype(type(value)), dtype, True)
        return backend.convert(value, dtype)
    tensor, has_weak_dtype = backend.convert(value), is_weak(value)
    check_dtype_holds(backend.dtype_of(tensor), dtype, has_weak_dtype)
    return backend.convert(value, dtype) if has_weak_dtype else backend.bound.cast(tensor, dtype)


def _fits_kind(value: Any, kind: str) -> bool:
    """Returns whether a value is a Python number that every dtype of a kind holds, so that nothing must be checked."""
    if value.__class__ is float:
        return kind == "float"
    return value.__class__ is int and -1 < value < 128 and kind in ("float", "signed", "unsigned")


def old_and_new_values(backend: Any, promotion: Promotion, x: Any, key: Any, value: Any, mode: str) -> tuple[Any, Any]:
    """Returns the tensor that a plain key selects, and the value to write without superfluous leading axes.

    Raises:
        ArgumentError: if the mode is unknown.
        DTypeError: if the dtype of `x` cannot hold the value, or is complex in the modes "min" and "max".
        ShapeError: if the value does not broadcast to what the key selects.
    """
    check_mode(mode)
    new_value, old_value = value_like(backend, promotion, value, x), x[key]
    if not broadcasts_into(new_value.shape, old_value.shape):
        raise misfit_error(new_value.shape, old_value.shape)
    if mode in ("min", "max"):
        promotion.refuse(x, ("complex",))
    return old_value, new_value.reshape(new_value.shape[max(new_value.ndim - old_value.ndim, 0) :])


def combine_values(backend: Any, mode: str, old: Any, new: Any) -> Any:
    """Returns old and new values combined by a mode other than "set"."""
    return getattr(backend.bound, _COMBINE[mode])(old, new)


def misfit_error(shape: Sequence[int], full_shape: Sequence[int]) -> ShapeError:
    """Returns the error for a value whose shape does not broadcast to what a key selects."""
    return ShapeError(
        f"a value of shape {tuple(shape)} does not broadcast to shape {tuple(full_shape)}, which the key selects"
    )


def broadcasts_into(shape: Sequence[int], full_shape: Sequence[int]) -> bool:
    """Returns whether an assignment broadcasts a shape to another one; it drops leading axes of length 1."""
    extra_count = max(len(shape) - len(full_shape), 0)
    length_pairs = zip(reversed(shape[extra_count:]), reversed(full_shape), strict=False)
    return all(n == 1 for n in shape[:extra_count]) and all(n in (1, length) for n, length in length_pairs)


def key_along(indices: Any, is_tensor: bool, shape: Sequence[int], axis: int) -> tuple[Any, ...]:
    """Returns the key of the elements at indices along an axis, which differ for each position on the other axes.

    Args:
        indices: a tensor of the backend, or indices on the host.
        is_tensor: which of the two.
        shape: of the tensor that is indexed.
        axis: from 0 up.

    Raises:
        ShapeError: if the indices do not have as many axes as the tensor, or do not broadcast against it.
    """
    positions = indices if is_tensor else host_indices(indices)
    full_shape = (*shape[:axis], *positions.shape[axis : axis + 1], *shape[axis + 1 :])
    if len(positions.shape) != len(shape) or not broadcasts_into(positions.shape, full_shape):
        raise ShapeError(
            f"indices of shape {tuple(positions.shape)} do not broadcast against a tensor of shape {tuple(shape)} on "
            f"the axes other than {axis}; reshape them to as many axes"
        )
    axis_shapes = ((-1 if i == a else 1 for i in range(len(shape))) for a in range(len(shape)))
    index_grid = [np.arange(n).reshape(tuple(axis_shape)) for n, axis_shape in zip(shape, axis_shapes, strict=True)]
    return (*index_grid[:axis], positions, *index_grid[axis + 1 :])
