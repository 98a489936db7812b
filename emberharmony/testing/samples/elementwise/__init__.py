"""Sample rows of functions of each element."""
