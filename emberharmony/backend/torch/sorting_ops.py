"""Sorting, searching and sets, on PyTorch."""

import torch

from emberharmony.backend.indices import side_of, top
from emberharmony.backend.torch.dtypes import promotion


def _argsort(x: torch.Tensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    order = torch.argsort(x, dim=axis, descending=descending, stable=True)
    if not descending or not x.dtype.is_floating_point:
        return order
    last = torch.take_along_dim(torch.isnan(x), order, axis) if x.ndim else torch.isnan(x)
    return (
        torch.take_along_dim(order, torch.argsort(last.to(torch.uint8), dim=axis, stable=True), axis)
        if x.ndim
        else order
    )


class TorchSortingOps:
    """Holds the ops of `ops/sorting.py`."""

    argsort = staticmethod(_argsort)

    @staticmethod
    def sort(x: torch.Tensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        if not descending or x.ndim == 0:
            return torch.sort(x, dim=axis, stable=True).values
        return torch.take_along_dim(x, _argsort(x, axis, True), axis)

    @staticmethod
    def top_k(x: torch.Tensor, k: int, sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
        top(x.shape, k)
        order = _argsort(x, -1, True)[..., :k]
        return torch.take_along_dim(x, order, -1), order

    @staticmethod
    def searchsorted(sorted_sequence: torch.Tensor, values: torch.Tensor, side: str = "left") -> torch.Tensor:
        a, b = promotion.common(sorted_sequence, values)
        return torch.searchsorted(a.contiguous(), b.contiguous(), side=side_of(side))

    @staticmethod
    def unique(x: torch.Tensor) -> torch.Tensor:
        found = torch.unique(x, sorted=True)
        if not x.dtype.is_floating_point:
            return found
        nan = torch.isnan(found)
        return torch.cat([found[~nan], found[nan][:1]])

    @staticmethod
    def isin(x1: torch.Tensor, x2: torch.Tensor, invert: bool = False) -> torch.Tensor:
        a, b = promotion.common(x1, x2)
        if a.dtype is torch.bool:
            a, b = a.to(torch.uint8), b.to(torch.uint8)
        return torch.isin(a, b, invert=invert)
