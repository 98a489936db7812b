"""Sample rows of `ops/reductions/segments.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import IndexOutOfBoundsError
from emberharmony.testing.refused import ONES_3_4
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

_X = grid(-3, 3, 15).reshape(5, 3)
_IDS = np.array([2, 0, 0, 3, 2])
_CASES = (case(_X, _IDS), case(_X, _IDS, 5), case(_X[:, 0], [1, 1, 0, 1, 0], 2), case(_X[:0], _IDS[:0], 2))
D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES,
    "integers": ("int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "differentiable": True,
}


def _segment_oracle(ufunc, empty):
    def reduce_segments(data, ids, count=None):
        count = max(ids) + 1 if count is None else count
        if data.dtype.kind in "iu" and not isinstance(empty, int):
            integer_limits = np.iinfo(data.dtype)
            initial_value = integer_limits.min if empty < 0 else integer_limits.max
        else:
            initial_value = empty
        rows = [ufunc.reduce(data[np.asarray(ids) == i], initial=initial_value, axis=0) for i in range(count)]
        return np.asarray(rows).astype(data.dtype)

    return reduce_segments


SAMPLES = [
    Sample(
        "segment_sum",
        _segment_oracle(np.add, 0),
        _CASES,
        **D,
        tolerance=1,
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, np.array([-1, 0, 1]), 2)),),
    ),
    Sample("segment_prod", _segment_oracle(np.multiply, 1), _CASES, **D, tolerance=2),
    Sample("segment_max", _segment_oracle(np.maximum, -np.inf), _CASES, **D),
    Sample("segment_min", _segment_oracle(np.minimum, np.inf), _CASES, **D),
    Sample(
        "multi_hot",
        lambda x, n, axis=-1: np.moveaxis(
            (x[..., None] == np.arange(n)).any(axis=1 if x.ndim > 1 else 0).astype(float), -1, axis
        ),
        (case(np.array([[0, 2], [1, 1]]), 3), case(np.array([1, 5]), 4), case(np.zeros((2, 0), int), 3)),
        dtypes=("float32",),
        result="float32",
    ),
]
