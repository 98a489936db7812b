"""Functions of each element, beyond the arithmetic of `ops/math.py`."""
