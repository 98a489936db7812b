"""Pooling, on MLX: the maximum of adjacent windows by reductions, which take less time than calls for slices."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.shared.convolution import USUAL_POOL, adjacent
from emberharmony.core.dispatch import fast

_FEW = 2**13
"""From this many elements on, a reduction for each axis is faster than one over all of them."""


def _quick_max(x: mx.array, size: int, *_usual: Any) -> mx.array:
    """Returns the largest element of each window; windows are adjacent, and no element is left over."""
    apart, axes = adjacent(x.shape, size)
    if x.size < _FEW:
        return mx.max(x.reshape(apart), axes)
    for axis in range(1, x.ndim - 1):
        shape = x.shape
        x = mx.max(x.reshape(*shape[:axis], -1, size, *shape[axis + 1 :]), axis + 1)
    return x


class MLXPoolingOps:
    """Holds the ops of `ops/pooling.py`."""

    composed: Callable[[str], Callable[..., mx.array]]

    @fast(_quick_max, f"{USUAL_POOL} and untransformed and {{0}}.dtype == native_float32 and {{0}}.size")
    def max_pool(
        self,
        inputs: mx.array,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        ceil_mode: bool = False,
    ) -> mx.array:
        return self.composed("max_pool")(inputs, pool_size, strides, padding, data_format, dilation_rate, ceil_mode)
