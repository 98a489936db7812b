"""Histograms, on PyTorch."""

from typing import TYPE_CHECKING

import torch

from emberharmony.backend.torch.dtypes import promotion, to_host_array
from emberharmony.core.deferred import Deferred
from emberharmony.core.options import refuse_sparse

if TYPE_CHECKING:
    from emberharmony.backend.shared.reductions import histograms as shared_histograms
else:
    shared_histograms = Deferred("emberharmony.backend.shared.reductions.histograms")


class TorchHistogramsOps:
    """Holds the ops of `ops/reductions/histograms.py`.

    The bodies compute on the host, which has no gradient; on the CPU they take 1.3 times as long, for few elements.
    """

    @staticmethod
    def bincount(
        x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0, sparse: bool = False
    ) -> torch.Tensor:
        refuse_sparse("sparse", sparse)
        shared_histograms.integers_to_count(
            to_host_array(x.float() if x.dtype.is_floating_point else x.to(torch.int64))
        )
        x = x.to(torch.int64)
        if weights is None:
            return torch.bincount(x, None, minlength)
        shared_histograms.check_weights(weights, x)
        weights = promotion.floats(weights)
        # torch.bincount (PyTorch 2.13) has no derivative with respect to the weights; index_add has.
        bin_count = max(minlength, int(x.max()) + 1 if x.numel() else 0)
        return (
            weights.new_zeros(bin_count, dtype=torch.float64)
            .index_add(0, x, weights.to(torch.float64))
            .to(weights.dtype)
        )

    @staticmethod
    def histogram(
        x: torch.Tensor, bins: int = 10, range: tuple[float, float] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        float_x = promotion.floats(x)
        x = float_x.detach()
        smallest, largest = (float(x.min()), float(x.max())) if x.numel() else (0.0, 1.0)
        bin_edges = torch.from_numpy(shared_histograms.histogram_edges(smallest, largest, bins, range)).to(x)
        inside_values = x.reshape(-1)
        inside_values = inside_values[(inside_values >= bin_edges[0]) & (inside_values <= bin_edges[-1])]
        bin_numbers = (torch.searchsorted(bin_edges, inside_values, right=True) - 1).clamp_max(bins - 1)
        if range is None and x.numel():
            unit_edges = torch.linspace(0.0, 1.0, bins + 1, dtype=x.dtype, device=x.device)
            range_edges = float_x.min() * (1.0 - unit_edges) + float_x.max() * unit_edges
            bin_edges = bin_edges + (
                range_edges - range_edges.detach()
            )  # adds 0, which carries the derivative of the edges
        return torch.bincount(bin_numbers, minlength=bins), bin_edges
