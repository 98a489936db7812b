"""Statistics, on PyTorch."""


class TorchStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""
