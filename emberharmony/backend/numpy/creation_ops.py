"""Making tensors: filled ones, ranges, grids, windows, on NumPy."""


class NumpyCreationOps:
    """Holds the ops of `ops/creation.py`."""
