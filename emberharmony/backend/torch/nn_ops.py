"""Activations, normalisations and losses, on PyTorch."""


class TorchNnOps:
    """Holds the ops of `ops/nn.py`."""
