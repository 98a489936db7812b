"""Sorting, searching and sets, on MLX."""


class MLXSortingOps:
    """Holds the ops of `ops/sorting.py`."""
