"""Reading and writing by index, on PyTorch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from emberharmony.backend.indices import block, checked, columns, host_indices
from emberharmony.backend.promote import normalized
from emberharmony.backend.torch.devices_ops import place
from emberharmony.backend.torch.dtypes import DTYPES, cast, promotion
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentTypeError


def indices_like(indices: Any, length: int, x: torch.Tensor) -> torch.Tensor:
    """Returns indices as an int64 tensor without negative ones; those known to the host are checked."""
    if not isinstance(indices, torch.Tensor):
        return torch.from_numpy(np.array(checked(host_indices(indices), length))).to(x.device)
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is torch.bool:
        raise ArgumentTypeError(f"indices are integers, not {indices.dtype}")
    # uint8 would be taken for a mask.
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + length, indices)


def _key(part: Any, x: torch.Tensor) -> Any:
    """Returns one part of a key as PyTorch takes it."""
    if isinstance(part, (list, np.ndarray)):
        part = torch.as_tensor(part, device=x.device)
    return part.to(torch.int64) if isinstance(part, torch.Tensor) and part.dtype is torch.uint8 else part


class TorchIndexingOps:
    """Holds the ops of `ops/indexing.py`."""

    @staticmethod
    def where(condition: torch.Tensor, x1: Any, x2: Any) -> torch.Tensor:
        a, b = promotion.common(x1, x2)
        return torch.where(condition.to(torch.bool), a, b)

    @staticmethod
    def take(x: torch.Tensor, indices: Any, axis: int | None = None) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = normalized(axis, x.ndim)
        where = indices_like(indices, x.shape[axis], x)
        taken = torch.index_select(x, axis, where.reshape(-1))
        return taken.reshape((*x.shape[:axis], *where.shape, *x.shape[axis + 1 :]))

    @staticmethod
    def take_along_axis(x: torch.Tensor, indices: Any, axis: int | None = -1) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = normalized(axis, x.ndim)
        return torch.take_along_dim(x, indices_like(indices, x.shape[axis], x), axis)

    @staticmethod
    def get_item(x: torch.Tensor, key: Any) -> torch.Tensor:
        parts = key if isinstance(key, tuple) else (key,)
        backwards = [isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts]
        if any(backwards):
            x, parts = _reversed(x, parts)
        return x[tuple(_key(part, x) for part in parts)]

    @staticmethod
    def nonzero(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.nonzero(x, as_tuple=True)

    @staticmethod
    def slice(x: torch.Tensor, start_indices: Sequence[int], shape: Sequence[int]) -> torch.Tensor:
        return x[block(x.shape, start_indices, shape)]

    @staticmethod
    def slice_update(x: torch.Tensor, start_indices: Sequence[int], updates: torch.Tensor) -> torch.Tensor:
        result = x.clone()
        result[block(x.shape, start_indices, updates.shape)] = cast(updates, x.dtype)
        return result

    @staticmethod
    def scatter(indices: torch.Tensor, values: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        result = torch.zeros(tuple(shape), dtype=values.dtype, device=values.device)
        return result.index_put(_columns(indices, shape), values, accumulate=True)

    @staticmethod
    def scatter_update(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        return x.index_put(_columns(indices, x.shape), cast(updates, x.dtype))

    @staticmethod
    def diagonal(x: torch.Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> torch.Tensor:
        return torch.diagonal(x, offset, axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        rows, cols = torch.tril_indices(n, n if m is None else m, k, device=place(None))
        return rows, cols

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        rows, cols = torch.triu_indices(n, n if m is None else m, k, device=place(None))
        return rows, cols

    @staticmethod
    def one_hot(x: torch.Tensor, num_classes: int, axis: int = -1, dtype: Any = None) -> torch.Tensor:
        hits = x.unsqueeze(-1) == torch.arange(num_classes, device=x.device)
        return torch.moveaxis(hits, -1, axis).to(DTYPES[default_float()] if dtype is None else dtype)


def _columns(indices: torch.Tensor, shape: Sequence[int]) -> tuple[torch.Tensor, ...]:
    host = columns(indices.cpu().numpy(), shape)
    return tuple(torch.from_numpy(column).to(indices.device) for column in host)


def _reversed(x: torch.Tensor, parts: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """Returns `x` flipped where a slice runs backwards, and the key that reads the same elements forwards."""
    used = sum(1 for part in parts if part is not None and part is not Ellipsis)
    new, axis = [], 0
    for part in parts:
        if part is Ellipsis:
            axis += x.ndim - used
        elif part is not None:
            if isinstance(part, slice) and part.step is not None and part.step < 0:
                places = range(x.shape[axis])[part]
                x = torch.flip(x, (axis,))
                last = x.shape[axis] - 1
                part = slice(last - places.start, last - places.stop, -places.step) if len(places) else slice(0, 0)
            axis += 1
        new.append(part)
    return x, tuple(new)
