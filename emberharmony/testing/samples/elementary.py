"""Sample rows of `ops/elementary.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, binary, unary

REAL = FLOATS + HALVES
ANY = REAL + COMPLEX
INTS = ("int32", "uint8")
D: dict[str, Any] = {"result": "float", "differentiable": True}

SAMPLES = [
    unary("exp", np.exp, -80, 80, dtypes=FLOATS, tolerance=64, **D),
    unary("expm1", np.expm1, -5, 5, dtypes=REAL, tolerance=8, integers=INTS[:1], **D),
    unary("exp2", np.exp2, -20, 20, dtypes=FLOATS, tolerance=16, **D),
    unary("log", np.log, 0.01, 90, dtypes=REAL, **D),
    unary("log1p", np.log1p, -0.9, 50, dtypes=REAL, **D),
    unary("log2", np.log2, 0.01, 90, dtypes=REAL, **D),
    unary("log10", np.log10, 0.01, 90, dtypes=REAL, **D),
    unary("sin", np.sin, dtypes=ANY, floor=1, tolerance=8, integers=INTS, **D),
    unary("cos", np.cos, dtypes=ANY, floor=1, tolerance=8, integers=INTS, **D),
    unary("tan", np.tan, -1.4, 1.4, dtypes=REAL, tolerance=8, **D),
    unary("arcsin", np.arcsin, -0.99, 0.99, dtypes=REAL, tolerance=8, **D),
    unary("arccos", np.arccos, -0.99, 0.99, dtypes=REAL, tolerance=8, **D),
    unary("arctan", np.arctan, dtypes=REAL, **D),
    unary("sinh", np.sinh, -5, 5, dtypes=REAL, tolerance=8, **D),
    unary("cosh", np.cosh, -5, 5, dtypes=REAL, tolerance=8, **D),
    unary("tanh", np.tanh, dtypes=REAL, **D),
    unary("arcsinh", np.arcsinh, dtypes=REAL, tolerance=8, **D),
    unary("arccosh", np.arccosh, 1.01, 50, dtypes=REAL, tolerance=8, **D),
    unary("arctanh", np.arctanh, -0.99, 0.99, dtypes=REAL, tolerance=8, **D),
    unary("erf", special.erf, -4, 4, dtypes=REAL, tolerance=8, floor=0, **D),
    unary("erfc", special.erfc, -4, 5, dtypes=FLOATS, tolerance=32, floor=0, **D),
    unary("erfinv", special.erfinv, -0.95, 0.95, dtypes=REAL, tolerance=16, **D),
    binary("logaddexp", np.logaddexp, dtypes=REAL, **D),
    binary("logaddexp2", np.logaddexp2, dtypes=REAL, **D),
    binary("arctan2", np.arctan2, dtypes=REAL, integers=INTS[:1], floor=0, **D),
    unary("cbrt", np.cbrt, -50, 50, dtypes=REAL, integers=INTS[:1], floor=0, result="float"),
    unary("sinc", np.sinc, -5, 5, dtypes=REAL, integers=INTS[:1], **D),
    unary("i0", special.i0, -12, 12, dtypes=REAL, integers=INTS[:1], floor=0, **D),
    unary("deg2rad", np.deg2rad, -360, 360, dtypes=FLOATS, **D),
    unary("rad2deg", np.rad2deg, dtypes=FLOATS, **D),
]
