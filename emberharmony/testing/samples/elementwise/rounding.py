"""Sample rows of `ops/elementwise/rounding.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import FLOATS, HALVES, INTEGERS, Sample, binary, case, grid, unary

REAL = FLOATS + HALVES
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5])
_HALVES = np.array([0.5, 1.5, 2.5, -0.5, 1.2])
_NEXT = (np.array([1.0, 1.0, -1.0, 2.0, 0.0, -0.0]), np.array([2.0, 0.0, -2.0, 2.0, 1.0, -1.0]))


def _oracle_of_floats(function: Any) -> Any:
    return lambda x: x if x.dtype.kind in "biu" else function(x)


_PLACES = np.array([100.0, 7.0, -123.456, 0.001, 1.5, 0.0, 12.0])


def _round_oracle(x: Any, decimals: int = 0) -> Any:
    """Rounds by Python's `round`, which is exact for any number of decimals."""
    return np.array([round(value, decimals) for value in x.reshape(-1).tolist()], x.dtype).reshape(x.shape)


SAMPLES = [
    unary("floor", _oracle_of_floats(np.floor), dtypes=REAL, integers=INTEGERS),
    unary("ceil", _oracle_of_floats(np.ceil), dtypes=REAL, integers=INTEGERS),
    unary("trunc", _oracle_of_floats(np.trunc), dtypes=REAL, integers=INTEGERS),
    Sample(
        "round",
        _round_oracle,
        (
            *(case(_HALVES), case(grid(-9, 9), 1), case(grid(-9, 9), 4), case(grid(-9000, 9000), -3)),
            *(case(_PLACES, n) for n in (4, 2, 10, 40, 400, -1, -2, -400)),
        ),
        dtypes=REAL,
        integers=("int32", "int64"),
        tolerance=2,
        left_out={"complex refusals": "complex numbers are rounded by parts, which `tests/ops` check"},
    ),
    Sample(
        "nan_to_num",
        lambda x, *a: np.nan_to_num(x, False, *a),
        (case(_SPECIAL, 1.0, 2.0, -2.0),),
        dtypes=REAL,
        integers=INTEGERS,
        differentiable=True,
        left_out={"complex refusals": "complex numbers are replaced by parts, which `tests/ops` check"},
    ),
    binary(
        "copysign",
        np.copysign,
        dtypes=REAL,
        integers=("int32",),
        differentiable=True,
    ),
    unary(
        "fabs",
        np.fabs,
        dtypes=REAL,
        integers=("int32", "uint8"),
        result="float",
        differentiable=True,
    ),
    unary("signbit", np.signbit, dtypes=REAL, integers=("int32", "uint8")),
    Sample(
        "nextafter",
        np.nextafter,
        (case(*_NEXT),),
        dtypes=("float64",),
        left_out={"promotion": "the neighbour of a number depends on the dtype, and the oracle knows float64 only"},
    ),
    Sample(
        "ldexp",
        lambda x, exponent: x * 2.0**exponent,
        (case(grid(-4, 4, 8), np.arange(-4, 4)), case(grid(1, 2, 3), np.array([[-9], [9]]))),
        dtypes=REAL,
        integers=("int32",),
        result="float",
        differentiable=True,
        left_out={
            "special values": "the second tensor is of integers",
            "extremes": "the results are subnormal, of which a program of JAX 0.10 makes 0 on the CPU",
        },
    ),
    Sample(
        "saturate_cast",
        lambda x, dtype: np.clip(np.trunc(np.nan_to_num(x)), 0, 255),
        (case(grid(-900, 900), "uint8"),),
        dtypes=REAL,
        integers=("int32", "int64"),
        result="uint8",
        left_out={"complex refusals": "a complex tensor is cast like a real one"},
    ),
]
