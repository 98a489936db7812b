"""Sample rows of `ops/algebra/matrix_functions.py`."""

from typing import Any

import numpy as np
from scipy import linalg

from emberharmony.core.errors import LinAlgError, ShapeError
from emberharmony.testing.refused import ONES_3_4, ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, Sample, case

_RNG = np.random.default_rng(3)
_A = _RNG.standard_normal((4, 4))
_Z = _A + 1j * _RNG.standard_normal((4, 4))
_BATCH = np.stack([_A, 9 * _A, 0.01 * _A])
_TALL, _B = _RNG.standard_normal((5, 3)), _RNG.standard_normal((4, 2))
_ROOT = np.linalg.cholesky(_A @ _A.T + np.eye(4))
_HALVES = (*FLOATS, "float16")  # not bfloat16: its eps is so large that every result would pass
F: dict[str, Any] = {"dtypes": (*_HALVES, *COMPLEX), "differentiable": True, "result": "float", "fixed": True}


def _cho_solve_oracle(c: Any, b: Any, upper: bool = False) -> Any:
    c = np.triu(c) if upper else np.tril(c)
    matrix = np.conj(np.swapaxes(c, -1, -2)) @ c if upper else c @ np.conj(np.swapaxes(c, -1, -2))
    return np.linalg.solve(matrix, b)


def _lu_oracle(x: Any) -> Any:
    if x.size:
        return linalg.lu(x)
    *batch, row_count, column_count = x.shape  # SciPy returns a P of no rows
    smaller_length = min(row_count, column_count)
    return (
        np.broadcast_to(np.eye(row_count), (*batch, row_count, row_count)),
        np.eye(row_count, smaller_length) + x[..., :smaller_length],
        x[..., :smaller_length, :],
    )


SAMPLES = [
    Sample(
        "expm",
        linalg.expm,
        (
            case(_A),
            case(_BATCH * 0.2),
            case(3 * (_A - _A.T)),
            case(_Z),
            case(np.triu(_A, 1)),
            case(np.zeros((2, 3, 3))),
            case(np.ones((0, 0))),
            case(np.ones((0, 2, 2))),
        ),
        **F,
        tolerance=16,
        floor=8,
        refuses=((ShapeError, case(ONES_3_4)),),
    ),
    Sample(
        "cho_solve",
        _cho_solve_oracle,
        (case(_ROOT, _B), case(_ROOT.T.copy(), _B, True), case(_ROOT, _B[:, 0]), case(np.stack([_ROOT, -_ROOT]), _B)),
        **F,
        tolerance=2,
        refuses=((ShapeError, case(ONES_3_4, ONES_4)), (LinAlgError, case(np.zeros((2, 2)), np.ones(2)))),
    ),
    Sample(
        "lu",
        _lu_oracle,
        (case(_A), case(_TALL), case(_TALL.T.copy()), case(_BATCH), case(_Z), case(_TALL[:, :0])),
        **(F | {"result": ("float", "float", "float")}),
        tolerance=8,
        refuses=((ShapeError, case(ONES_4)),),
    ),
]
