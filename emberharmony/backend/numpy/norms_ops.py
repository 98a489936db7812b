"""Norms, on NumPy: computed in float64, where no square of a float32 overflows."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.promote import nonempty, normalized
from emberharmony.core.options import constant


class NumpyNormsOps:
    """Holds the ops of `ops/norms.py`."""

    @staticmethod
    def vector_norm(x: np.ndarray, axis: Any = None, keepdims: bool = False, ord: float = 2) -> np.ndarray:
        x, ord = promotion.floats(x), constant("ord", ord)
        axes = normalized(axis, x.ndim)
        if ord == -np.inf:
            nonempty(x.shape, axis)
        sizes = np.abs(x).astype(np.float64, copy=False) if x.dtype.kind != "c" else np.abs(x.astype(np.complex128))
        if ord == 2:
            result = np.sqrt((sizes * sizes).sum(axes, keepdims=keepdims))
        elif ord == np.inf:
            result = sizes.max(axes, keepdims=keepdims, initial=0.0)
        else:
            result = np.linalg.vector_norm(sizes, axis=axes, keepdims=keepdims, ord=ord)
        return result.astype(x.real.dtype)
