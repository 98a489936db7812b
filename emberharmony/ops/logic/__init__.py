"""Ops that compare, and those of truth values and bits."""
