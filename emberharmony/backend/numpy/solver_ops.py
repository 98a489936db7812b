"""Linear algebra, on NumPy."""


class NumpySolverOps:
    """Holds the ops of `ops/solver.py`."""
