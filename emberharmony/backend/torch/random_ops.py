"""Random numbers, on PyTorch."""


class TorchRandomOps:
    """Holds the ops of `ops/random.py`."""
