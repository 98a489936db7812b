"""Sample rows of `ops/reductions/sorting.py`."""

import numpy as np

from emberharmony.core.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from emberharmony.testing.gradient_row import TIES, GradientRow
from emberharmony.testing.refused import ONES_3_4, ONES_4
from emberharmony.testing.sample import FLOATS, HALVES, INTEGERS, WHOLE, Sample, case

REAL = FLOATS + HALVES
_X = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, -1.0, 5.0]])
_NAN = np.array([3.0, np.nan, 1.0, np.inf, np.nan, -np.inf])
_SORTED = np.array([1.0, 3.0, 3.0, 5.0])
_KEYS = [np.array([2.0, 1.0, 0.0, 1.0]), np.array([5.0, 5.0, 4.0, 5.0])]


def _sort_oracle(x, axis=-1, descending=False):
    if x.ndim == 0 and axis is not None:
        return x
    if x.dtype.kind in "biu":
        return np.flip(np.sort(x, axis), 0 if axis is None else axis) if descending else np.sort(x, axis)
    return -np.sort(-x, axis) if descending else np.sort(x, axis)  # not a flip: NaN is last in both orders


def _argsort_oracle(x, axis=-1, descending=False):
    if x.ndim == 0 and axis is not None:
        return 0
    return np.argsort(-x.astype(float) if descending else x, axis, kind="stable")


def _in_top_k_oracle(targets, predictions, k):
    target_score = np.take_along_axis(predictions, targets[:, None], -1)
    return (predictions > target_score).sum(-1) < k


_CASES = (
    case(_X),
    case(_X, 0),
    case(_X, None),
    case(_X, descending=True),
    case(_X, 0, descending=True),
    case(_NAN),
    case(_NAN, descending=True),
    case(np.asarray(2.0), None),
    case(np.asarray(2.0)),
    case(_X[:, :0], descending=True),
)
_REPEATED = (case(_X), case(np.array([np.nan, 1.0, np.nan])), case(_X[:0]), case(np.asarray(2.0)))

SAMPLES = [
    Sample(
        "sort",
        _sort_oracle,
        _CASES,
        dtypes=REAL,
        integers=WHOLE,
        differentiable=True,
        gradient=GradientRow(skipped=dict.fromkeys((0, 2, 3), TIES)),
        refuses=((DTypeError, case(ONES_4 * 1j)),),
    ),
    Sample("argsort", _argsort_oracle, _CASES, dtypes=REAL, integers=WHOLE, result="int64"),
    Sample(
        "top_k",
        lambda x, k: (-np.sort(-x)[..., :k], np.argsort(-x, kind="stable")[..., :k]),
        (case(_X, 2), case(_X, 0)),
        dtypes=REAL,
        integers=INTEGERS[:2],
        result=("promoted", "int64"),
        differentiable=True,
        left_out={"results of empty axes": "the axis has fewer than k elements"},
        gradient=GradientRow(skipped={0: TIES}),
        refuses=((ShapeError, case(ONES_3_4, 9)),),
    ),
    Sample(
        "lexsort",
        lambda keys, axis=-1: np.lexsort(keys, axis),
        (case(_KEYS), case([_X, _X[::-1]], 0)),
        dtypes=REAL,
        integers=INTEGERS[:2],
        result="int64",
    ),
    Sample(
        "partition",
        lambda x, kth, axis=-1: _sort_oracle(x, axis),
        (case(_X, 2), case(_X, 0, 0), case(_X, -1, None), case(_NAN, 3), case(np.asarray(2.0), 0)),
        dtypes=REAL,
        integers=WHOLE,
        differentiable=True,
        left_out={"results of empty axes": "the axis has no element of that index"},
        gradient=GradientRow(skipped=dict.fromkeys((0, 2), TIES)),
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, 9)),),
    ),
    Sample(
        "argpartition",
        np.argpartition,
        (case(_X, 2),),
        reference="tests",
        refuses=((IndexOutOfBoundsError, case(ONES_3_4, 9)),),
    ),
    Sample(
        "in_top_k",
        _in_top_k_oracle,
        (case(np.array([1, 3]), _X, 2), case(np.array([0, 1]), _X, 1)),
        dtypes=REAL,
        integers=WHOLE,
        result="bool",
    ),
    Sample(
        "searchsorted",
        lambda a, v, side="left", sorter=None: np.searchsorted(a, v, side, sorter),
        (
            case(_SORTED, _X),
            case(_SORTED, _X, "right"),
            case(_SORTED[:0], _X),
            case(_SORTED, np.asarray(3.0)),
            case(_SORTED[::-1], _X, sorter=np.array([3, 2, 1, 0])),
            case(np.array([1.0, 2.0, np.nan]), np.array([np.nan, 3.0, np.inf])),
            case(np.array([1.0, 2.0, np.nan]), np.array([np.nan, 3.0, np.inf]), "right"),
        ),
        dtypes=REAL,
        result="int64",
        fixed=True,
        refuses=((ShapeError, case(ONES_3_4, ONES_4)),),
    ),
    Sample("unique", np.unique, _REPEATED, dtypes=REAL, integers=WHOLE),
    Sample("unique_values", lambda x: np.unique(x, equal_nan=False), _REPEATED, dtypes=REAL, integers=WHOLE),
    Sample(
        "unique_all",
        np.unique_all,
        _REPEATED,
        dtypes=REAL,
        integers=WHOLE,
        result=("promoted", "int64", "int64", "int64"),
    ),
    Sample("unique_counts", np.unique_counts, _REPEATED, dtypes=REAL, integers=WHOLE, result=("promoted", "int64")),
    Sample("unique_inverse", np.unique_inverse, _REPEATED, dtypes=REAL, integers=WHOLE, result=("promoted", "int64")),
    Sample(
        "isin",
        np.isin,
        (
            case(_X, _SORTED),
            case(_X, _SORTED, invert=True),
            case(_SORTED, _X[:1], True),
            case(_NAN, _NAN),
            case(_X, _X[:0]),
            case(np.asarray(3.0), _X),
        ),
        dtypes=REAL,
        integers=INTEGERS[:2],
        result="bool",
    ),
]
