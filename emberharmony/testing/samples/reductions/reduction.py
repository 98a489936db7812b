"""Sample rows of `ops/reductions/reduction.py`; the tolerances do not depend on the length of the axis."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.core.errors import AxisError, DTypeError, ShapeError
from emberharmony.testing.gradient_row import NO_DERIVATIVE, TIES, GradientRow
from emberharmony.testing.left_out import DIFFERENCE
from emberharmony.testing.refused import NO_ROWS, ONES_3_4, ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, WHOLE, Case, Sample, case, grid

REAL = FLOATS + HALVES
_RNG = np.random.default_rng(0)
_CUBE = grid(-3, 5, 24).reshape(2, 3, 4)
_LONG = np.random.default_rng(5).permutation(grid(0.05, 0.15, 20000))
_FAR = 1e3 + _RNG.standard_normal(4000)
_NAN = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])
_EMPTY = np.zeros((0, 3))


def _reduction_cases(*extra_cases: Case) -> tuple[Case, ...]:
    return (
        case(_CUBE),
        case(_CUBE, axis=1),
        case(_CUBE, axis=-1, keepdims=True),
        case(_CUBE, axis=(0, 2)),
        case(np.asarray(2.5)),
        *extra_cases,
    )


def _oracle_over_axes(function: Any) -> Any:
    return lambda x, axis=None, keepdims=False: function(x, axis=axis, keepdims=keepdims)


def _spread_oracle(function: Any) -> Any:
    def oracle(x, axis=None, keepdims=False, correction=0):
        spread = function(x, axis=axis, keepdims=keepdims, ddof=correction)
        return spread if x.size > correction * np.size(spread) else spread * np.nan

    return oracle


_SPREAD = (case(_FAR), case(_CUBE, 1, correction=1), case(_CUBE, 1, correction=3), case(_EMPTY, 0), case(_NAN, 0))
_ARG = (case(_CUBE), case(_CUBE, 1), case(_CUBE, -1, True), case(_NAN, 1), case(np.asarray(2.5)))
_RUN = (case(_CUBE), case(_CUBE, 1), case(_LONG[:3000]), case(np.asarray(2.5)))


def _row_of_index_op(op: str, values: Any, indices: Any) -> Sample:
    return Sample(
        op,
        lambda x, axis=None, keepdims=False: tuple(f(x, axis, keepdims=keepdims) for f in (values, indices)),
        _ARG,
        dtypes=REAL,
        integers=WHOLE,
        result=("promoted", "int64"),
        differentiable=True,
        refuses=((ShapeError, case(NO_ROWS, 0)),),
    )


_INITIAL = (case(_CUBE, 1), case(_CUBE, -1, include_initial=True), case(_CUBE[0, 0], include_initial=True))


def _cumulative_oracle(function: Any) -> Any:
    return lambda x, axis=None, include_initial=False: function(x, axis=axis, include_initial=include_initial)


def _accumulate_oracle(ufunc: Any) -> Any:
    return lambda x, axis=None: ufunc.accumulate(x.reshape(-1) if axis is None else x, axis or 0)


def _logcumsumexp_oracle(x, axis=None, reverse=False):
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    rows = np.moveaxis(np.flip(x, axis) if reverse else x, axis, -1).astype(np.float64)
    if not rows.size:
        return np.moveaxis(rows, -1, axis)
    is_summed = np.tri(rows.shape[-1], dtype=bool)  # row i marks the elements that result i sums
    logarithms = np.moveaxis(special.logsumexp(np.where(is_summed, rows[..., None, :], -np.inf), -1), -1, axis)
    return np.flip(logarithms, axis) if reverse else logarithms


SAMPLES = [
    Sample(
        "sum",
        _oracle_over_axes(np.sum),
        _reduction_cases(case(_LONG), case(_EMPTY, 0)),
        dtypes=REAL + COMPLEX,
        floor=8,
        differentiable=True,
        integers=WHOLE,
        result="sum",
        tolerance=3,
        refuses=((AxisError, case(ONES_3_4, (0, 0))),),
    ),
    Sample(
        "prod",
        _oracle_over_axes(np.prod),
        _reduction_cases(case(_EMPTY, 0)),
        dtypes=(*FLOATS, "bfloat16", *COMPLEX),
        tolerance=4,
        differentiable=True,
        integers=WHOLE,
        result="sum",
        left_out={"large offsets": DIFFERENCE},
    ),
    Sample(
        "mean",
        _oracle_over_axes(np.mean),
        _reduction_cases(case(_LONG), case(_EMPTY, 0)),
        dtypes=REAL + COMPLEX,
        integers=WHOLE,
        result="float",
        floor=8,
        differentiable=True,
        tolerance=1,
    ),
    Sample(
        "var",
        _spread_oracle(np.var),
        _reduction_cases(*_SPREAD),
        dtypes=REAL,
        tolerance=24,
        integers=("int32", "uint8"),
        result="float",
        differentiable=True,
        gradient=GradientRow(skipped={9: NO_DERIVATIVE}),
    ),
    Sample(
        "std",
        _spread_oracle(np.std),
        _reduction_cases(*_SPREAD),
        dtypes=REAL,
        tolerance=24,
        integers=("int32", "uint8"),
        result="float",
        differentiable=True,
        gradient=GradientRow(skipped={9: NO_DERIVATIVE}),
    ),
    Sample(
        "max",
        _oracle_over_axes(np.max),
        _reduction_cases(case(_NAN, 1)),
        dtypes=REAL,
        integers=WHOLE,
        differentiable=True,
        gradient=GradientRow(skipped={5: NO_DERIVATIVE}),
        refuses=((ShapeError, case(NO_ROWS, 0)), (AxisError, case(ONES_3_4, (1, -1)))),
    ),
    Sample(
        "min",
        _oracle_over_axes(np.min),
        _reduction_cases(case(_NAN, 1)),
        dtypes=REAL,
        integers=WHOLE,
        differentiable=True,
        gradient=GradientRow(skipped={5: NO_DERIVATIVE}),
        refuses=((ShapeError, case(NO_ROWS, 0)),),
    ),
    Sample(
        "any",
        _oracle_over_axes(np.any),
        _reduction_cases(case(_EMPTY, 0)),
        integers=WHOLE,
        result="bool",
        dtypes=REAL + COMPLEX,
    ),
    Sample(
        "all",
        _oracle_over_axes(np.all),
        _reduction_cases(case(_EMPTY, 0)),
        integers=WHOLE,
        result="bool",
        dtypes=REAL + COMPLEX,
    ),
    Sample(
        "argmax",
        lambda x, axis=None, keepdims=False: np.argmax(x, axis, keepdims=keepdims),
        _ARG,
        dtypes=REAL,
        integers=WHOLE,
        result="int64",
        refuses=((ShapeError, case(NO_ROWS, 0)),),
    ),
    Sample(
        "argmin",
        lambda x, axis=None, keepdims=False: np.argmin(x, axis, keepdims=keepdims),
        _ARG,
        dtypes=REAL,
        integers=WHOLE,
        result="int64",
        refuses=((ShapeError, case(NO_ROWS, 0)),),
    ),
    _row_of_index_op("max_and_argmax", np.max, np.argmax),
    _row_of_index_op("min_and_argmin", np.min, np.argmin),
    Sample(
        "cumsum",
        np.cumsum,
        _RUN,
        dtypes=REAL + COMPLEX,
        integers=WHOLE,
        result="sum",
        floor=8,
        differentiable=True,
        tolerance=4,
    ),
    Sample(
        "cumprod",
        np.cumprod,
        _RUN[1:2] + _RUN[3:],
        dtypes=REAL + COMPLEX,
        tolerance=3,
        differentiable=True,
        integers=("int64", "int32", "uint8"),
        result="sum",
    ),
    Sample(
        "cumulative_sum",
        _cumulative_oracle(np.cumulative_sum),
        _INITIAL,
        dtypes=REAL,
        integers=WHOLE,
        result="sum",
        floor=8,
        differentiable=True,
        tolerance=1,
    ),
    Sample(
        "cumulative_prod",
        _cumulative_oracle(np.cumulative_prod),
        _INITIAL,
        tolerance=3,
        differentiable=True,
        dtypes=REAL + COMPLEX,
        integers=WHOLE,
        result="sum",
    ),
    Sample(
        "cummax",
        _accumulate_oracle(np.maximum),
        (*_RUN, case(_NAN, 1)),
        dtypes=REAL,
        integers=WHOLE,
        differentiable=True,
        gradient=GradientRow(skipped={2: TIES}),
    ),
    Sample(
        "cummin",
        _accumulate_oracle(np.minimum),
        (*_RUN, case(_NAN, 1)),
        dtypes=REAL,
        integers=WHOLE,
        differentiable=True,
    ),
    Sample(
        "count_nonzero",
        lambda x, axis=None, keepdims=False: np.sum(x != 0, axis=axis, keepdims=keepdims),
        _reduction_cases(),
        result="int64",
        dtypes=REAL + COMPLEX,
        integers=WHOLE,
    ),
    Sample(
        "logsumexp",
        _oracle_over_axes(special.logsumexp),
        _reduction_cases(case(_FAR), case(np.array([-np.inf, -np.inf])), case(np.array([np.inf, 1.0]))),
        dtypes=REAL,
        integers=("int32",),
        result="float",
        differentiable=True,
        tolerance=3,
    ),
    Sample(
        "logcumsumexp",
        _logcumsumexp_oracle,
        (
            case(_CUBE),
            case(_CUBE, 1),
            case(_CUBE, -1, True),
            case(_FAR[:500]),
            case(np.array([-np.inf, -np.inf, 1.0, np.inf, 2.0])),
            case(np.array([1.0, np.nan, 2.0])),
        ),
        dtypes=REAL,
        integers=("int32",),
        result="float",
        differentiable=True,
        tolerance=3,
        gradient=GradientRow(skipped={5: NO_DERIVATIVE}),
        refuses=((AxisError, case(ONES_3_4, 2)), (DTypeError, case(ONES_4 * 1j))),
    ),
    Sample(
        "ptp",
        _oracle_over_axes(np.ptp),
        _reduction_cases(),
        dtypes=REAL,
        integers=INTEGERS,
        differentiable=True,
        tolerance=1,
        refuses=((ShapeError, case(NO_ROWS, 0)),),
    ),
    Sample(
        "moments",
        lambda x, axes, keepdims=False: (np.mean(x, axes, keepdims=keepdims), np.var(x, axes, keepdims=keepdims)),
        (case(_CUBE, (0, 2)), case(_CUBE, 1, True)),
        dtypes=REAL,
        integers=WHOLE,
        result="float",
        differentiable=True,
        tolerance=4,
    ),
]
