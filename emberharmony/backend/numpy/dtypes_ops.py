"""Questions about dtypes, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import DTYPES
from emberharmony.core.dtypes import DType


class NumpyDtypesOps:
    """Holds the ops of `ops/dtypes.py`."""

    @staticmethod
    def dtype(x: np.ndarray) -> DType:
        return DTYPES.neutral[x.dtype]
