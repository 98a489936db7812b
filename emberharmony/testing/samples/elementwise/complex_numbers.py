"""Sample rows of `ops/elementwise/complex_numbers.py`."""

import numpy as np

from emberharmony.testing.gradient_row import GradientRow
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, INTEGERS, Sample, binary, case, grid, unary

ALL = FLOATS + HALVES + COMPLEX
_COMPLEX = np.array([1 + 2j, -3.5j, 2.0, -1.0 + 0j, 0j, np.inf - 1j])
_PAIRS = grid(-5, 5, 12)

SAMPLES = [
    unary("real", np.real, dtypes=ALL, integers=INTEGERS, differentiable=True),
    unary("imag", np.imag, dtypes=ALL, integers=INTEGERS, differentiable=True),
    unary("conj", np.conj, dtypes=ALL, integers=INTEGERS, differentiable=True),
    unary("angle", np.angle, dtypes=ALL, integers=INTEGERS, result="float real", tolerance=3, differentiable=True),
    Sample("isreal", np.isreal, (case(_COMPLEX),), dtypes=COMPLEX, result="bool"),
    Sample("iscomplex", np.iscomplex, (case(_COMPLEX),), dtypes=COMPLEX, result="bool"),
    binary(
        "polar",
        lambda r, a: r * np.exp(1j * a),
        0.5,
        4,
        (-6, 6),
        dtypes=FLOATS + HALVES,
        integers=INTEGERS,
        floor=4,
        result="float complex",
        tolerance=2,
        differentiable=True,
        left_out={"extremes": "the cosine and sine of huge angles are inexact"},
        gradient=GradientRow(single=("mlx",)),
    ),
    Sample(
        "view_as_complex",
        lambda x: x[..., 0] + 1j * x[..., 1],
        (case(_PAIRS.reshape(6, 2)), case(_PAIRS.reshape(2, 6).T), case(_PAIRS.reshape(3, 2, 2)[:0])),
        dtypes=FLOATS + HALVES,
        result="complex",
        differentiable=True,
        gradient=GradientRow(single=("mlx",)),
    ),
    Sample(
        "view_as_real",
        lambda x: np.stack([x.real, x.imag], -1),
        (case(_COMPLEX), case(_COMPLEX.reshape(2, 3).T)),
        dtypes=COMPLEX,
        result="real",
        differentiable=True,
    ),
]
