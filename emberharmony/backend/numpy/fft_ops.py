"""Discrete Fourier transforms, on NumPy."""


class NumpyFftOps:
    """Holds the ops of `ops/fft.py`."""
