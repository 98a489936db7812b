"""Tensors as such, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import cast


class NumpyTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)

    @staticmethod
    def convert_to_tensor(x: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        return x if dtype is None else cast(x, dtype)

    @staticmethod
    def to_numpy(x: np.ndarray) -> np.ndarray:
        return x
