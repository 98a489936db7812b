"""Conversion of models of other libraries, so far PyTorch, to models of this library."""
