"""Norms, on NumPy: computed in float64, in which the square of a float32 cannot overflow."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.promote import nonnegative_axes, require_nonempty
from emberharmony.backend.shared.algebra.norms import is_euclidean, may_leave_float64, norm_order, safe_norm_range
from emberharmony.core.options import constant

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_LOW, _HIGH = safe_norm_range(2)


def _norm(x: np.ndarray, axes: tuple[int, ...], keepdims: bool, ord: float) -> np.ndarray:
    magnitudes = np.abs(x).astype(np.float64, copy=False) if x.dtype.kind != "c" else np.abs(x.astype(np.complex128))
    if ord == 2:
        return np.sqrt((magnitudes * magnitudes).sum(axes, keepdims=keepdims))
    if ord == np.inf:
        return magnitudes.max(axes, keepdims=keepdims, initial=0.0)
    return np.linalg.vector_norm(magnitudes, axis=axes, keepdims=keepdims, ord=ord)


class NumpyNormsOps:
    """Holds the ops of `ops/algebra/norms.py`.

    The body takes 23 times as long for the usual orders, with few elements.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    def vector_norm(self, x: np.ndarray, axis: Any = None, keepdims: bool = False, ord: float = 2) -> np.ndarray:
        if is_euclidean(axis, keepdims, ord) and (x.dtype is _FLOAT32 or x.dtype is _FLOAT64):
            flat_x = x.ravel("K").astype(_FLOAT64, copy=False)
            euclidean_norm = math.sqrt(np.vdot(flat_x, flat_x))  # `flat_x.dot` would warn if it overflows
            if _LOW < euclidean_norm < _HIGH:
                return np.asarray(euclidean_norm, x.dtype)
        x, ord = promotion.floats(x), norm_order(constant("ord", ord))
        axes = nonnegative_axes(axis, x.ndim)
        if ord == -np.inf:
            require_nonempty(x.shape, axis)
        if not may_leave_float64(ord, x.real.itemsize * 8):
            return _norm(x, axes, keepdims, ord).astype(x.real.dtype)
        with np.errstate(all="ignore"):
            norms = np.asarray(_norm(x, axes, keepdims, ord))
        smallest_safe, largest_safe = safe_norm_range(ord)
        if not x.size or not norms.size or (norms.min() > smallest_safe and norms.max() < largest_safe):
            return norms.astype(x.real.dtype)
        # The composite divides by the largest element, so that no power overflows.
        return self.composed("vector_norm")(x, axis, keepdims, ord)
