"""Gradient rules of making, reading, writing and arranging arrays."""
