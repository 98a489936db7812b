"""Making tensors: filled ones, ranges, grids, windows, on PyTorch."""


class TorchCreationOps:
    """Holds the ops of `ops/creation.py`."""
