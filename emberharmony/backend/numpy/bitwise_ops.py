"""Bitwise ops on integers and booleans, on NumPy."""


class NumpyBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""
