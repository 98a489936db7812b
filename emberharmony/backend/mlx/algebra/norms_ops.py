"""Norms, on MLX: all are composites; `cdist` also checks that its differences fit into memory."""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.device_ops import check_memory


class MLXNormsOps:
    """Holds the ops of `ops/algebra/norms.py`.

    It is the body, after a check of the memory that the differences need, because MLX ends the process where it has too
    little.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def cdist(self, x: mx.array, y: mx.array, p: float = 2.0) -> mx.array:
        # The composite holds the differences between all pairs of rows at once.
        check_memory((x.size, y.shape[-2] if y.ndim > 1 else 1), max(x.itemsize, y.itemsize))
        return self.composed("cdist")(x, y, p)
