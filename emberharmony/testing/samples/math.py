"""Sample rows of `ops/math.py`."""

import numpy as np

from emberharmony.testing.sample import COMPLEX, FLOATS, INTEGERS, binary, unary

SAMPLES = [
    unary("sin", np.sin, dtypes=FLOATS + COMPLEX, integers=INTEGERS, result="float", tolerance=8, differentiable=True),
    binary("add", np.add, dtypes=FLOATS + COMPLEX, integers=INTEGERS, differentiable=True),
]
