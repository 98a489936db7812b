"""Image ops, on MLX."""


class MLXImageOps:
    """Holds the ops of `ops/image.py`."""
