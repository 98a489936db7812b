"""Sample rows of `ops/logic/comparison.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, WHOLE, Sample, binary, case, grid, unary

REAL = FLOATS + HALVES
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5])
_NEAR = (np.array([1.0, 2.0, np.inf]), np.array([1.0 + 1e-6, 2.1, np.inf]))
_INF = np.inf
_ENDS = (
    np.array([1 + 1j, complex(_INF, 1), complex(_INF, 1), complex(1, _INF), complex(1, -_INF), complex(_INF, _INF)]),
    np.array([complex(_INF, 1), complex(_INF, 1), complex(_INF, 2), complex(2, _INF), complex(1, _INF), 3 + 0j]),
)
B: dict[str, Any] = {"result": "bool"}
ANY: dict[str, Any] = {"dtypes": REAL + COMPLEX, "integers": WHOLE, **B}

SAMPLES = [
    *(
        binary(name, getattr(np, name), -3, 3, dtypes=REAL, integers=WHOLE, **B)
        for name in ("less", "less_equal", "greater", "greater_equal")
    ),
    *(binary(name, getattr(np, name), -3, 3, **ANY) for name in ("equal", "not_equal")),
    *(binary(name, getattr(np, name), -1, 1, **ANY) for name in ("logical_and", "logical_or", "logical_xor")),
    unary("logical_not", np.logical_not, -1, 1, **ANY),
    *(
        Sample(name, getattr(np, name), (case(_SPECIAL), case(_SPECIAL[:0])), **ANY)
        for name in ("isnan", "isinf", "isfinite")
    ),
    *(
        Sample(name, getattr(np, name), (case(_SPECIAL),), dtypes=REAL, integers=WHOLE, **B)
        for name in ("isposinf", "isneginf")
    ),
    *(
        Sample(
            name,
            getattr(np, name),
            (
                case(*_NEAR),
                case(_SPECIAL, _SPECIAL, equal_nan=True),
                case(*_ENDS),
                *(case(a[i : i + 1], b[i : i + 1]) for a, b in (_ENDS,) for i in (0, 1, 4)),
            ),
            **ANY,
            left_out={"promotion": "the oracle compares in float64 what overflows in half precision"},
        )
        for name in ("isclose", "allclose")
    ),
    Sample(
        "array_equal",
        np.array_equal,
        (
            case(grid(0, 1), grid(0, 1)),
            case(grid(0, 1), grid(0, 2)),
            *(case(_SPECIAL, _SPECIAL, equal_nan=equal_nan) for equal_nan in (True, False)),
            case(_SPECIAL, _SPECIAL[::-1].copy(), True),
            case(_SPECIAL, _SPECIAL[:1], True),
        ),
        **ANY,
    ),
]
