"""Compares the ops that the frontend declares with those that each backend defines, by reading the source only."""
