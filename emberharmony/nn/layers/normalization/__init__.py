"""Normalisations: layers that scale their input to mean 0 and variance 1."""
