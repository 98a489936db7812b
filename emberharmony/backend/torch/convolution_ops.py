"""Convolution, pooling and attention, on PyTorch."""


class TorchConvolutionOps:
    """Holds the ops of `ops/convolution.py`."""
