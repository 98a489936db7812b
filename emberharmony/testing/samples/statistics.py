"""Sample rows of `ops/statistics.py`."""

import numpy as np

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

REAL = FLOATS + HALVES
INTS = ("int32", "uint8")
_CUBE = np.random.default_rng(1).permutation(grid(-3, 5, 24)).reshape(2, 3, 4)
_NAN = np.where(_CUBE > 3, np.nan, _CUBE)
_Q = np.array([0.0, 0.3, 1.0])
_COUNTS = np.array([0, 2, 2, 5])


def _quantile(x, q, axis=None, method="linear", keepdims=False):
    return np.quantile(x, q, axis=axis, method=method, keepdims=keepdims)


def _nan(function):
    return lambda x, axis=None, keepdims=False: function(x, axis=axis, keepdims=keepdims)


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
_AXES = (case(_NAN), case(_NAN, 1), case(_NAN, -1, True))

_EDGES = np.array([-1.0, 0.5, 2.0])
_PAIRS = ((_CUBE[0, 0], _CUBE[1, 0, :3]), (_CUBE[0, 0], _CUBE[1, 0]), (_CUBE[0, 0, :2], _CUBE[1, 0]))


def _nan_quantile(x, q, axis=None, method="linear"):
    if not x.size:  # np.nanquantile drops the axis of `q` for an empty array
        return np.full((*np.shape(q), *np.sum(x, axis).shape), np.nan)
    return np.nanquantile(x, q, axis=axis, method=method)


def _average(x, axis=None, weights=None):
    return np.mean(x, axis) if weights is None else np.sum(x * weights, axis) / np.sum(weights, axis)


SAMPLES = [
    Sample(
        "quantile",
        _quantile,
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
    ),
    Sample(
        "average",
        _average,
        (case(_CUBE, 1), case(_CUBE, 2, np.abs(_CUBE))),
        tolerance=4,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=INTS[:1],
        result="float",
    ),
    Sample(
        "nansum",
        _nan(np.nansum),
        _AXES,
        tolerance=2,
        floor=8,
        dtypes=REAL,
        integers=INTS,
        result="sum",
        differentiable=True,
    ),
    Sample(
        "nanmean", _nan(np.nanmean), _AXES, tolerance=2, dtypes=REAL, integers=INTS, result="float", differentiable=True
    ),
    Sample(
        "nanvar", _nan(np.nanvar), _AXES, tolerance=6, dtypes=REAL, integers=INTS, result="float", differentiable=True
    ),
    Sample(
        "nanstd", _nan(np.nanstd), _AXES, tolerance=3, dtypes=REAL, integers=INTS, result="float", differentiable=True
    ),
    Sample("nanmax", _nan(np.nanmax), _AXES, dtypes=REAL, integers=INTS, differentiable=True),
    Sample("nanmin", _nan(np.nanmin), _AXES, dtypes=REAL, integers=INTS, differentiable=True),
    Sample(
        "nanprod",
        _nan(np.nanprod),
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
    Sample("nanargmax", _nan(np.nanargmax), _AXES, result="int64", dtypes=REAL, integers=INTS),
    Sample("nanargmin", _nan(np.nanargmin), _AXES, result="int64", dtypes=REAL, integers=INTS),
    Sample(
        "nanmedian",
        _nan(np.nanmedian),
        _AXES,
        tolerance=3,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
    ),
    Sample(
        "nanquantile",
        _nan_quantile,
        (case(_NAN, _Q), case(_NAN, 0.25, 1), *(case(_NAN, _Q, 1, method=method) for method in _METHODS)),
        tolerance=6,
        dtypes=REAL,
        integers=INTS,
        result="float",
        differentiable=True,
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
    ),
    Sample(
        "diff",
        np.diff,
        (case(_CUBE), case(_CUBE, 2, 1), case(_CUBE, prepend=_CUBE[..., :1], append=_CUBE), case(_CUBE, 9)),
        floor=8,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=("int32", "int64", "uint8"),
        tolerance=1,
    ),
    Sample(
        "trapezoid",
        np.trapezoid,
        (case(_CUBE), case(_CUBE, None, 0.5, 1), case(_CUBE, np.sort(_CUBE, 1), 1.0, 1), case(_CUBE, _CUBE[0, 0])),
        tolerance=6,
        floor=8,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=INTS[:1],
        result="float",
    ),
    Sample(
        "digitize",
        np.digitize,
        (case(_CUBE, _EDGES), case(_CUBE, _EDGES, True)),
        result="int64",
        fixed=True,
        dtypes=REAL,
        integers=INTS[:1],
    ),
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
    Sample(
        "correlate",
        np.correlate,
        tuple(case(a, v, mode) for a, v in _PAIRS for mode in ("valid", "same", "full")),
        tolerance=2,
        floor=16,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=("int32", "int64"),
    ),
    Sample(
        "bincount",
        np.bincount,
        (case(_COUNTS), case(_COUNTS, minlength=9)),
        dtypes=("float32",),
        result="int64",
        differentiable=True,
    ),
    Sample(
        "histogram",
        lambda x, bins, range=None: np.histogram(x, bins, range),
        (case(_CUBE, 5, (-4.0, 6.0)),),
        dtypes=REAL,
        integers=INTS[:1],
        result=("int64", "float"),
        differentiable=True,
    ),
]
