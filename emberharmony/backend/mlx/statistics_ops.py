"""Statistics: means of other kinds, quantiles, histograms, covariance, and the reductions that pass over NaN, on MLX."""


class MLXStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""
