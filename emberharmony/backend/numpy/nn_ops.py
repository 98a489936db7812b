"""Activations, normalisations and losses, on NumPy."""


class NumpyNnOps:
    """Holds the ops of `ops/nn.py`."""
