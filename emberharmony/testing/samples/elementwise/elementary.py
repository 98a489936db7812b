"""Sample rows of `ops/elementwise/elementary.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, binary, unary

REAL = FLOATS + HALVES
ANY = REAL + COMPLEX
D: dict[str, Any] = {"integers": ("int32", "uint8"), "differentiable": True, "floor": 0}
ABSOLUTE = D | {"floor": 1}


def _log1p(x: Any) -> Any:
    if np.asarray(x).dtype.kind != "c":
        return np.log1p(x)
    return np.log1p(x.real * (2 + x.real) + x.imag**2) / 2 + 1j * np.arctan2(x.imag, 1 + x.real)


def _complex_of_parts(real: Any, imag: Any) -> Any:
    """Returns complex numbers with given parts; `real + 1j * imag` would turn infinite parts into NaN."""
    complex_numbers = np.empty(np.shape(real), np.complex128)
    complex_numbers.real, complex_numbers.imag = real, imag
    return complex_numbers


def _expm1(x: Any) -> Any:
    if np.asarray(x).dtype.kind != "c":
        return np.expm1(x)
    exponential = np.exp(x)  # NumPy's expm1 returns NaN for infinite parts, even where a limit exists
    exponential_minus_1 = _complex_of_parts(exponential.real - 1, exponential.imag)
    return np.where(np.isfinite(x), np.expm1(x), exponential_minus_1)


def _exp2(x: Any) -> Any:
    if np.asarray(x).dtype.kind != "c":
        return np.exp2(x)
    return np.exp(_complex_of_parts(x.real * np.log(2), x.imag * np.log(2)))


SAMPLES = [
    unary("exp", np.exp, -10, 10, dtypes=ANY, tolerance=6, **D),
    unary("expm1", _expm1, -5, 5, dtypes=ANY, **D, tolerance=4),
    unary("exp2", _exp2, -12, 12, dtypes=ANY, **D, tolerance=12),
    unary("log", np.log, 0.01, 90, dtypes=ANY, **D, tolerance=2),
    unary("log1p", _log1p, -0.9, 50, dtypes=ANY, **D, tolerance=3),
    unary("log2", np.log2, 0.01, 90, dtypes=ANY, **D, tolerance=2),
    unary("log10", np.log10, 0.01, 90, dtypes=ANY, **D, tolerance=3),
    unary("sin", np.sin, dtypes=ANY, **D, tolerance=3),
    unary("cos", np.cos, dtypes=ANY, **D, tolerance=3),
    unary("tan", np.tan, -1.4, 1.4, dtypes=ANY, **D, tolerance=4),
    unary("arcsin", np.arcsin, -0.99, 0.99, dtypes=ANY, **D, tolerance=4),
    unary("arccos", np.arccos, -0.99, 0.99, dtypes=ANY, **D, tolerance=3),
    unary("arctan", np.arctan, dtypes=ANY, **D, tolerance=4),
    unary("sinh", np.sinh, -5, 5, dtypes=ANY, **D, tolerance=3),
    unary("cosh", np.cosh, -5, 5, dtypes=ANY, **D, tolerance=4),
    unary("tanh", np.tanh, dtypes=ANY, **D, tolerance=4),
    unary("arcsinh", np.arcsinh, dtypes=ANY, **D, tolerance=3),
    unary("arccosh", np.arccosh, 1.01, 50, dtypes=ANY, **D, tolerance=3),
    unary("arctanh", np.arctanh, -0.99, 0.99, dtypes=ANY, **D, tolerance=4),
    unary("erf", special.erf, -4, 4, dtypes=REAL, **D, tolerance=4),
    unary("erfc", special.erfc, -4, 3, dtypes=REAL, tolerance=12, **D),
    unary("erfinv", special.erfinv, -0.95, 0.95, dtypes=REAL, **D, tolerance=4),
    binary("logaddexp", np.logaddexp, dtypes=REAL, **ABSOLUTE, tolerance=3),
    binary("logaddexp2", np.logaddexp2, dtypes=REAL, **ABSOLUTE, tolerance=3),
    binary("arctan2", np.arctan2, dtypes=REAL, **D, tolerance=4),
    unary(
        "cbrt",
        np.cbrt,
        -50,
        50,
        dtypes=REAL,
        integers=("int32", "uint8"),
        floor=0,
        tolerance=3,
        differentiable=True,
    ),
    unary("sinc", np.sinc, -5, 5, dtypes=REAL, **ABSOLUTE, tolerance=2),
    unary("i0", lambda x: np.where(np.isinf(x), np.inf, special.i0(x)), -12, 12, dtypes=REAL, **D, tolerance=4),
    unary("deg2rad", lambda x: x * (np.pi / 180), -360, 360, dtypes=ANY, **D, tolerance=2),
    unary("rad2deg", lambda x: x * (180 / np.pi), dtypes=ANY, **D, tolerance=2),
]
