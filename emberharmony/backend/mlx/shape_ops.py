"""Changing the shape: reshaping, transposing, joining, splitting, repeating, on MLX."""


class MLXShapeOps:
    """Holds the ops of `ops/shape.py`."""
