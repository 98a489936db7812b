"""Linear algebra, on PyTorch."""


class TorchSolverOps:
    """Holds the ops of `ops/solver.py`."""
