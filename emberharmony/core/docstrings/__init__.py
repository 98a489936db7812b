"""The docstrings of what is public, in which shared descriptions of parameters are filled in when they are read."""
