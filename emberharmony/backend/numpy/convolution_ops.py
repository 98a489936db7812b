"""Convolution, pooling and attention, on NumPy."""


class NumpyConvolutionOps:
    """Holds the ops of `ops/convolution.py`."""
