"""Sample rows of `ops/neural/layers.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import IndexOutOfBoundsError, ShapeError
from emberharmony.testing.refused import ONES_3_4, ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

_X, _W, _B = grid(-3, 3, 24).reshape(2, 3, 4), grid(-1, 1, 20).reshape(4, 5), grid(-2, 1, 5)
D: dict[str, Any] = {"dtypes": FLOATS + HALVES + COMPLEX, "differentiable": True}

SAMPLES = [
    Sample(
        "linear",
        lambda x, w, b=None, transposed=False: x @ (w.T if transposed else w) + (0 if b is None else b),
        (
            case(_X, _W),
            case(_X, _W, _B),
            case(_X[0, 0], _W, _B),
            case(_X[:, :0], _W, _B),
            case(_X, _W.T, _B, True),
            case(_X[0], _W.T, None, True),
            case(_X[0, 0], _W.T, _B, transposed=True),
            case(_X[..., :0], _W[:0], _B),
        ),
        tolerance=4,
        floor=16,
        integers=("int32", "int64"),
        **D,
        refuses=((ShapeError, case(ONES_3_4, ONES_3_4)), (ShapeError, case(ONES_3_4, ONES_3_4.T, None, True))),
    ),
    Sample(
        "embedding",
        lambda indices, table: table[np.asarray(indices, np.int64)],
        (case(np.array([[0, 2, 0], [1, -1, 0]]), _W), case(2, _W), case([3, 3], _W), case(np.zeros(0, np.int64), _W)),
        integers=("int32", "uint8"),
        **D,
        refuses=((IndexOutOfBoundsError, case([3], ONES_3_4)), (ShapeError, case([0], ONES_4))),
    ),
]
