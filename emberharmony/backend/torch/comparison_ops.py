"""Comparisons and logic, element by element, on PyTorch."""


class TorchComparisonOps:
    """Holds the ops of `ops/comparison.py`."""
