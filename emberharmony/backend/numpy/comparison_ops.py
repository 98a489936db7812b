"""Comparisons and logic, element by element, on NumPy."""


class NumpyComparisonOps:
    """Holds the ops of `ops/comparison.py`."""
