"""Image ops, on NumPy."""


class NumpyImageOps:
    """Holds the ops of `ops/image.py`."""
