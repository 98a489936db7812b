"""Linear algebra, on MLX."""


class MLXSolverOps:
    """Holds the ops of `ops/solver.py`."""
