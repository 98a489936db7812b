"""Changing the shape: reshaping, transposing, joining, splitting, repeating, on NumPy."""


class NumpyShapeOps:
    """Holds the ops of `ops/shape.py`."""
