"""Conversion of indices, and reading and writing by index, on PyTorch."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from emberharmony.backend.host import host_indices
from emberharmony.backend.shared.arrays.indexing import nonnegative_indices, require_elements
from emberharmony.backend.torch.derivatives import multiply_rows
from emberharmony.backend.torch.dtypes import DTYPES, extend_by_int64
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.state.handlers import passing_error

REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
_FURTHEST = torch.iinfo(torch.int64).max
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
NARROW = {torch.bool: torch.uint8, torch.float16: torch.float32, torch.bfloat16: torch.float32}


def extend_by_signed(native: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Returns a function that also supports wide unsigned dtypes, by viewing them as signed ones.

    Args:
        native: a function that only moves elements, and has no kernels for wide unsigned dtypes (PyTorch 2.13).
    """

    def call_signed(x: torch.Tensor, *args: Any) -> torch.Tensor:
        signed_dtype = SIGNED.get(x.dtype)
        return native(x, *args) if signed_dtype is None else native(x.view(signed_dtype), *args).view(x.dtype)

    return call_signed


flip = extend_by_signed(torch.flip)
index_select = extend_by_signed(torch.index_select)


def int64_indices(indices: Any, device: torch.device) -> torch.Tensor:
    """Returns indices, a tensor or host data, as an int64 tensor on a device.

    PyTorch treats a uint8 tensor as a mask, and few of its ops accept indices of other dtypes than int64. An index that
    int64 cannot hold becomes its largest number, which is out of bounds too; the cast would wrap it around.

    Raises:
        ArgumentTypeError: if the indices are not integers.
    """
    if not isinstance(indices, torch.Tensor):
        return torch.from_numpy(np.array(host_indices(indices))).to(device)
    if indices.dtype is torch.int64:
        return indices
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is torch.bool:
        raise ArgumentTypeError(f"expected integer indices, got {DTYPES.neutral[indices.dtype]}; cast them (ops.cast)")
    indices_64 = indices.to(torch.int64)
    return indices_64 if indices.dtype is not torch.uint64 else torch.where(indices_64 < 0, _FURTHEST, indices_64)


def indices_like(indices: Any, length: int, x: torch.Tensor) -> torch.Tensor:
    """Returns indices as an int64 tensor in which those of the valid range -length to length - 1 are not negative.

    Indices on the host (numbers, lists, arrays) are checked. Those in a tensor are not, since reading them may wait for
    the accelerator.

    Raises:
        ArgumentTypeError: if the indices are not integers.
        IndexOutOfBoundsError: if an index on the host is out of bounds.
    """
    if not isinstance(indices, torch.Tensor):
        if indices.__class__ is list and all(i.__class__ is int and 0 <= i < length for i in indices):
            return torch.tensor(indices, dtype=torch.int64, device=x.device)
        return torch.from_numpy(np.array(nonnegative_indices(host_indices(indices), length))).to(x.device)
    return _nonnegative_indices(int64_indices(indices, x.device), length)


def _nonnegative_indices(indices: torch.Tensor, length: int) -> torch.Tensor:
    return torch.where(indices < 0, indices + length, indices)


