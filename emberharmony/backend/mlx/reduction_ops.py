"""Reductions and cumulative ops over axes, on MLX."""


class MLXReductionOps:
    """Holds the ops of `ops/reduction.py`."""
