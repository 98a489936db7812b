"""Statistics: means of other kinds, quantiles, histograms, covariance, and the reductions that pass over NaN, on NumPy."""


class NumpyStatisticsOps:
    """Holds the ops of `ops/statistics.py`."""
