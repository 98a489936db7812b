"""Indices and writes by index, on PyTorch."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from emberharmony.backend.host import host_indices
from emberharmony.backend.shared.indexing import checked, inside
from emberharmony.backend.torch.derivatives import multiplied
from emberharmony.backend.torch.dtypes import DTYPES, through_int64
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.state.handlers import passing

REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
NARROW = {torch.bool: torch.uint8, torch.float16: torch.float32, torch.bfloat16: torch.float32}


def through_signed(native: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Returns a function that moves elements and knows no wide unsigned dtypes: these are viewed as signed ones."""

    def called(x: torch.Tensor, *args: Any) -> torch.Tensor:
        signed = SIGNED.get(x.dtype)
        return native(x, *args) if signed is None else native(x.view(signed), *args).view(x.dtype)

    return called


flip = through_signed(torch.flip)
index_select = through_signed(torch.index_select)


def integers(indices: Any, device: torch.device) -> torch.Tensor:
    """Returns indices as an int64 tensor: uint8 would be taken for a mask, and few ops take the others.

    Raises: ArgumentTypeError if they are no integers.
    """
    if not isinstance(indices, torch.Tensor):
        return torch.from_numpy(np.array(host_indices(indices))).to(device)
    if indices.dtype is torch.int64:
        return indices
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is torch.bool:
        raise ArgumentTypeError(f"indices are integers, not {DTYPES.neutral[indices.dtype]}")
    return indices.to(torch.int64)


def indices_like(indices: Any, length: int, x: torch.Tensor) -> torch.Tensor:
    """Returns indices as an int64 tensor without negative ones; those known to the host are checked."""
    if not isinstance(indices, torch.Tensor):
        if indices.__class__ is list and all(i.__class__ is int and 0 <= i < length for i in indices):
            return torch.tensor(indices, dtype=torch.int64, device=x.device)
        return torch.from_numpy(np.array(checked(host_indices(indices), length))).to(x.device)
    return _from_zero(integers(indices, x.device), length)


def _from_zero(indices: torch.Tensor, length: int) -> torch.Tensor:
    return torch.where(indices < 0, indices + length, indices)


def taken(x: torch.Tensor, indices: Any, axis: int) -> torch.Tensor:
    """Returns the slices of `x` at indices along an axis, which the shape of `indices` replaces."""
    if indices.__class__ is int and -x.shape[axis] <= indices < x.shape[axis]:
        return torch.select_copy(x, axis, indices)
    if isinstance(indices, torch.Tensor):
        where = integers(indices, x.device)
        inside(x.shape[axis], where.numel())
        if not x.is_cpu:
            # An accelerator ends the program where index_select meets a negative index.
            return x[(slice(None),) * axis + (where,)]
    else:
        where = indices_like(indices, x.shape[axis], x)
    flat = where if where.ndim == 1 else where.reshape(-1)
    try:
        # torch.compile cannot retry after an exception, so wrap negative indices beforehand.
        found = index_select(x, axis, _from_zero(flat, x.shape[axis]) if torch.compiler.is_compiling() else flat)
    except (IndexError, RuntimeError) as error:
        if passing(error):
            raise
        # It takes no negative ones.
        try:
            found = index_select(x, axis, _from_zero(flat, x.shape[axis]))
        except IndexError:
            checked(flat.numpy(), x.shape[axis])  # which names the one that is outside
            raise
    return found if flat is where else found.reshape((*x.shape[:axis], *where.shape, *x.shape[axis + 1 :]))


def mask_axes(part: Any) -> int | None:
    """Returns the number of axes of a mask, -1 for other tensors, None for all else."""
    if not isinstance(part, torch.Tensor):
        return None
    return part.ndim if part.dtype is torch.bool else -1


def last_of_equal(columns: Sequence[torch.Tensor], lengths: Sequence[int], values: torch.Tensor) -> torch.Tensor:
    """Returns values to write at indices, at equal ones the last value, which alone takes the derivative there.

    PyTorch writes any of them, and gives each a derivative.
    """
    at = torch.zeros_like(columns[0])
    for column, length in zip(columns, lengths, strict=False):
        # An index outside is found when the values are written.
        at = at * length + _from_zero(column, length).clamp(0, max(length - 1, 0))
    shape, places = at.shape, torch.arange(at.numel(), device=at.device)
    flat, rest = at.reshape(-1), values.shape[at.ndim :]
    last = torch.zeros(math.prod(lengths), dtype=torch.int64, device=at.device)
    last = last.scatter_reduce(0, flat, places, "amax").gather(0, flat)
    chosen = values.reshape(-1, *rest).index_select(0, last)
    kept = (last == places).reshape(-1, *(1 for _ in rest))
    return torch.where(kept, chosen, chosen.detach()).reshape(*shape, *rest)


def reduced(rows: torch.Tensor, at: torch.Tensor, updates: torch.Tensor, reduction: str) -> torch.Tensor:
    """Returns rows, each combined with the updates at its index."""

    def combine(rows: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        if reduction == "add" and updates.shape[1:] == rows.shape[1:]:
            return rows.index_add(0, at, updates)
        if reduction == "mul":
            return multiplied(rows, at, updates)
        places = at.reshape(-1, *(1,) * (rows.ndim - 1)).expand(updates.shape)
        return rows.scatter_reduce(0, places, updates, REDUCE[reduction])

    # Half precision is summed in single; booleans, as numbers.
    wide = NARROW.get(rows.dtype, rows.dtype)
    combined = through_int64(combine, reduction in ("max", "min"))(rows.to(wide), updates.to(wide))
    return combined.to(rows.dtype)
