"""Checks and computations that backends share for the layers of neural networks."""
