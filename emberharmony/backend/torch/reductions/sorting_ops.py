"""Sorting, searching and set ops, on PyTorch."""

import torch
from torch.autograd import forward_ad

from emberharmony.backend.promote import tensor_and_axis
from emberharmony.backend.shared.reductions.sorting import WithUnique, check_top_k, checked_side, checked_sorter
from emberharmony.backend.torch.dtypes import as_orderable, from_orderable, promotion, to_host_array
from emberharmony.core.errors import ShapeError

_COMPLEX = ("complex",)


def _reverse_order(x: torch.Tensor) -> torch.Tensor:
    """Returns values whose ascending order is the descending order of `x`, NaN still last; it is its own inverse."""
    return -x if x.dtype.is_floating_point else ~x


def _argsort(x: torch.Tensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    promotion.refuse(x, _COMPLEX)
    x, axis = tensor_and_axis(x, axis, least=1)
    sortable_x = _reverse_order(as_orderable(x)) if descending else x
    return torch.argsort(sortable_x, dim=axis, stable=True)


def _sorted_vector(x: torch.Tensor) -> torch.Tensor:
    """Returns a vector in ascending order, complex numbers by their real and then by their imaginary part; NaN last."""
    if not x.dtype.is_complex:
        return torch.sort(x, stable=True).values
    # A stable sort by the secondary key, then by the primary one, gives the lexicographic order.
    imaginary_order = torch.sort(x.imag.detach(), stable=True).indices
    sorting_indices = torch.sort(x.real.detach()[imaginary_order], stable=True).indices
    sorted_x = x[imaginary_order[sorting_indices]]
    is_nan = sorted_x.detach().isnan()
    return torch.cat([sorted_x[~is_nan], sorted_x[is_nan]])


class TorchSortingOps(WithUnique):
    """Holds the ops of `ops/reductions/sorting.py`.

    The bodies compare each pair of elements, or compute on the host: they take 1.4 to 17 times as long, for few
    elements.
    """

    argsort = staticmethod(_argsort)

    @staticmethod
    def sort(x: torch.Tensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
        promotion.refuse(x, _COMPLEX)
        x, axis = tensor_and_axis(x, axis, least=1)
        if not descending:
            return torch.sort(x, dim=axis, stable=True).values
        sorted_x = torch.sort(_reverse_order(as_orderable(x)), dim=axis, stable=True).values
        return from_orderable(_reverse_order(sorted_x), x.dtype)

    @staticmethod
    def top_k(x: torch.Tensor, k: int, sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
        check_top_k(x.shape, k)
        # torch.topk does not promise an order of equal elements; a stable sort does.
        top_indices = _argsort(x, -1, True)[..., :k]
        return from_orderable(torch.take_along_dim(as_orderable(x), top_indices, -1), x.dtype), top_indices

    @staticmethod
    def searchsorted(
        sorted_sequence: torch.Tensor, values: torch.Tensor, side: str = "left", sorter: torch.Tensor | None = None
    ) -> torch.Tensor:
        if sorted_sequence.ndim != 1:
            raise ShapeError(f"expected a sorted sequence of shape (n,), got shape {tuple(sorted_sequence.shape)}")
        a, b = (as_orderable(x).contiguous() for x in promotion.common(sorted_sequence, values))
        promotion.refuse(a, _COMPLEX)
        if sorter is not None:
            a = a[torch.from_numpy(checked_sorter(to_host_array(sorter), len(a))).to(a.device)]
        if not a.dtype.is_floating_point:
            return torch.searchsorted(a, b, side=checked_side(side))
        # NaN counts as larger than all numbers, but torch.searchsorted compares by IEEE rules: every comparison with
        # NaN is false. So search among the numbers only.
        is_nan = torch.isnan(a)
        number_count = a.numel() - torch.sum(is_nan)
        positions = torch.searchsorted(torch.where(is_nan, torch.inf, a), b, side=checked_side(side)).minimum(
            number_count
        )
        return torch.where(torch.isnan(b), number_count if side == "left" else a.numel(), positions)

    @staticmethod
    def _unique(x: torch.Tensor) -> torch.Tensor:
        if x.dtype.is_complex or x.requires_grad or forward_ad._current_level >= 0:
            # torch.unique (PyTorch 2.13) has no derivative, and does not order complex NaN. Sort instead, and keep the
            # first of equal elements.
            sorted_x = _sorted_vector(x.reshape(-1))
            is_equal = (sorted_x[1:] == sorted_x[:-1]) | (sorted_x[1:].isnan() & sorted_x[:-1].isnan())
            return sorted_x[torch.cat([is_equal.new_zeros(min(len(sorted_x), 1)), is_equal]).logical_not()]
        # torch.unique returns every NaN; keep the first only.
        sorted_x = torch.unique(x, sorted=True)
        if not x.dtype.is_floating_point:
            return sorted_x
        is_nan = torch.isnan(sorted_x)
        return torch.cat([sorted_x[~is_nan], sorted_x[is_nan][:1]])

    @staticmethod
    def isin(x1: torch.Tensor, x2: torch.Tensor, assume_unique: bool = False, *, invert: bool = False) -> torch.Tensor:
        a, b = (as_orderable(x) for x in promotion.common(x1, x2))
        if a.dtype.is_complex:
            # torch.isin has no kernel for complex numbers.
            is_contained = (a.unsqueeze(-1) == b.reshape(-1)).any(-1)
            return ~is_contained if invert else is_contained
        # torch.isin (PyTorch 2.13) raises if the second tensor is not contiguous.
        return torch.isin(a, b.contiguous(), invert=invert)
