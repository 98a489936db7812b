"""Comparisons and logic, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import EQUATED
from emberharmony.backend.promote import direct


class NumpyComparisonOps:
    """Holds the ops of `ops/logic/comparison.py`."""

    equal = direct(np.equal, guard=EQUATED)
    not_equal = direct(np.not_equal, guard=EQUATED)
    less = direct(np.less)
    less_equal = direct(np.less_equal)
    greater = direct(np.greater)
    greater_equal = direct(np.greater_equal)
    logical_and = direct(np.logical_and)
    logical_or = direct(np.logical_or)
    logical_xor = direct(np.logical_xor)
    logical_not = direct(np.logical_not)
    isnan = direct(np.isnan)
    isinf = direct(np.isinf)
    isfinite = direct(np.isfinite)
