"""Reductions and cumulative ops, on NumPy, by ufunc methods: `np.sum` and similar functions take twice as long.

`std` of float32 adds in float64, which `np.std` does not, 64 rows at a time, so that they stay in the cache. The square
of the mean is subtracted from the mean of the squares, because to subtract a column from rows takes half of the time,
unless less than a millionth of that remains in a row: then the mean is subtracted first.
"""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.dtypes import cast, promotion
from emberharmony.backend.numpy.folding import FEW, check_axis, fold, reduction_rows, squared_deviation_sums
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.core.dispatch import fast
from emberharmony.core.options import require_scalar

_ADD, _INT64, _UINT64 = np.add, np.dtype(np.int64), np.dtype(np.uint64)
_FLOAT32, _FLOAT64, _COMPLEX128 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex128)


def _axes_for_numpy(axis: Any) -> Any:
    """Returns axes as a tuple, or None; NumPy 2.4 accepts the numbers 0 and -1 as axes of a 0-d array."""
    return (axis,) if axis.__class__ is int else None if axis is None else tuple(axis)


def _is_float(dtype: np.dtype) -> bool:
    """Returns whether a dtype is real and floating; bfloat16 has the kind V in NumPy."""
    return dtype.kind in "fV"


def _widen_for_sum(x: np.ndarray, dtype: np.dtype | None) -> tuple[np.ndarray, np.dtype]:
    """Returns a tensor and the dtype of its sum or product; as in the array API, a given dtype is cast to first."""
    if dtype is not None:
        return cast(x, dtype), dtype
    kind = x.dtype.kind
    return x, _UINT64 if kind == "u" else _INT64 if kind in "bi" else x.dtype


def widen_half(x: np.ndarray) -> np.ndarray:
    """Returns half precision as float32, other tensors unchanged."""
    return x.astype(_FLOAT32) if x.dtype.itemsize == 2 and _is_float(x.dtype) else x


def _accumulation_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which products and cumulative sums of numbers of a dtype are computed."""
    return _FLOAT64 if _is_float(dtype) else _COMPLEX128 if dtype.kind == "c" else dtype


_FEW_FLOATS = (
    f"{{3}} is None and {{0}}.size <= {FEW} and ({{0}}.dtype is native_float32 or {{0}}.dtype is native_float64) "
    "and ({1} is None or {1}.__class__ is int and {0}.ndim)"
)
"""When NumPy's own sum is what `fold` returns: without axes, an array would take the numbers 0 and -1 as axes."""


@fast(np.add.reduce, _FEW_FLOATS, arguments="{0}, {1}, keepdims={2}, out=...", whole=True)
def _sum(x: np.ndarray, axis: Any = None, keepdims: bool = False, dtype: np.dtype | None = None) -> np.ndarray:
    if dtype is None and x.dtype.char in "fdFD":
        return fold(_ADD, x, axis, keepdims)
    x, sum_dtype = _widen_for_sum(x, dtype)
    if sum_dtype.kind in "biu":
        return np.add.reduce(x, _axes_for_numpy(axis), sum_dtype, None, keepdims)
    return fold(np.add, widen_half(x), axis, keepdims).astype(sum_dtype, copy=False)


