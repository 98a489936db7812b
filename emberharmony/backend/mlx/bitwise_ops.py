"""Bitwise ops on integers and booleans, on MLX."""


class MLXBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""
