"""Sample rows of `ops/images/signals.py`."""

import numpy as np

from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.testing.gradient_row import GradientRow
from emberharmony.testing.refused import ONES_3_4, ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid

REAL = FLOATS + HALVES
_AT = np.array([[-1.5, 0.25, 2.75], [0.6, 4.5, 1.375]])
_XP, _FP = np.array([-1.0, 0.0, 0.5, 2.0, 4.0]), np.array([2.0, -1.0, 0.5, 0.75, 3.0])
_NEAR = _AT * 0.25
_LONG, _SHORT = grid(-3, 5, 7), grid(-1, 2, 4)[::-1].copy()

INTS = ("int32", "uint8")
_CUBE = np.random.default_rng(1).permutation(grid(-3, 5, 24)).reshape(2, 3, 4)
_PAIRS = ((_CUBE[0, 0], _CUBE[1, 0, :3]), (_CUBE[0, 0], _CUBE[1, 0]), (_CUBE[0, 0, :2], _CUBE[1, 0]))

SAMPLES = [
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
        "interp",
        np.interp,
        (
            case(_AT, _XP, _FP),
            case(_AT, _XP, _FP, -7.0, 9.0),
            case(_AT, np.array([3.0, 1.0, -2.0, 0.0]), _FP[1:], period=-4.0),
            case(np.asarray(0.25), _XP[:1], _FP[:1]),
            case(np.array([-1.0, 0.5, 4.0, np.nan, np.inf, -np.inf]), _XP, _FP),
            case(np.array([0.0, 0.25, 1.0]), _XP, np.array([1.0, np.inf, np.inf, 2.0, 3.0])),
        ),
        dtypes=REAL,
        integers=("int32",),
        result="float",
        differentiable=True,
        tolerance=1,
        floor=4,
        fixed=True,
        gradient=GradientRow(skipped=dict.fromkeys((4, 5), "positions or points are infinite or NaN, or at a corner")),
        refuses=(
            (ShapeError, case(ONES_3_4, ONES_4, np.ones(3))),
            (ArgumentError, case(ONES_3_4, ONES_4, ONES_4, period=0.0)),
        ),
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
        refuses=((ShapeError, case(ONES_3_4, ONES_4)), (ArgumentError, case(ONES_4, ONES_4, "some"))),
    ),
    Sample(
        "convolve",
        np.convolve,
        tuple(
            case(a, v, mode)
            for a, v in ((_LONG, _SHORT), (_SHORT, _LONG), (_SHORT, _SHORT))
            for mode in ("valid", "same", "full")
        ),
        tolerance=2,
        floor=16,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=("int32", "int64"),
        refuses=((ShapeError, case(ONES_3_4, ONES_4)), (ArgumentError, case(ONES_4, ONES_4, "some"))),
    ),
    Sample(
        "polyval",
        np.polyval,
        (case(_FP, _NEAR), case(_FP[:1], _NEAR), case(_FP[:2], np.asarray(1.5)), case(_FP, _NEAR[:0])),
        tolerance=4,
        floor=8,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=("int32", "int64"),
        refuses=((ShapeError, case(ONES_3_4, ONES_4)),),
    ),
]
