"""Counts of values, on Dask: each block is counted, and the counts are added."""

from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import Block, Slot, require_known_lengths
from emberharmony.backend.dask.dtypes import DTYPES, cast, promotion
from emberharmony.backend.shared.reductions.histograms import check_weights, histogram_edges, integers_to_count
from emberharmony.core.options import refuse_sparse


def _bin_edges(low: Any, high: Any, bins: int, limits: Any, dtype: np.dtype) -> np.ndarray:
    return histogram_edges(float(low), float(high), bins, limits).astype(dtype)


def _histogram_of_block(x: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return np.histogram(x, steps)[0].reshape(*(1,) * x.ndim, -1)


def _bincount_of_block(x: np.ndarray, weights: np.ndarray | None, length: int) -> np.ndarray:
    return np.bincount(x, weights, length)[None, :]


class DaskHistogramsOps:
    """Holds the ops of `ops/reductions/histograms.py`.

    These count block by block; the bodies would compute the tensor.
    """

    bound: Any

    def bincount(self, x: da.Array, weights: Any = None, minlength: int = 0, sparse: bool = False) -> da.Array:
        """Returns counts of integers, added over blocks; computes the largest number, which determines the shape."""
        refuse_sparse("sparse", sparse)
        integers_to_count(np.zeros((1,) * require_known_lengths(x).ndim, x.dtype))
        if weights is not None:
            check_weights(require_known_lengths(weights), x)
        smallest_and_largest = integers_to_count(np.asarray(dask.compute(x.min(), x.max()) if x.size else (), x.dtype))
        bin_count = max(int(smallest_and_largest.max(initial=-1)) + 1, minlength)
        if not x.size:
            return self.bound.zeros(
                (bin_count,), DTYPES["int64"] if weights is None else promotion.floats(weights).dtype
            )
        int64_x = cast(x, DTYPES["int64"])
        if weights is None:
            return self._sum_over_blocks(_bincount_of_block, [int64_x], (None, bin_count), bin_count, DTYPES["int64"])
        weights = promotion.floats(weights)
        wide_weights = cast(weights, DTYPES["float64"])
        return cast(
            self._sum_over_blocks(
                _bincount_of_block, [int64_x, wide_weights], (bin_count,), bin_count, wide_weights.dtype
            ),
            weights.dtype,
        )

    def histogram(self, x: da.Array, bins: int = 10, range: Any = None) -> tuple[da.Array, da.Array]:
        """Returns a histogram as counts added over blocks, and its edges; both stay uncomputed."""
        x = promotion.floats(require_known_lengths(x))
        bin_edges = histogram_edges(0.0, 1.0, bins, range).astype(x.dtype)
        if range is not None or not x.size:
            edge_tensor = da.from_array(bin_edges, chunks=-1)
        else:
            extremes = (self.bound.min(x), self.bound.max(x))
            make_edges = Block(_bin_edges, (Slot(0), Slot(1), bins, None, x.dtype), {})
            blockwise_args = [argument for extreme in extremes for argument in (extreme, ())]
            meta = np.empty(0, x.dtype)
            edge_tensor = da.blockwise(
                make_edges, (0,), *blockwise_args, new_axes={0: bins + 1}, dtype=x.dtype, meta=meta
            )
        if not x.size:
            return self.bound.zeros((bins,), DTYPES["int64"]), edge_tensor
        return self._sum_over_blocks(
            _histogram_of_block, [x[None]], (), bins, DTYPES["int64"], edge_tensor
        ), edge_tensor

    def _sum_over_blocks(
        self,
        count_block: Callable[..., np.ndarray],
        tensors: Sequence[da.Array],
        options: Sequence[Any],
        length: int,
        dtype: np.dtype,
        limits: da.Array | None = None,
    ) -> da.Array:
        """Returns the sum of the vectors that a function of blocks counts for all blocks.

        Args:
            count_block: returns the vector of blocks, behind axes of length 1.
            tensors: tensors of one shape.
            options: further arguments of `count_block`.
            length: of the vector.
            limits: a tensor that each call takes whole, behind the blocks.
        """
        axes = tuple(i for i, _ in enumerate(tensors[0].shape))
        blockwise_args: list[Any] = [argument for x in tensors for argument in (x, axes)]
        blockwise_args += [] if limits is None else [limits, (2000,)]
        slots = [Slot(i) for i, _ in enumerate(blockwise_args[::2])]
        counts_of_blocks = da.blockwise(
            Block(count_block, (*slots, *options), {}, dtype),
            (*axes, 1000),
            *blockwise_args,
            new_axes={1000: length},
            adjust_chunks=dict.fromkeys(axes, 1),
            concatenate=True,
            dtype=dtype,
            meta=np.empty((0,) * (len(axes) + 1), dtype),
        )
        return self.bound.sum(counts_of_blocks, axes, dtype=dtype)