def _mean(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    x = promotion.floats(x)
    sums = fold(np.add, widen_half(x), axis, keepdims)
    mean = sums / (x.size // (sums.size or 1))
    return mean if mean.dtype is x.dtype else mean.astype(x.dtype)


def _var(x: np.ndarray, axis: Any, keepdims: bool, correction: Any) -> np.ndarray:
    """Returns the variance over axes, with sums in float64."""
    rows = reduction_rows(x, axis)
    if rows is not None:
        axes = nonnegative_axes(axis, x.ndim)
        result_shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes]
        return _divide_by_freedom(squared_deviation_sums(rows).reshape(result_shape), rows.shape[1], correction)
    centred_x = x.astype(_accumulation_dtype(x.dtype))
    sums = fold(np.add, centred_x, axis, True)
    element_count = x.size // (sums.size or 1)
    centred_x -= sums / element_count
    squares = (
        centred_x.real**2 + centred_x.imag**2
        if centred_x.dtype.kind == "c"
        else np.multiply(centred_x, centred_x, centred_x)
    )
    return _divide_by_freedom(fold(np.add, squares, axis, keepdims), element_count, correction)


def _divide_by_freedom(square_sums: np.ndarray, count: int, correction: Any) -> np.ndarray:
    """Returns a sum of squares divided by the degrees of freedom; NaN if there are none."""
    try:
        degrees_of_freedom = count - correction if count > correction else np.nan
    except (TypeError, ValueError):  # NumPy reads no truth value from several numbers
        require_scalar("correction", correction)
        raise
    return square_sums / degrees_of_freedom


def _extreme_op(ufunc: np.ufunc) -> Any:
    def reduce_extreme(x: np.ndarray, axis: Any = None, keepdims: bool = False, initial: Any = None) -> np.ndarray:
        promotion.refuse(x, ("complex",))
        if initial is None:
            return fold(ufunc, x, axis, keepdims)
        return ufunc.reduce(
            x,
            _axes_for_numpy(axis),
            None,
            None,
            keepdims,
            promotion.common(x, require_scalar("initial", initial))[1].astype(x.dtype),
        )

    return reduce_extreme


def _array_and_axis(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, int]:
    """Returns `x` and the axis along which to accumulate; without an axis, the flattened `x` and 0."""
    if axis is None:
        return x.reshape(-1), 0
    return x, axis if x.ndim else nonnegative_axes(axis, 0)[0]


def _accumulation_op(ufunc: np.ufunc) -> Any:
    def accumulate(x: np.ndarray, axis: int | None = None, dtype: np.dtype | None = None) -> np.ndarray:
        x, axis = _array_and_axis(x, axis)
        x, sum_dtype = _widen_for_sum(x, dtype)
        return ufunc.accumulate(x, axis, _accumulation_dtype(sum_dtype)).astype(sum_dtype, copy=False)

    return accumulate


def _cumulative_extreme_op(ufunc: np.ufunc) -> Any:
    def accumulate(x: np.ndarray, axis: int | None = None) -> np.ndarray:
        promotion.refuse(x, ("complex",))
        return ufunc.accumulate(*_array_and_axis(x, axis))

    return accumulate


def logsumexp(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    """Returns the logarithm of the sum of exponentials of float32 or float64."""
    maximum = np.maximum.reduce(x, axis, None, None, True, -np.inf)
    # Do not subtract an infinite maximum, because inf - inf is NaN.
    shift = np.where(np.isfinite(maximum), maximum, 0)
    log_sums = np.log(fold(np.add, np.exp(x - shift), axis, True)) + shift
    return log_sums if keepdims else np.squeeze(log_sums, axis)


_ALONG = (
    "{1}.__class__ is int and ({2} is False or {2} is True) and {0}.ndim "
    "and ({0}.dtype is native_float32 or {0}.dtype is native_float64)"
)
"""When a reduction takes a tensor and one axis as they are."""


class NumpyReductionOps:
    """Holds the ops of `ops/reductions/reduction.py`.

    The bodies take 1.4 to 100 times as long, for few elements; those of accumulations need a pass for each doubling.
    """

    sum = staticmethod(_sum)
    mean = staticmethod(_mean)
    max = staticmethod(_extreme_op(np.maximum))
    min = staticmethod(_extreme_op(np.minimum))
    cumsum = staticmethod(_accumulation_op(np.add))
    cumprod = staticmethod(_accumulation_op(np.multiply))
    cummax = staticmethod(_cumulative_extreme_op(np.maximum))
    cummin = staticmethod(_cumulative_extreme_op(np.minimum))

    @staticmethod
    def var(x: np.ndarray, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> np.ndarray:
        x = promotion.floats(x)
        return _var(x, axis, keepdims, correction).astype(x.real.dtype)

    @staticmethod
    def std(x: np.ndarray, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> np.ndarray:
        x = promotion.floats(x)
        return np.sqrt(_var(x, axis, keepdims, correction)).astype(x.real.dtype)

    @staticmethod
    def prod(x: np.ndarray, axis: Any = None, keepdims: bool = False, dtype: np.dtype | None = None) -> np.ndarray:
        x, product_dtype = _widen_for_sum(x, dtype)
        axes, wide_dtype = _axes_for_numpy(axis), _accumulation_dtype(product_dtype)
        if wide_dtype is _COMPLEX128 and x.size:
            # NumPy would begin with 1, whose product with an infinite complex number has a part that is NaN.
            product = np.multiply.reduce(x, axes, wide_dtype, None, keepdims, initial=None)
        else:
            product = np.multiply.reduce(x, axes, wide_dtype, None, keepdims)
        return product.astype(product_dtype, copy=False)

    @staticmethod
    def any(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        return fold(np.logical_or, x.astype(bool, copy=False), axis, keepdims)

    @staticmethod
    def all(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        return fold(np.logical_and, x.astype(bool, copy=False), axis, keepdims)

    @staticmethod
    def argmax(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        promotion.refuse(x, ("complex",))
        check_axis(axis, x.ndim)
        return x.argmax(axis, keepdims=keepdims)

    @staticmethod
    def argmin(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        promotion.refuse(x, ("complex",))
        check_axis(axis, x.ndim)
        return x.argmin(axis, keepdims=keepdims)

    @staticmethod
    @fast(logsumexp, _ALONG)
    def logsumexp(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        x = promotion.floats(x)
        promotion.refuse(x, ("complex",))
        return logsumexp(widen_half(x), nonnegative_axes(axis, x.ndim), keepdims).astype(x.dtype, copy=False)
