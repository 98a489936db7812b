"""Gradient rules of what layers of neural networks compute."""
