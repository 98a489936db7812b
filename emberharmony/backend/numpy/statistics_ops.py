"""Statistics, on NumPy."""


class NumpyStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""
