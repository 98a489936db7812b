"""The shapes and dtypes of the results of the ops that read and write by index."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.abstract.creation import diagonal_length
from emberharmony.backend.abstract.rules import Rule, dtype_from, resized_shape
from emberharmony.backend.host import host_indices
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.indexing import (
    block_slices,
    check_index_vectors,
    checked_reduction,
    class_count,
    key_parts_of,
    nonnegative_indices,
    unravel,
)
from emberharmony.backend.shared.arrays.shape import FURTHEST, as_shape, clip_offset, require_matrices
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ArgumentTypeError, ShapeError
from emberharmony.core.options import refuse_sparse
from emberharmony.transforms.abstract_tensor import AbstractTensor, no_value_error

_REDUCTIONS = ("add", "mul", "max", "min")


class AbstractIndexing:
    """Holds the primitives of `ops/arrays/indexing.py`."""

    tensor_of: Any
    adopt: Any
    dtypes: Any
    kind_of: Any

    def _with_shape(self, x: AbstractTensor, shape: Sequence[int]) -> AbstractTensor:
        return self.tensor_of(tuple(shape), x.dtype)

    def checked_indices(self, indices: Any) -> Any:
        """Returns indices as a tensor without values, or as a host array if their values are known.

        Raises:
            ArgumentTypeError: if they are not integers.
        """
        indices = self.adopt(indices)
        if not isinstance(indices, AbstractTensor):
            return host_indices(indices)
        if self.kind_of(indices) not in ("signed", "unsigned"):
            raise ArgumentTypeError(f"indices are integers, not {self.dtypes.neutral[indices.dtype].name}")
        return indices if indices.known is None else host_indices(indices.value("an index"))

    def take(self, x: AbstractTensor, indices: Any, axis: int | None = None) -> AbstractTensor:
        shape = (x.size,) if axis is None else x.shape
        (axis_index,) = nonnegative_axes(0 if axis is None else axis, len(shape))
        positions = self.checked_indices(indices)
        if isinstance(positions, np.ndarray):
            nonnegative_indices(positions, shape[axis_index])
        return self._with_shape(x, (*shape[:axis_index], *positions.shape, *shape[axis_index + 1 :]))

    def take_along_axis(self, x: AbstractTensor, indices: Any, axis: int | None = -1) -> AbstractTensor:
        shape = (x.size,) if axis is None else x.shape
        (axis_index,) = nonnegative_axes(0 if axis is None else axis, len(shape))
        positions = self.checked_indices(indices)
        if len(positions.shape) != len(shape):
            raise ShapeError(f"indices of shape {tuple(positions.shape)} need as many axes as shape {shape}")
        if isinstance(positions, np.ndarray):
            nonnegative_indices(positions, shape[axis_index])
        batch_shape = broadcast_shape(
            [resized_shape(positions.shape, axis_index, 1), resized_shape(shape, axis_index, 1)]
        )
        return self._with_shape(x, resized_shape(batch_shape, axis_index, positions.shape[axis_index]))

    def get_item(self, x: AbstractTensor, key: Any) -> AbstractTensor:
        result_shape: list[int] = []
        joint_lengths: list[tuple[int, ...]] = []
        joint_axis, has_later_part, is_split = 0, False, False  # as in `backend.shared.arrays.writing.selected`
        key = tuple(map(self.adopt, key)) if isinstance(key, tuple) else self.adopt(key)
        key_parts = list(key_parts_of(key, x.shape, self._masked_axis_count)) or [(Ellipsis, 0, False)]
        next_axes = [axis for _, axis, _ in key_parts[1:]] + [x.ndim]
        for (part, axis, mask), next_axis in zip(key_parts, next_axes, strict=True):
            if isinstance(part, slice):
                result_shape += [len(range(x.shape[axis])[part]), *x.shape[axis + 1 : next_axis]]
                has_later_part = bool(joint_lengths)
            elif part is None or part is Ellipsis:
                result_shape += [1] * (part is None) + [*x.shape[axis:next_axis]]
                has_later_part = bool(joint_lengths)
            else:
                joint_axis, is_split = (
                    (joint_axis, is_split or has_later_part) if joint_lengths else (len(result_shape), False)
                )
                joint_lengths.append(self._index_shape(part, mask))
                axis_count = part.ndim if mask else 0 if isinstance(part, bool) else 1
                result_shape += x.shape[axis + axis_count : next_axis]
                has_later_part = has_later_part or axis + axis_count < next_axis
        insert_axis = 0 if is_split else joint_axis
        return self._with_shape(
            x, (*result_shape[:insert_axis], *broadcast_shape(joint_lengths), *result_shape[insert_axis:])
        )

    def _masked_axis_count(self, part: Any) -> int | None:
        """Returns the number of axes of a boolean mask in a key; -1 for a tensor of integers, None for other parts."""
        if not isinstance(part, AbstractTensor):
            return None
        if self.kind_of(part) == "bool":
            return part.ndim
        return -1 if self.checked_indices(part) is not None else None

    @staticmethod
    def _index_shape(part: Any, mask: bool) -> tuple[int, ...]:
        """Returns the shape of the index tensors that a part of a key stands for."""
        if isinstance(part, (bool, np.bool_)):
            return (int(part),)
        if not mask:
            return tuple(np.shape(part)) if not isinstance(part, AbstractTensor) else part.shape
        if isinstance(part, AbstractTensor) and part.known is None:
            raise no_value_error("the length of the result is the number of True elements of a mask")
        return (int(np.count_nonzero(part.value("a mask") if isinstance(part, AbstractTensor) else part)),)

    def nonzero(self, x: AbstractTensor) -> tuple[AbstractTensor, ...]:
        if x.ndim == 0:
            raise ShapeError("a tensor without axes has no indices")
        if x.known is None:
            raise no_value_error("the length of the result is the number of non-zero elements")
        index_vector = self.tensor_of((int(np.count_nonzero(x.value("nonzero"))),), self.dtypes["int64"])
        return (index_vector,) * x.ndim

    def slice(self, inputs: AbstractTensor, start_indices: Any, shape: Sequence[int]) -> AbstractTensor:
        block_slices(inputs.shape, self._block_starts(start_indices), shape)
        return self._with_shape(inputs, as_shape(shape))

    def slice_update(self, inputs: AbstractTensor, start_indices: Any, updates: AbstractTensor) -> AbstractTensor:
        block_slices(inputs.shape, self._block_starts(start_indices), updates.shape)
        return inputs

    @staticmethod
    def _block_starts(start_indices: Any) -> Any:
        """Returns the first index of a block along each axis, with 0 for the unknown ones."""
        if isinstance(start_indices, AbstractTensor):
            return [0] * start_indices.shape[0] if start_indices.known is None else start_indices.tolist()
        return [0 if isinstance(start, AbstractTensor) and start.known is None else start for start in start_indices]

    @Rule
    def scatter_update(
        self: Any,
        name: str,
        inputs: AbstractTensor,
        indices: Any,
        updates: AbstractTensor,
        reduction: str | None = None,
    ) -> AbstractTensor:
        positions = self.checked_indices(indices)
        check_index_vectors(positions.shape, inputs.shape)
        if isinstance(positions, np.ndarray):
            for axis in range(positions.shape[-1]):
                nonnegative_indices(positions[..., axis], inputs.shape[axis])
        checked_reduction(reduction, _REDUCTIONS)
        full_shape = (*positions.shape[:-1], *inputs.shape[positions.shape[-1] :])
        if broadcast_shape([updates.shape, full_shape]) != full_shape:
            raise ShapeError(f"updates of shape {updates.shape} do not broadcast to shape {full_shape}")
        default_row = [[0] * positions.shape[-1]]
        return self.tensor_of(
            inputs.shape, dtype_from(self, name, inputs, default_row, self.tensor_of((1,), updates.dtype), reduction)
        )

    def diagonal(self, x: AbstractTensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> AbstractTensor:
        first_axis, second_axis = nonnegative_axes((axis1, axis2), require_matrices(x).ndim)
        far_offset = clip_offset(offset, FURTHEST, FURTHEST)
        other_lengths = [n for a, n in enumerate(x.shape) if a not in (first_axis, second_axis)]
        return self._with_shape(
            x, (*other_lengths, diagonal_length(x.shape[first_axis], x.shape[second_axis], far_offset))
        )

    def tril_indices(self, n: int, k: int = 0, m: int | None = None) -> tuple[AbstractTensor, AbstractTensor]:
        row_count, column_count = as_shape((n, n if m is None else m))
        return self._index_pair(_count_on_and_below(row_count, column_count, clip_offset(k, row_count, column_count)))

    def triu_indices(self, n: int, k: int = 0, m: int | None = None) -> tuple[AbstractTensor, AbstractTensor]:
        row_count, column_count = as_shape((n, n if m is None else m))
        return self._index_pair(
            row_count * column_count
            - _count_on_and_below(row_count, column_count, clip_offset(k, row_count, column_count) - 1)
        )

    def _index_pair(self, count: int) -> tuple[AbstractTensor, AbstractTensor]:
        index_tensor = self.tensor_of((count,), self.dtypes["int64"])
        return index_tensor, index_tensor

    def unravel_index(self, indices: Any, shape: Sequence[int]) -> tuple[AbstractTensor, ...]:
        positions, lengths = self.checked_indices(indices), as_shape(shape)
        if isinstance(positions, np.ndarray):
            unravel(positions, lengths)
        return (self.tensor_of(tuple(positions.shape), self.dtypes["int64"]),) * len(lengths)

    @Rule
    def one_hot(
        self: Any,
        name: str,
        x: AbstractTensor,
        num_classes: int,
        axis: int = -1,
        dtype: Any = None,
        sparse: bool = False,
    ) -> AbstractTensor:
        refuse_sparse("sparse", sparse)
        result_dtype = dtype_from(self, name, x, 1, axis, dtype)
        (axis_index,) = nonnegative_axes(axis, x.ndim + 1)
        return self.tensor_of(
            (*x.shape[:axis_index], class_count(operator.index(num_classes), x), *x.shape[axis_index:]),
            result_dtype,
        )


def _count_on_and_below(rows: int, columns: int, offset: int) -> int:
    """Returns the number of elements of a matrix on and below a diagonal.

    Row i has min(max(i + offset + 1, 0), columns) of them.
    """
    first_row = min(max(-offset, 0), rows)
    first_full_row = min(max(columns - offset, first_row), rows)
    rising_row_count = first_full_row - first_row
    return (
        rising_row_count * (2 * (first_row + offset + 1) + rising_row_count - 1) // 2
        + (rows - first_full_row) * columns
        if rows
        else 0
    )
