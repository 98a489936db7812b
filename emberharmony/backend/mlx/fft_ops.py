"""Discrete Fourier transforms, on MLX."""


class MLXFftOps:
    """Holds the ops of `ops/fft.py`."""
