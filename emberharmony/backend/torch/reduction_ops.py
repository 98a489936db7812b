"""Reductions and cumulative ops over axes, on PyTorch."""


class TorchReductionOps:
    """Holds the ops of `ops/reduction.py`."""
