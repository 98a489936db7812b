"""Reductions and cumulative ops, on NumPy: ufunc methods, which cost half of what `np.sum` and its kin do."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.promote import nonempty, normalized

_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def accumulator(x: np.ndarray) -> np.dtype | None:
    """Returns the dtype a sum is given in, None for that of `x`."""
    kind = x.dtype.kind
    return _UINT64 if kind == "u" else _INT64 if kind in "bi" else None


def _accurate(x: np.ndarray, axis: Any) -> bool:
    """Returns whether NumPy's own sum is pairwise: along the last axis of a contiguous tensor, or over few elements."""
    if x.dtype.itemsize > 4:
        return True
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return False
    return x.size < 1024 or (axis in (None, -1, x.ndim - 1) and x.flags.c_contiguous)


def _sum(x: np.ndarray, axis: Any = None, keepdims: bool = False, dtype: np.dtype | None = None) -> np.ndarray:
    axis = _axes(axis)
    if dtype is None and _accurate(x, axis) and x.dtype.kind in "fc":
        return np.add.reduce(x, axis, None, None, keepdims)
    wanted = dtype or accumulator(x) or x.dtype
    wide = np.result_type(wanted, np.float64) if wanted.kind in "fcV" else wanted
    if wanted.kind == "V":
        x, wide = x.astype(np.float32), np.dtype(np.float64)
    return np.add.reduce(x, axis, wide, None, keepdims).astype(wanted)


def _mean(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    x = promotion.floats(x)
    axis = _axes(axis)
    total = np.asarray(_sum(_widened(x), axis, keepdims))
    count = x.size // total.size if total.size else 0
    if not count:
        count = int(np.prod([x.shape[a] for a in normalized(axis, x.ndim)]))
    return (total / total.dtype.type(count)).astype(x.dtype)


def _widened(x: np.ndarray) -> np.ndarray:
    """Returns half precision as float32, all else as it is."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _var(x: np.ndarray, axis: Any = None, keepdims: bool = False, correction: float = 0) -> np.ndarray:
    x = promotion.floats(x)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    result = np.var(wide, axis=_axes(axis), ddof=correction, keepdims=keepdims)
    return np.asarray(result).astype(x.real.dtype if x.dtype.kind == "c" else x.dtype)


def _extreme(ufunc: np.ufunc) -> Any:
    def extreme(x: np.ndarray, axis: Any = None, keepdims: bool = False, initial: float | None = None) -> np.ndarray:
        if initial is None:
            if not x.size:
                nonempty(x.shape, axis)
            return ufunc.reduce(x, _axes(axis), None, None, keepdims)
        return ufunc.reduce(x, _axes(axis), None, None, keepdims, np.asarray(initial).astype(x.dtype))

    return extreme


def _cumulative(ufunc: np.ufunc) -> Any:
    def cumulative(x: np.ndarray, axis: int | None = None, dtype: np.dtype | None = None) -> np.ndarray:
        if axis is None:
            x, axis = x.reshape(-1), 0
        wanted = dtype or accumulator(x) or x.dtype
        if wanted.kind not in "fV" or wanted.itemsize == 8:
            return ufunc.accumulate(x, axis, wanted)
        return ufunc.accumulate(x.astype(np.float64), axis).astype(wanted)

    return cumulative


class NumpyReductionOps:
    """Holds the ops of `ops/reduction.py`."""

    sum = staticmethod(_sum)
    mean = staticmethod(_mean)
    var = staticmethod(_var)
    max = staticmethod(_extreme(np.maximum))
    min = staticmethod(_extreme(np.minimum))
    cumsum = staticmethod(_cumulative(np.add))
    cumprod = staticmethod(_cumulative(np.multiply))

    @staticmethod
    def std(x: np.ndarray, axis: Any = None, keepdims: bool = False, correction: float = 0) -> np.ndarray:
        x = promotion.floats(x)
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        result = np.sqrt(_var(wide, axis, keepdims, correction))
        return np.asarray(result).astype(x.real.dtype if x.dtype.kind == "c" else x.dtype)

    @staticmethod
    def prod(x: np.ndarray, axis: Any = None, keepdims: bool = False, dtype: np.dtype | None = None) -> np.ndarray:
        wanted = dtype or accumulator(x) or x.dtype
        if wanted.kind in "fV" and wanted.itemsize < 8:
            return np.multiply.reduce(x.astype(np.float64), _axes(axis), None, None, keepdims).astype(wanted)
        return np.multiply.reduce(x, _axes(axis), wanted, None, keepdims)

    @staticmethod
    def any(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        return np.logical_or.reduce(x, _axes(axis), np.dtype(bool), None, keepdims)

    @staticmethod
    def all(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        return np.logical_and.reduce(x, _axes(axis), np.dtype(bool), None, keepdims)

    @staticmethod
    def argmax(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        nonempty(x.shape, axis)
        return x.argmax(axis, keepdims=keepdims)

    @staticmethod
    def argmin(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        nonempty(x.shape, axis)
        return x.argmin(axis, keepdims=keepdims)

    @staticmethod
    def logsumexp(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        x = promotion.floats(x)
        axes = normalized(_axes(axis), x.ndim)
        wide = _widened(x)
        top = np.maximum.reduce(wide, axes, None, None, True, -np.inf)
        shift = np.where(np.isfinite(top), top, 0)
        total = np.log(_sum(np.exp(wide - shift), axes, True)) + shift
        return (total if keepdims else np.squeeze(total, axes)).astype(x.dtype)
