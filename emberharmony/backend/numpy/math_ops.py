"""Elementwise mathematics, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion


class NumpyMathOps:
    """Holds the ops of `ops/math.py`."""

    sin = staticmethod(promotion.unary(np.sin))
    add = staticmethod(promotion.binary(np.add))
