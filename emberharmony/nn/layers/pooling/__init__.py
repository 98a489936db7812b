"""Pooling layers, which take the maximum or the mean of windows."""
