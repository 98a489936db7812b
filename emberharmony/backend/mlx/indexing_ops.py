"""Reading and writing by index, on MLX."""


class MLXIndexingOps:
    """Holds the ops of `ops/indexing.py`."""
