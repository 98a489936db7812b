"""Tensors as such, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import cast


class NumpyTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)
    copy = staticmethod(lambda x: x.copy())
    shape = staticmethod(lambda x: x.shape)
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.size)

    @staticmethod
    def convert_to_tensor(x: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        return x if dtype is None else cast(x, dtype)

    @staticmethod
    def to_numpy(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, np.ndarray)

    @staticmethod
    def eval(*trees: Any) -> None:
        return None
