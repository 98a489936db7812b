"""Cells: containers of one tensor each, which moves to the active backend when it is read."""
