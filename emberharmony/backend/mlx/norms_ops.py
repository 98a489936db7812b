"""Norms, on MLX: composed of others throughout."""


class MLXNormsOps:
    """Holds the ops of `ops/norms.py`."""
