"""Sample rows of `ops/arrays/indexing.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import AxisError, IndexOutOfBoundsError, ShapeError
from emberharmony.testing.refused import ONES_3_4, ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, WHOLE, Sample, case, grid

_X = grid(-3, 3, 12).reshape(3, 4)
_AT = np.array([[0, 2], [1, -1]])
D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES + COMPLEX,
    "integers": (*WHOLE, "uint16", "uint32", "uint64"),
    "differentiable": True,
}


def _scatter_oracle(indices, values, shape):
    scattered_array = np.zeros(shape, values.dtype)
    np.add.at(scattered_array, tuple(np.moveaxis(indices, -1, 0)), values)
    return scattered_array


def _scatter_update_oracle(x, indices, updates, reduction=None):
    updated_array, positions = x.copy(), tuple(np.moveaxis(np.asarray(indices), -1, 0))
    if reduction is None:
        updated_array[positions] = updates
    else:
        {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction].at(
            updated_array, positions, updates
        )
    return updated_array


def _write_block_oracle(x, start, updates):
    updated_array = x.copy()
    updated_array[tuple(slice(a, a + n) for a, n in zip(start, updates.shape, strict=True))] = updates
    return updated_array


SAMPLES = [
    Sample(
        "where",
        np.where,
        (case(_X > 0, _X, -_X), case(_X > 0, _X, 0)),
        **(D | {"integers": INTEGERS}),
        refuses=((ShapeError, case(np.array([True, False]), ONES_4, ONES_4)),),
    ),
    Sample(
        "take",
        np.take,
        (case(_X, _AT), case(_X, [2, -1, 0], 1), case(_X, 1, 0)),
        **D,
        refuses=((IndexOutOfBoundsError, case(ONES_4, [99])), (IndexOutOfBoundsError, case(ONES_4, [-5]))),
    ),
    Sample(
        "take_along_axis",
        lambda x, i, axis=-1: np.take_along_axis(x, i, axis),
        (case(_X, np.array([[1], [3], [-1]])), case(_X, np.array([[2, 0, 1, 1]]), 0)),
        **D,
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, np.array([[9]]))),),
    ),
    Sample(
        "get_item",
        lambda x, key: x[key],
        (
            case(_X, 1),
            case(_X, (slice(None, None, -1), 2)),
            case(_X, (slice(2, None, -2), slice(3, 0, -1))),
            case(_X, (Ellipsis, None, slice(1, 3))),
            case(_X, _X > 0),
            case(_X, (np.array([0, 2]), np.array([1, -1]))),
            case(_X, (slice(0, 1), slice(3, 3, -1))),
        ),
        **D,
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, 9)), (AxisError, case(ONES_3_4, (0, 0, 0)))),
    ),
    Sample(
        "nonzero", np.nonzero, (case(np.where(_X > 0, _X, 0)),), **(D | {"result": "int64", "differentiable": False})
    ),
    Sample(
        "argwhere",
        np.argwhere,
        (case(np.where(_X > 0, _X, 0)), case(_X[0, :0]), case(np.asarray(2.0)), case(np.asarray(0.0))),
        **(D | {"result": "int64", "differentiable": False}),
    ),
    Sample(
        "slice",
        lambda x, s, n: x[s[0] : s[0] + n[0], s[1] : s[1] + n[1]],
        (case(_X, (1, 1), (2, 3)),),
        **D,
        left_out={"results of empty axes": "the block exceeds the tensor"},
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, (0, 0), (9, 9))),),
    ),
    Sample(
        "slice_update",
        _write_block_oracle,
        (case(_X, (1, 0), _X[:2, :3]),),
        **D,
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, (0, 0), np.ones((9, 9)))),),
    ),
    Sample(
        "scatter",
        _scatter_oracle,
        (case(np.array([[1], [1], [-1]]), _X, (5, 4)), case(_AT, _X[0, :2], (3, 4))),
        **D,
        tolerance=1,
        refuses=((IndexOutOfBoundsError, case(np.array([[9]]), np.ones(1), (3,))),),
    ),
    Sample(
        "scatter_update",
        _scatter_update_oracle,
        (
            case(_X, _AT, np.array([7.0, 8.0])),
            case(_X, [[1], [-1]], _X[:2] * 2),
            case(_X, np.array([[[0, 0], [0, 1]]]), np.array([[7.0, 8.0]])),
            case(_X, _AT[:0], _X[0, :0]),
            *(case(_X, [[1], [-1]], _X[:2], how) for how in ("add", "mul")),
            *(case(_X, _AT[[0, 0, 1]], np.array([1.0, 2.0, 3.0]), how) for how in ("add", "mul")),
        ),
        **D,
        tolerance=2,
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, np.array([[9, 9]]), np.ones(1))),),
    ),
    Sample("diagonal", np.diagonal, (case(_X), case(_X, 1), case(_X.reshape(3, 2, 2), 0, 1, 2)), **D),
    Sample("tril_indices", np.tril_indices, (case(3), case(3, 1, 4)), dtypes=("float32",), result="int64"),
    Sample("triu_indices", np.triu_indices, (case(3), case(3, -1, 4)), dtypes=("float32",), result="int64"),
    Sample(
        "one_hot",
        lambda x, n, axis=-1: np.moveaxis(np.eye(n + 2)[x][..., :n], -1, axis),
        (case(np.array([0, 2, 3]), 3), case(np.array([[0, 1]]), 2, 0)),
        dtypes=("float32",),
        result="float32",
    ),
    Sample(
        "select",
        np.select,
        (
            case([_X > 1, _X > 0], [_X, -_X], 0),
            case([_X[0] > 1], [_X], 2),
        ),
        **(D | {"integers": INTEGERS}),
    ),
    Sample(
        "unravel_index",
        np.unravel_index,
        (case(np.array([[0, 5], [7, 3]]), (2, 4)), case([1, 2], (3,)), case(3, (2, 1, 2))),
        dtypes=("float32",),
        result="int64",
        refuses=((IndexOutOfBoundsError, case(np.array([99]), (2, 2))),),
    ),
]
