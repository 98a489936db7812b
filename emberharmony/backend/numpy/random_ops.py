"""Random numbers, on NumPy."""


class NumpyRandomOps:
    """Holds the ops of `ops/random.py`."""
