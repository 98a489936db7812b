"""Notebooks (`.ipynb`): their Python source, and the way back to the file."""
