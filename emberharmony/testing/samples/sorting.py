"""Sample rows of `ops/sorting.py`."""

import numpy as np

from emberharmony.testing.sample import FLOATS, INTEGERS, Sample, case

_X = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, -1.0, 5.0]])
_NAN = np.array([3.0, np.nan, 1.0, np.inf])
_SORTED = np.array([1.0, 3.0, 3.0, 5.0])


def _sort(x, axis=-1, descending=False):
    return -np.sort(-x, axis) if descending else np.sort(x, axis)


def _argsort(x, axis=-1, descending=False):
    return np.argsort(-x if descending else x, axis, kind="stable")


_CASES = (
    case(_X),
    case(_X, 0),
    case(_X, None),
    case(_X, descending=True),
    case(_NAN),
    case(_NAN, descending=True),
    case(np.asarray(2.0), None),
)

SAMPLES = [
    Sample("sort", _sort, _CASES, dtypes=FLOATS, differentiable=True),
    Sample("argsort", _argsort, _CASES, dtypes=FLOATS, result="int64"),
    Sample(
        "top_k",
        lambda x, k: (-np.sort(-x)[..., :k], np.argsort(-x, kind="stable")[..., :k]),
        (case(_X, 2), case(_X, 0)),
        dtypes=FLOATS,
        result="any",
    ),
    Sample(
        "searchsorted",
        np.searchsorted,
        (case(_SORTED, _X), case(_SORTED, _X, "right")),
        dtypes=FLOATS,
        integers=("int64",),
        result="int64",
    ),
    Sample("unique", np.unique, (case(_X), case(np.array([np.nan, 1.0, np.nan]))), dtypes=FLOATS),
    Sample(
        "isin",
        lambda a, b, invert=False: np.isin(a, b, invert=invert),
        (case(_X, _SORTED), case(_X, _SORTED, invert=True)),
        dtypes=FLOATS,
        integers=INTEGERS[:2],
        result="bool",
    ),
]
