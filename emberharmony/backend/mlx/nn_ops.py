"""Activations, normalisations and losses, on MLX."""


class MLXNnOps:
    """Holds the ops of `ops/nn.py`."""
