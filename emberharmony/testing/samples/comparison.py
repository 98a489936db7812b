"""Sample rows of `ops/comparison.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import FLOATS, HALVES, INTEGERS, Sample, binary, case, grid, unary

REAL = FLOATS + HALVES
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5])
_NEAR = (np.array([1.0, 2.0, np.inf]), np.array([1.0 + 1e-6, 2.1, np.inf]))
B: dict[str, Any] = {"result": "bool"}

SAMPLES = [
    *(
        binary(name, getattr(np, name), -3, 3, dtypes=REAL, integers=INTEGERS, **B)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    ),
    *(
        binary(name, getattr(np, name), -1, 1, dtypes=FLOATS, integers=INTEGERS, **B)
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    unary("logical_not", np.logical_not, -1, 1, dtypes=FLOATS, integers=INTEGERS, **B),
    *(
        Sample(name, getattr(np, name), (case(_SPECIAL),), dtypes=REAL, **B)
        for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf")
    ),
    Sample("isclose", np.isclose, (case(*_NEAR), case(_SPECIAL, _SPECIAL, equal_nan=True)), **B),
    Sample("allclose", np.allclose, (case(*_NEAR), case(_SPECIAL, _SPECIAL, equal_nan=True)), **B),
    Sample("array_equal", np.array_equal, (case(grid(0, 1), grid(0, 1)), case(grid(0, 1), grid(0, 2))), **B),
]
