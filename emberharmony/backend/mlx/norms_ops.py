"""Norms, on MLX: all are composites; `cdist` also checks that its differences fit into memory."""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.device_ops import check_memory


class MLXNormsOps:
    """Holds the ops of `ops/norms.py`."""

    composed: Callable[[str], Callable[..., mx.array]]

    def cdist(self, x1: mx.array, x2: mx.array, p: float = 2.0) -> mx.array:
        # The composite holds the differences between all pairs of rows at once.
        check_memory((x1.size, x2.shape[-2] if x2.ndim > 1 else 1), max(x1.itemsize, x2.itemsize))
        return self.composed("cdist")(x1, x2, p)
