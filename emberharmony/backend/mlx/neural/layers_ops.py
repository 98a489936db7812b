"""The op `linear`, on MLX: one product where its sums are short, and sums in blocks for a single row.

Decoding token by token multiplies single rows.
"""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.algebra.products_ops import LONG
from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.shared.arrays.shape import fits_linear

_BLOCKS = (64, 32, 16, 8)
"""How many products are added sequentially, which keeps their digits: the first number that divides the length."""
_PIECE = 2**17
"""About how many products are made at a time, so that they stay in the cache."""


class MLXLayersOps:
    """Holds the ops of `ops/neural/layers.py`.

    MLX adds long sums in float32, so the body multiplies wide; where the sums are short, or one row is long, these keep
    the digits in less time and memory.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def linear(self, x: mx.array, weight: mx.array, bias: mx.array | None = None, transposed: bool = False) -> mx.array:
        fits_fast_path = (
            transposed and x.dtype == weight.dtype == mx.float32 and (bias is None or bias.dtype == mx.float32)
        )
        if fits_fast_path and fits_linear(x, weight, bias, True):
            length = weight.shape[1]
            product: mx.array | None = None
            if x.size and x.size * weight.size >> 26 < length <= LONG:
                product = mx.matmul(x, weight.T)
            elif length > LONG and x.size == length and on_cpu():
                block_length = next((n for n in _BLOCKS if length % n == 0), 0)
                if block_length:
                    product = _matrix_times_row(x.reshape(-1), weight, block_length).reshape(*x.shape[:-1], -1)
            if product is not None:
                return product if bias is None else product + bias
        return self.composed("linear")(x, weight, bias, transposed)


def _matrix_times_row(row: mx.array, weight: mx.array, block: int) -> mx.array:
    """Returns `weight @ row`, whose sums are added in blocks.

    MLX 0.32 adds the products of float32 sequentially on the CPU. A product in float64 would convert the whole weight,
    in 2 to 3 times the time and up to 9 times the memory.
    """
    row_count, length = weight.shape
    rows_per_piece = max(1, _PIECE // length)
    pieces = [row * weight[start : start + rows_per_piece] for start in range(0, row_count, rows_per_piece)]
    sums = [mx.sum(mx.sum(piece.reshape(-1, length // block, block), -1), -1) for piece in pieces]
    return sums[0] if len(sums) == 1 else mx.concatenate(sums)
