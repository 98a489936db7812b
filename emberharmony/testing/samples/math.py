"""Sample rows of `ops/math.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import DTypeError
from emberharmony.testing.gradient_row import SIDES, TIES, GradientRow
from emberharmony.testing.refused import ONES_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, Sample, binary, case, grid, unary

ALL = FLOATS + HALVES + COMPLEX
REAL = FLOATS + HALVES
ANY_INTEGER = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
RELATIVE: dict[str, Any] = {"floor": 0}
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5])


def _remainder(a: Any, b: Any) -> Any:
    return np.fmod(a, b) if np.asarray(a).dtype.kind == "f" else np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b)))


def _floor_divide(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind != "f":
        return np.floor_divide(a, b)
    return np.where(np.isinf(a) | np.isinf(b), np.floor(np.divide(a, b)), np.floor_divide(a, b))


SAMPLES = [
    binary("add", np.add, dtypes=ALL, integers=INTEGERS, differentiable=True, **RELATIVE, tolerance=1),
    binary("subtract", np.subtract, dtypes=ALL, integers=INTEGERS, differentiable=True, **RELATIVE, tolerance=1),
    binary("multiply", np.multiply, dtypes=ALL, integers=INTEGERS, differentiable=True, **RELATIVE, tolerance=2),
    binary(
        "divide",
        np.divide,
        0.5,
        10,
        dtypes=ALL,
        integers=INTEGERS,
        differentiable=True,
        **RELATIVE,
        tolerance=4,
        left_out={
            "complex infinities": "libraries differ in the sign of an infinity that is divided by a complex zero"
        },
    ),
    binary("floor_divide", _floor_divide, -30, 30, (0.7, 5), dtypes=REAL, integers=ANY_INTEGER, **RELATIVE),
    binary(
        "mod",
        np.mod,
        -30,
        30,
        (0.7, 5),
        dtypes=REAL,
        integers=ANY_INTEGER,
        differentiable=True,
        **RELATIVE,
        tolerance=1,
        gradient=GradientRow(cases=(case(*SIDES),)),
    ),
    binary(
        "divmod",
        lambda a, b: (_floor_divide(a, b), np.mod(a, b)),
        -30,
        30,
        (0.7, 5),
        dtypes=REAL,
        integers=ANY_INTEGER,
        result=("promoted", "promoted"),
        elementwise=True,
        differentiable=True,
        **RELATIVE,
        tolerance=1,
        gradient=GradientRow(cases=(case(*SIDES),)),
    ),
    binary(
        "fmod",
        _remainder,
        -30,
        30,
        (0.7, 5),
        dtypes=REAL,
        integers=ANY_INTEGER,
        differentiable=True,
        **RELATIVE,
        gradient=GradientRow(cases=(case(*SIDES),)),
    ),
    binary(
        "power",
        np.power,
        0.5,
        4,
        (-2, 3),
        dtypes=ALL,
        integers=("uint8",),
        differentiable=True,
        floor=0,
        tolerance=8,
        left_out={
            "complex infinities": "C99 defines it by exp and log, and libraries differ in how they combine these"
        },
    ),
    binary(
        "divide_no_nan",
        lambda a, b: np.where(b == 0, 0, a / b),
        1,
        9,
        dtypes=ALL,
        integers=INTEGERS,
        differentiable=True,
        **RELATIVE,
        tolerance=3,
    ),
    unary(
        "negative",
        np.negative,
        dtypes=ALL,
        integers=INTEGERS,
        differentiable=True,
        **RELATIVE,
    ),
    unary("positive", np.copy, dtypes=ALL, integers=INTEGERS, differentiable=True, **RELATIVE),
    unary("absolute", np.abs, dtypes=ALL, integers=INTEGERS, differentiable=True, **RELATIVE, tolerance=2),
    unary(
        "sign",
        lambda x: x if x.dtype == bool else np.sign(x),
        dtypes=ALL,
        integers=INTEGERS,
        **RELATIVE,
        tolerance=2,
        left_out={"complex infinities": "libraries differ; docs/semantics.md lists this"},
    ),
    unary("square", np.square, dtypes=ALL, integers=INTEGERS, differentiable=True, **RELATIVE, tolerance=1),
    unary(
        "reciprocal",
        lambda x: 1 / x,
        0.5,
        9,
        dtypes=ALL,
        integers=INTEGERS,
        differentiable=True,
        **RELATIVE,
        tolerance=3,
    ),
    unary(
        "sqrt",
        np.sqrt,
        0.01,
        90,
        dtypes=ALL,
        integers=INTEGERS,
        differentiable=True,
        **RELATIVE,
        tolerance=2,
    ),
    unary(
        "rsqrt",
        lambda x: 1 / np.sqrt(x),
        0.6,
        90,
        dtypes=ALL,
        integers=INTEGERS,
        differentiable=True,
        floor=0,
        tolerance=4,
    ),
    *(
        binary(
            name,
            getattr(np, name),
            dtypes=REAL,
            integers=INTEGERS,
            differentiable=True,
            **RELATIVE,
            gradient=GradientRow(skipped={2: TIES}),
        )
        for name in ("maximum", "minimum")
    ),
    Sample(
        "fmax",
        np.fmax,
        (case(grid(-2, 2), grid(2, -2)), case(_SPECIAL, np.full(5, 0.5)), case(np.full(5, 0.5), _SPECIAL)),
        REAL,
        INTEGERS,
        differentiable=True,
    ),
    Sample(
        "fmin",
        np.fmin,
        (case(grid(-2, 2), grid(2, -2)), case(_SPECIAL, np.full(5, 0.5)), case(np.full(5, 0.5), _SPECIAL)),
        REAL,
        INTEGERS,
        differentiable=True,
    ),
    Sample(
        "clip",
        lambda x, lo=None, hi=None: np.clip(x, lo, hi),
        (case(grid(-5, 5), -2, 3), case(grid(-5, 5), None, 1), case(grid(-5, 5), 2, 1)),
        dtypes=REAL,
        integers=("int32", "int64"),
        differentiable=True,
        **RELATIVE,
        refuses=((DTypeError, case(ONES_4, "a", 1)),),
    ),
    binary("heaviside", np.heaviside, dtypes=REAL, integers=INTEGERS, **RELATIVE, differentiable=True),
    unary("step", lambda x: (x > 0).astype(x.dtype), dtypes=REAL, integers=INTEGERS, **RELATIVE),
    binary("hypot", np.hypot, dtypes=REAL, integers=INTEGERS, differentiable=True, floor=0, tolerance=3),
    binary("gcd", np.gcd, 0, 60, dtypes=(), integers=ANY_INTEGER),
    binary(
        "lcm",
        np.lcm,
        0,
        11,
        dtypes=(),
        integers=ANY_INTEGER,
        left_out={"extremes": "a least common multiple that overflows is undefined"},
    ),
]
