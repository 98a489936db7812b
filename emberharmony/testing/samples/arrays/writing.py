"""Sample rows of `ops/arrays/writing.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from emberharmony.testing.refused import ONES_3_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, Sample, case, grid

_X = grid(-3, 3, 24).reshape(2, 3, 4)
_M = _X[0]
_BEFORE = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES + COMPLEX,
    "integers": INTEGERS,
    "tolerance": 2,
    "differentiable": True,
}


def _set_item_oracle(x, key, value, mode="set"):
    updated_array = x.copy()
    if mode == "set":
        updated_array[key] = value
    else:
        _BEFORE[mode].at(updated_array, key, value)
    return updated_array


def _put_along_axis_oracle(x, indices, values, axis=-1, mode="set"):
    index_grids = np.indices(x.shape if axis is not None else (x.size,), sparse=True)
    updated_array = x.reshape(-1).copy() if axis is None else x.copy()
    index_arrays = list(index_grids)
    index_arrays[axis or 0] = np.asarray(indices)
    return _set_item_oracle(updated_array, tuple(index_arrays), values, mode).reshape(x.shape)


SAMPLES = [
    Sample(
        "set_item",
        _set_item_oracle,
        (
            case(_M, 1, _M[0]),
            case(_M, (slice(None), slice(1, 3)), 2),
            case(_M, (slice(None, None, -2), None, slice(3, 0, -1)), _M[:2, :3].reshape(2, 1, 3)),
            case(_X, (0, slice(None), [3, 0]), _M[:2, :3]),
            case(_X, (slice(0, 1), [2, 0]), _X[0, 0]),
            case(_M, np.array([True, False, True]), _M[0] * 2),
            case(_M, np.array([True, False, True]), _M[:2] * 2),
            case(_M, (Ellipsis, np.array([[1, 0], [2, 2]])), 2, "add"),
            case(_M, ([0, 0, -1], [1, 1, 2]), _M[0, :3], "add"),
            case(_M, ([0, 0, -1], slice(1, 3)), _M[:3, :2], "multiply"),
            case(_M, (slice(1, None), 2), 2, "multiply"),
            case(_M, np.array([True, False, True]), _M[0] * 0.5, "multiply"),
        ),
        **D,
        refuses=(
            (IndexOutOfBoundsError, case(ONES_3_4, 9, 1.0)),
            (ShapeError, case(ONES_3_4, 0, np.ones(3))),
            (DTypeError, case(np.ones(3, np.int32), 0, 0.5)),
        ),
    ),
    Sample(
        "put_along_axis",
        _put_along_axis_oracle,
        (
            case(_M, np.array([[1], [3], [-1]]), _M[:, 2:3] * 2),
            case(_M, [[2, 0, 1, 1]], _M[0] * 0.5, 0),
            case(_X, np.array([[[0, 1]], [[3, 2]]]), 2),
            case(_M, [5, -1], _M[0, :2], None),
            case(_M, np.array([[1, 1], [3, 3], [0, 1]]), _M[:, :2], 1, "add"),
        ),
        **D,
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, np.array([[9]]), 1.0)), (ShapeError, case(ONES_3_4, [0], 1.0))),
    ),
]
