"""Making tensors: filled ones, ranges, grids, windows, on MLX."""


class MLXCreationOps:
    """Holds the ops of `ops/creation.py`."""
