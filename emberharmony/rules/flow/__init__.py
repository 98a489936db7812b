"""Gradient rules of functions that take functions: branches, loops, gradients, compilation."""
