"""Reductions of segments, that is of groups of slices, on PyTorch."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.shared.segments import check_segments, neutral_element, segment_count, segments
from emberharmony.backend.torch.convolution_ops import WIDE
from emberharmony.backend.torch.dtypes import DTYPES, on_host
from emberharmony.backend.torch.indices import integers, reduced
from emberharmony.backend.torch.tracing import has_values


def _is_plain(data: torch.Tensor, ids: Any) -> bool:
    """Returns whether `index_add` adds the segments of `data` in its dtype, and checks the ids."""
    if data.dtype not in WIDE or not isinstance(ids, torch.Tensor) or ids.dtype is not torch.int64:
        return False
    return data.is_cpu and ids.ndim == 1 and data.shape[:1] == ids.shape and has_values(ids) and has_values(data)


def _segment(reduction: str) -> Callable[..., torch.Tensor]:
    """Returns the op that reduces the slices of each segment."""

    def segment(
        data: torch.Tensor, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
    ) -> torch.Tensor:
        if reduction == "add" and num_segments.__class__ is int and _is_plain(data, segment_ids):
            # The kernel checks the ids, in less time. If one is wrong, the code below raises the typed error.
            with contextlib.suppress(IndexError, RuntimeError):
                return data.new_zeros((num_segments, *data.shape[1:])).index_add(0, segment_ids, data)
        start = neutral_element(DTYPES.neutral[data.dtype], reduction)
        # Reading ids from an accelerator would wait for its queue, so those are not checked if `num_segments` is given.
        known = not isinstance(segment_ids, torch.Tensor)
        ids = integers(segment_ids, data.device)
        check_segments(ids.shape, data.shape)
        if known or num_segments is None or ids.device.type == "cpu":
            num_segments = segments(on_host(ids), num_segments)
        else:
            num_segments = segment_count(num_segments)
        rows = torch.full((num_segments, *data.shape[1:]), start, dtype=data.dtype, device=data.device)
        return reduced(rows, ids, data, reduction)

    return segment


class TorchSegmentsOps:
    """Holds the ops of `ops/segments.py`."""

    segment_sum = staticmethod(_segment("add"))
    segment_prod = staticmethod(_segment("mul"))
    segment_max = staticmethod(_segment("max"))
    segment_min = staticmethod(_segment("min"))
