"""Sample rows of `ops/reductions/statistics.py`."""

import numpy as np

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

REAL = FLOATS + HALVES
INTS = ("int32", "uint8")
_CUBE = np.random.default_rng(1).permutation(grid(-3, 5, 24)).reshape(2, 3, 4)
_NAN = np.where(_CUBE > 3, np.nan, _CUBE)
_AXES = (case(_NAN), case(_NAN, 1), case(_NAN, -1, True))


def _nan_oracle(function):
    return lambda x, axis=None, keepdims=False: function(x, axis=axis, keepdims=keepdims)


def _average_oracle(x, axis=None, weights=None):
    return np.mean(x, axis) if weights is None else np.sum(x * weights, axis) / np.sum(weights, axis)


SAMPLES = [
    Sample(
        "average",
        _average_oracle,
        (case(_CUBE, 1), case(_CUBE, 2, np.abs(_CUBE))),
        tolerance=4,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=INTS[:1],
        result="float",
    ),
    Sample(
        "nansum",
        _nan_oracle(np.nansum),
        _AXES,
        tolerance=2,
        floor=8,
        dtypes=REAL,
        integers=INTS,
        result="sum",
        differentiable=True,
    ),
    Sample(
        "nanmean",
        _nan_oracle(np.nanmean),
        _AXES,
        tolerance=2,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
    Sample(
        "nanvar",
        _nan_oracle(np.nanvar),
        _AXES,
        tolerance=6,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
    Sample(
        "nanstd",
        _nan_oracle(np.nanstd),
        _AXES,
        tolerance=3,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
    Sample("nanmax", _nan_oracle(np.nanmax), _AXES, dtypes=REAL, integers=INTS, differentiable=True),
    Sample("nanmin", _nan_oracle(np.nanmin), _AXES, dtypes=REAL, integers=INTS, differentiable=True),
    Sample(
        "nanprod",
        _nan_oracle(np.nanprod),
        (case(_NAN, 1), case(_NAN, -1, True)),
        tolerance=1,
        dtypes=REAL,
        integers=INTS,
        result="sum",
        differentiable=True,
    ),
    Sample(
        "nancumsum",
        np.nancumsum,
        (case(_NAN, 1), case(_NAN)),
        tolerance=1,
        floor=8,
        dtypes=REAL,
        integers=INTS,
        result="sum",
        differentiable=True,
    ),
    Sample(
        "nancumprod",
        np.nancumprod,
        (case(_NAN, 1),),
        tolerance=1,
        dtypes=REAL,
        integers=INTS,
        result="sum",
        differentiable=True,
    ),
    Sample("nanargmax", _nan_oracle(np.nanargmax), _AXES, result="int64", dtypes=REAL, integers=INTS),
    Sample("nanargmin", _nan_oracle(np.nanargmin), _AXES, result="int64", dtypes=REAL, integers=INTS),
    Sample(
        "cov",
        lambda x, rowvar=True, correction=1: np.cov(x, rowvar=rowvar, ddof=correction),
        (case(_CUBE[0]), case(_CUBE[0], False), case(_CUBE[0, 0]), case(_CUBE[0], True, 0)),
        tolerance=4,
        floor=4,
        differentiable=True,
        dtypes=REAL,
        integers=INTS,
        result="float",
    ),
    Sample(
        "corrcoef",
        lambda x, rowvar=True: np.corrcoef(x, rowvar=rowvar),
        (case(_CUBE[0]), case(_CUBE[0, 0])),
        tolerance=3,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
]
