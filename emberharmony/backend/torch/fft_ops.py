"""Discrete Fourier transforms, on PyTorch."""


class TorchFftOps:
    """Holds the ops of `ops/fft.py`."""
