"""Sorting, searching and sets, on NumPy."""


class NumpySortingOps:
    """Holds the ops of `ops/sorting.py`."""
