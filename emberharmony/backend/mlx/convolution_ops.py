"""Convolution, pooling and attention, on MLX."""


class MLXConvolutionOps:
    """Holds the ops of `ops/convolution.py`."""
