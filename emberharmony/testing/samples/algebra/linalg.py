"""Sample rows of `ops/algebra/linalg_ops.py`."""

import numpy as np

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

_X = grid(-3, 3, 24).reshape(2, 3, 4)
_RNG = np.random.default_rng(5)
_WIDE = _RNG.standard_normal((3, 4))
_SQUARE = _RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)

SAMPLES = [
    Sample(
        "linalg_cond",
        np.linalg.cond,
        (*(case(_SQUARE, *p) for p in ((), (1,), ("fro",), (-2,), (np.inf,))), case(_WIDE)),
        tolerance=6,
        floor=10,
        fixed=True,
        result="float real",
        dtypes=FLOATS + HALVES + COMPLEX,
        differentiable=True,
    ),
    Sample(
        "linalg_diagonal",
        lambda x, k=0: np.diagonal(x, k, -2, -1),
        (case(_X), case(_X, 1)),
        dtypes=FLOATS + HALVES + COMPLEX,
        differentiable=True,
    ),
    Sample(
        "linalg_trace",
        lambda x, k=0: np.trace(x, k, -2, -1),
        (case(_X), case(_X, -1)),
        floor=8,
        dtypes=FLOATS + HALVES + COMPLEX,
        tolerance=1,
        differentiable=True,
    ),
]
