"""Sample rows of `ops/linalg.py`."""

import numpy as np

from emberharmony.testing.sample import FLOATS, Sample, case, grid

_X = grid(-3, 3, 24).reshape(2, 3, 4)

SAMPLES = [
    Sample("linalg_diagonal", lambda x, k=0: np.diagonal(x, k, -2, -1), (case(_X), case(_X, 1)), dtypes=FLOATS),
    Sample("linalg_trace", lambda x, k=0: np.trace(x, k, -2, -1), (case(_X), case(_X, -1)), floor=8, dtypes=FLOATS),
]