def take_slices(x: torch.Tensor, indices: Any, axis: int) -> torch.Tensor:
    """Returns the slices of `x` at indices along an axis; in the result the shape of `indices` replaces that axis."""
    if indices.__class__ is int and -x.shape[axis] <= indices < x.shape[axis]:
        return torch.select_copy(x, axis, indices)
    if isinstance(indices, torch.Tensor):
        positions = int64_indices(indices, x.device)
        require_elements(x.shape[axis], positions.numel())
        if not x.is_cpu or (torch.compiler.is_compiling() and x.dtype not in SIGNED):
            # On an accelerator index_select ends the process at a negative index, and compiled code reads two indices.
            return x[(slice(None),) * axis + (positions,)]
    else:
        positions = indices_like(indices, x.shape[axis], x)
    flat_positions = positions if positions.ndim == 1 else positions.reshape(-1)
    try:
        # torch.compile cannot retry after an exception, so wrap negative indices beforehand.
        slices = index_select(
            x,
            axis,
            _nonnegative_indices(flat_positions, x.shape[axis]) if torch.compiler.is_compiling() else flat_positions,
        )
    except (IndexError, RuntimeError) as error:
        if passing_error(error):
            raise
        # index_select rejects negative indices. Wrap them only now, since most calls have none.
        try:
            slices = index_select(x, axis, _nonnegative_indices(flat_positions, x.shape[axis]))
        except IndexError:
            # This check raises the error that names the index out of bounds.
            nonnegative_indices(flat_positions.numpy(), x.shape[axis])
            raise
    return (
        slices
        if flat_positions is positions
        else slices.reshape((*x.shape[:axis], *positions.shape, *x.shape[axis + 1 :]))
    )


def masked_axis_count(part: Any) -> int | None:
    """Returns the number of axes of a boolean mask, -1 for any other tensor, None for everything else."""
    if not isinstance(part, torch.Tensor):
        return None
    return part.ndim if part.dtype is torch.bool else -1


def keep_last_of_equal(columns: Sequence[torch.Tensor], lengths: Sequence[int], values: torch.Tensor) -> torch.Tensor:
    """Returns values to write at indices, with those of equal indices replaced by the last one of them.

    Only that last value gets a gradient. PyTorch itself would write any of the values, and give each of them a
    gradient.

    Args:
        columns: the indices of each of the first axes.
        lengths: the lengths of these axes.
        values: shape (*shape of the indices, *shape of a slice).
    """
    row_numbers = torch.zeros_like(columns[0])
    for column, length in zip(columns, lengths, strict=False):
        # Clamp an index out of bounds here; the write that follows raises for it.
        row_numbers = row_numbers * length + _nonnegative_indices(column, length).clamp(0, max(length - 1, 0))
    shape, update_numbers = row_numbers.shape, torch.arange(row_numbers.numel(), device=row_numbers.device)
    flat_row_numbers, row_shape = row_numbers.reshape(-1), values.shape[row_numbers.ndim :]
    last_positions = torch.zeros(math.prod(lengths), dtype=torch.int64, device=row_numbers.device)
    last_positions = last_positions.scatter_reduce(0, flat_row_numbers, update_numbers, "amax").gather(
        0, flat_row_numbers
    )
    last_values = values.reshape(-1, *row_shape).index_select(0, last_positions)
    is_last = (last_positions == update_numbers).reshape(-1, *(1 for _ in row_shape))
    return torch.where(is_last, last_values, last_values.detach()).reshape(*shape, *row_shape)


def combine_rows(rows: torch.Tensor, row_places: torch.Tensor, updates: torch.Tensor, reduction: str) -> torch.Tensor:
    """Returns rows, each combined with all updates whose index is that row.

    Args:
        rows: shape (rows, ...).
        row_places: the index of each update, shape (updates,).
        updates: shape (updates, ...).
        reduction: a key of `REDUCE`.
    """

    def combine_wide(rows: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        if reduction == "add":
            return rows.index_add(0, row_places, updates)
        if reduction == "mul":
            return multiply_rows(rows, row_places, updates)
        row_indices = row_places.reshape(-1, *(1,) * (rows.ndim - 1)).expand(updates.shape)
        return rows.scatter_reduce(0, row_indices, updates, REDUCE[reduction])

    # Half precision is combined in float32, to keep its digits, and booleans as numbers.
    wide_dtype = NARROW.get(rows.dtype, rows.dtype)
    combined_rows = extend_by_int64(combine_wide, reduction in ("max", "min"))(
        rows.to(wide_dtype), updates.to(wide_dtype)
    )
    return combined_rows.to(rows.dtype)
