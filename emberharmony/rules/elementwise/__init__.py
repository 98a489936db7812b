"""Gradient rules of functions of each element."""
