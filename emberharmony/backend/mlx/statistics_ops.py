"""Statistics, on MLX."""


class MLXStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""
