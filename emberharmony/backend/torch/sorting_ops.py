"""Sorting, searching and sets, on PyTorch."""


class TorchSortingOps:
    """Holds the ops of `ops/sorting.py`."""
