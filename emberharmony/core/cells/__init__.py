"""Cells: places for a tensor that follows the active backend."""
