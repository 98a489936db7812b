"""Reading and writing by index, on PyTorch."""


class TorchIndexingOps:
    """Holds the ops of `ops/indexing.py`."""
