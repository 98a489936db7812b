"""Changing the shape: reshaping, transposing, joining, splitting, repeating, on PyTorch."""


class TorchShapeOps:
    """Holds the ops of `ops/shape.py`."""
