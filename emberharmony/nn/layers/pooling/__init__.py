"""Layers that take the maximum or the mean of windows."""
