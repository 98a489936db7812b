"""Gradient rules of reductions, sorting, counting and grouping."""
