"""Comparisons and logic, element by element, on MLX."""


class MLXComparisonOps:
    """Holds the ops of `ops/comparison.py`."""
