"""Image ops, on PyTorch."""


class TorchImageOps:
    """Holds the ops of `ops/image.py`."""
