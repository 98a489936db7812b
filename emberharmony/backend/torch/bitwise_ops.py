"""Bitwise ops on integers and booleans, on PyTorch."""


class TorchBitwiseOps:
    """Holds the ops of `ops/bitwise.py`."""
