"""Normalisations: the constants that the backends share."""

EPSILON = 1e-7
"""The `epsilon` that stands for None, that of Keras."""
