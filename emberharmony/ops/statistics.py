"""Statistics: means of other kinds, quantiles, histograms, covariance, and the reductions that pass over NaN."""

from __future__ import annotations
