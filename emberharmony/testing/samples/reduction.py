"""Sample rows of `ops/reduction.py`: tolerances hold however long the axis is."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, Case, Sample, case, grid

REAL = FLOATS + HALVES
_RNG = np.random.default_rng(0)
_CUBE = grid(-3, 5, 24).reshape(2, 3, 4)
_LONG = np.random.default_rng(5).permutation(grid(0.05, 0.15, 20000))
_FAR = 1e3 + _RNG.standard_normal(4000)
_NAN = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])
_EMPTY = np.zeros((0, 3))


def _cases(*more: Case) -> tuple[Case, ...]:
    return (
        case(_CUBE),
        case(_CUBE, axis=1),
        case(_CUBE, axis=-1, keepdims=True),
        case(_CUBE, axis=(0, 2)),
        case(np.asarray(2.5)),
        *more,
    )


def _summed(function: Any) -> Any:
    return lambda x, axis=None, keepdims=False: function(x, axis=axis, keepdims=keepdims)


def _spread(function: Any) -> Any:
    return lambda x, axis=None, keepdims=False, correction=0: function(x, axis=axis, keepdims=keepdims, ddof=correction)


_ARG = (case(_CUBE), case(_CUBE, 1), case(_CUBE, -1, True), case(_NAN, 1), case(np.asarray(2.5)))
_RUN = (case(_CUBE), case(_CUBE, 1), case(_LONG[:3000]), case(np.asarray(2.5)))

SAMPLES = [
    Sample(
        "sum",
        _summed(np.sum),
        _cases(case(_LONG), case(_EMPTY, 0)),
        dtypes=REAL + COMPLEX,
        floor=8,
        differentiable=True,
    ),
    Sample("prod", _summed(np.prod), _cases(case(_EMPTY, 0)), dtypes=FLOATS, tolerance=32, differentiable=True),
    Sample(
        "mean",
        _summed(np.mean),
        _cases(case(_LONG), case(_EMPTY, 0)),
        dtypes=REAL,
        integers=INTEGERS,
        result="float",
        floor=8,
        differentiable=True,
    ),
    Sample(
        "var",
        _spread(np.var),
        _cases(case(_FAR), case(_CUBE, 1, correction=1)),
        dtypes=FLOATS,
        tolerance=32,
        integers=("int32",),
        result="float",
        differentiable=True,
    ),
    Sample(
        "std",
        _spread(np.std),
        _cases(case(_FAR), case(_CUBE, 1, correction=1)),
        dtypes=FLOATS,
        tolerance=32,
        integers=("int32",),
        result="float",
        differentiable=True,
    ),
    Sample("max", _summed(np.max), _cases(case(_NAN, 1)), dtypes=REAL, integers=INTEGERS, differentiable=True),
    Sample("min", _summed(np.min), _cases(case(_NAN, 1)), dtypes=REAL, integers=INTEGERS, differentiable=True),
    Sample("any", _summed(np.any), _cases(case(_EMPTY, 0)), dtypes=FLOATS, integers=INTEGERS, result="bool"),
    Sample("all", _summed(np.all), _cases(case(_EMPTY, 0)), dtypes=FLOATS, integers=INTEGERS, result="bool"),
    Sample(
        "argmax",
        lambda x, axis=None, keepdims=False: np.argmax(x, axis, keepdims=keepdims),
        _ARG,
        dtypes=REAL,
        integers=INTEGERS,
        result="int64",
    ),
    Sample(
        "argmin",
        lambda x, axis=None, keepdims=False: np.argmin(x, axis, keepdims=keepdims),
        _ARG,
        dtypes=REAL,
        integers=INTEGERS,
        result="int64",
    ),
    Sample("cumsum", np.cumsum, _RUN, dtypes=FLOATS, integers=("int64",), floor=8, tolerance=8, differentiable=True),
    Sample(
        "cumprod", np.cumprod, (case(_CUBE, 1), case(np.asarray(2.5))), dtypes=FLOATS, tolerance=32, differentiable=True
    ),
    Sample(
        "count_nonzero",
        lambda x, axis=None, keepdims=False: np.sum(x != 0, axis=axis, keepdims=keepdims),
        _cases(),
        result="int64",
    ),
    Sample(
        "logsumexp", _summed(special.logsumexp), _cases(case(_FAR)), dtypes=FLOATS, tolerance=8, differentiable=True
    ),
    Sample("ptp", _summed(np.ptp), _cases(), dtypes=FLOATS, differentiable=True),
]
