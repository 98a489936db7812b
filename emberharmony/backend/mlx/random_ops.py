"""Random numbers, on MLX."""


class MLXRandomOps:
    """Holds the ops of `ops/random.py`."""
