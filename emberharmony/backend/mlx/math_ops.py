"""Elementwise mathematics, on MLX."""

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion


class MLXMathOps:
    """Holds the ops of `ops/math.py`."""

    sin = staticmethod(promotion.unary(mx.sin))
    add = staticmethod(promotion.binary(mx.add))
