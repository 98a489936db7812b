"""The code of the ops: its source, and the two ways to run it, by code swap or as portable functions."""
