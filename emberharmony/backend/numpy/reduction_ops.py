"""Reductions and cumulative ops over axes, on NumPy."""


class NumpyReductionOps:
    """Holds the ops of `ops/reduction.py`."""
