"""Sample rows of `ops/reductions/quantiles.py`."""

import numpy as np

from emberharmony.testing.gradient_row import GradientRow
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

REAL = FLOATS + HALVES
INTS = ("int32", "uint8")
_CUBE = np.random.default_rng(1).permutation(grid(-3, 5, 24)).reshape(2, 3, 4)
_NAN = np.where(_CUBE > 3, np.nan, _CUBE)
_Q = np.array([0.0, 0.3, 1.0])
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
_AXES = (case(_NAN), case(_NAN, 1), case(_NAN, -1, True))


def _quantile_oracle(x, q, axis=None, method="linear", keepdims=False):
    return np.quantile(x, q, axis=axis, method=method, keepdims=keepdims)


def _quantile_oracle_of_nan(function):
    return lambda x, axis=None, keepdims=False: function(x, axis=axis, keepdims=keepdims)


def _nan_quantile_oracle(x, q, axis=None, method="linear"):
    if not x.size:  # np.nanquantile drops the axis of `q` for an empty array
        return np.full((*np.shape(q), *np.sum(x, axis).shape), np.nan)
    return np.nanquantile(x, q, axis=axis, method=method)


SAMPLES = [
    Sample(
        "quantile",
        _quantile_oracle,
        (
            case(_CUBE, _Q),
            case(_CUBE, 0.25, 1),
            case(_CUBE, _Q, (0, 2), keepdims=True),
            *(case(_CUBE, _Q, 1, method=method) for method in _METHODS),
        ),
        tolerance=6,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
        gradient=GradientRow(host=(1,)),
    ),
    Sample(
        "median",
        lambda x, axis=None, keepdims=False: np.median(x, axis=axis, keepdims=keepdims),
        (case(_CUBE), case(_CUBE, 1), case(_CUBE, -1, True)),
        tolerance=1,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
    Sample(
        "percentile",
        lambda x, q, axis=None: np.percentile(x, q, axis=axis),
        (case(_CUBE, 30.0), case(_CUBE, 30.0, 1)),
        tolerance=6,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
        gradient=GradientRow(host=(1,)),
    ),
    Sample(
        "nanmedian",
        _quantile_oracle_of_nan(np.nanmedian),
        _AXES,
        tolerance=3,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
    Sample(
        "nanquantile",
        _nan_quantile_oracle,
        (case(_NAN, _Q), case(_NAN, 0.25, 1), *(case(_NAN, _Q, 1, method=method) for method in _METHODS)),
        tolerance=6,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
        gradient=GradientRow(host=(1,)),
    ),
    Sample(
        "nanpercentile",
        lambda x, q, axis=None: np.nanpercentile(x, q, axis=axis),
        (case(_NAN, 30.0, 1),),
        tolerance=2,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
        gradient=GradientRow(host=(1,)),
    ),
]
