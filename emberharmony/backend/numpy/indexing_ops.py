"""Reading and writing by index, on NumPy."""


class NumpyIndexingOps:
    """Holds the ops of `ops/indexing.py`."""
