"""Reductions and cumulative ops, on MLX.

On the CPU MLX 0.32 adds float32 sequentially and loses digits (relative error 1e-2 at a million elements). There, a sum
of more than 64 terms adds in float64: in a large tensor the sums of blocks of up to 16 elements, which lose at most two
eps, and in a small one the elements. A GPU has no float64, but adds in blocks itself.

The blocks follow each other along one axis, so that no element is copied; blocks of 32 or 64 elements are not faster,
and lose more digits. `prod` and the cumulative ops use float64, because their errors grow with every factor, and `var`
subtracts the mean. `logsumexp` of a long axis combines those of 64 terms: its error is then that of one rounding. On
the CPU MLX sometimes hangs when it reduces an empty array (seen with `any`, `all` and `prod` over all axes), so no code
calls a reduction of MLX on one. A maximum over rows of 1,024 elements takes 150 µs, and 72 in two steps, the first of
which compares vectors of 32.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import Arrays, Function, dispatch_on_transform, with_own_derivatives
from emberharmony.backend.mlx.dtypes import cast, promotion
from emberharmony.backend.mlx.elementwise.elementary_ops import exp_double, on_cpu
from emberharmony.backend.mlx.math_ops import even_maximum, even_minimum, is_complex, is_float
from emberharmony.backend.promote import nonnegative_axes, require_nonempty, shape_after_reduction, tensor_and_axis
from emberharmony.core import op_globals
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number, require_scalar

FEW = 64
"""Up to this many elements the native sum is as accurate."""
_BLOCK, _FILL = 16, 8192
"""The number of elements of a block, a power of two, and the size of a tensor up to which blocks do not save time."""
_LANES = 32
"""The length of the vectors that a maximum over a long row compares."""
_PLAIN = "({1}.__class__ is int or {1} is None) and ({2} is False or {2} is True)"
"""When an op over axes takes its options as they are."""
_COMPLEX = ("complex",)
_SINGLE = mx.float32


def _widen_for_sum(x: mx.array, dtype: mx.Dtype | None) -> mx.array:
    """Returns a tensor cast to the dtype of its sum or product.

    If a dtype is given, the tensor is cast to it before the reduction, as the array API standard demands.
    """
    if dtype is not None:
        return cast(x, dtype)
    if is_float(x) or is_complex(x):
        return x
    return x.astype(mx.uint64 if mx.issubdtype(x.dtype, mx.unsignedinteger) else mx.int64)


def widen(x: mx.array, few: int = FEW) -> mx.array:
    """Returns a floating tensor in a dtype whose sums lose no digits: float64 on the CPU, else float32 or wider.

    Args:
        x: a tensor; one that is not floating is returned unchanged.
        few: up to this many elements float32 is accurate enough on the CPU too.
    """
    if not is_float(x) or x.dtype == mx.float64:
        return x
    if x.size > few and on_cpu():
        return x.astype(mx.float64)
    return x.astype(mx.float32)


def reduce_or_identity(
    native: Callable[..., mx.array], x: mx.array, axes: Any, keepdims: bool, identity: float
) -> mx.array:
    """Returns the result of a native reduction; for an empty tensor the identity, because MLX 0.32 can hang there."""
    if x.size:
        return native(x, axes, keepdims)
    return mx.full(shape_after_reduction(x.shape, axes, keepdims), mx.array(identity, x.dtype))


def _sum_in_blocks(x: mx.array, axes: tuple[int, ...], keepdims: bool) -> mx.array:
    """Returns an accurate sum of float32 over axes: in float32 if it has few terms or a GPU adds it, else in float64.

    The sum of a large tensor first adds blocks along one of the axes. Their size is the largest power of two up to 16
    that divides the length of an axis. Converting every element to float64 would make the sum take 2 to 5 times as long
    as the native one (4 million elements, MLX 0.32).
    """
    if math.prod([x.shape[a] for a in axes]) > FEW and on_cpu():
        x = _block_sums(x, axes).astype(mx.float64)
    return mx.sum(x, axes, keepdims)


def _block_sums(x: mx.array, axes: tuple[int, ...]) -> mx.array:
    """Returns a tensor with the same sum over axes; of a large tensor, the sums of blocks.

    Besides its precision, the sum of adjacent blocks takes half of the time of MLX's sum over the last axis.
    """
    if x.size <= _FILL:
        return x
    axis = max(axes, key=lambda a: min(x.shape[a] & -x.shape[a], _BLOCK))
    block_size = min(x.shape[axis] & -x.shape[axis], _BLOCK)
    return mx.sum(mx.unflatten(x, axis, (x.shape[axis] // block_size, block_size)), axis + 1) if block_size > 1 else x


def detached_maximum(x: mx.array, axes: int | tuple[int, ...]) -> mx.array:
    """Returns the maximum over axes, which are kept, without a gradient."""
    if x.size > _FILL and axes in (-1, (x.ndim - 1,)) and not x.shape[-1] % _LANES:
        # Over an axis before the last mx.max (MLX 0.32) compares vectors, and takes a third of the time on a CPU.
        x = mx.max(mx.unflatten(x, -1, (-1, _LANES)), -2)
    return mx.stop_gradient(mx.max(x, axes, True))


def wide_sum(x: mx.array, axes: tuple[int, ...], keepdims: bool) -> mx.array:
    """Returns an accurate sum over axes, in float32 or wider; real and imaginary parts are summed separately."""
    if x.size and is_float(x) and x.dtype != mx.float64:
        return _sum_in_blocks(x.astype(mx.float32), axes, keepdims)
    if is_complex(x):
        return wide_sum(mx.real(x), axes, keepdims) + 1j * wide_sum(mx.imag(x), axes, keepdims).astype(mx.complex64)
    return reduce_or_identity(mx.sum, x, axes, keepdims, 0)


def _sum(x: mx.array, axis: Any = None, keepdims: bool = False, dtype: mx.Dtype | None = None) -> mx.array:
    x, axes = _widen_for_sum(x, dtype), nonnegative_axes(axis, x.ndim)
    return wide_sum(x, axes, keepdims).astype(x.dtype) if axes else x


def _term_count(x: mx.array, axis: int | None) -> int:
    """Returns how many elements of a float32 tensor a reduction reads for each element of its result, else 0.

    Raises:
        IndexError: if the axis is out of range.
    """
    if x.dtype != _SINGLE or not x.size:
        return 0
    term_count: int = x.size if axis is None else x.shape[axis]
    return term_count


def _float32_sum(x: mx.array, axis: int | None, keepdims: bool, count: int) -> mx.array:
    """Returns the sum of a float32 tensor, of `count` terms for each element, in float32 or wider."""
    if count <= FEW:
        return mx.sum(x, axis, keepdims)
    return _sum_in_blocks(x, tuple(range(x.ndim)) if axis is None else (axis % x.ndim,), keepdims)


def _quick_sum(x: mx.array, axis: int | None, keepdims: bool, dtype: None) -> mx.array:
    # The shape is read only where the size does not decide, because MLX makes a new tuple of it at each access.
    if 0 < x.size <= FEW and x.dtype == _SINGLE:
        return mx.sum(x, axis, keepdims)
    term_count = _term_count(x, axis)
    if not term_count:
        return _sum(x, axis, keepdims)
    float_sum = _float32_sum(x, axis, keepdims, term_count)
    return float_sum if term_count <= FEW else float_sum.astype(mx.float32)


def _quick_mean(x: mx.array, axis: int | None, keepdims: bool) -> mx.array:
    term_count = _term_count(x, axis)
    if not term_count:
        return _mean(x, axis, keepdims)
    mean_of_x = _float32_sum(x, axis, keepdims, term_count) / term_count
    return mean_of_x if term_count <= FEW else mean_of_x.astype(mx.float32)


def _mean(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
    x = promotion.floats(x)
    axes = nonnegative_axes(axis, x.ndim)
    term_count = math.prod(x.shape[a] for a in axes)
    sum_of_x = wide_sum(x, axes, keepdims) if axes else x
    return (sum_of_x / term_count).astype(x.dtype)


@functools.cache
def extreme_function(native: Callable[..., mx.array], axes: tuple[int, ...]) -> Function:
    """Returns a native maximum or minimum over axes, which are kept, with derivatives of every order in both modes.

    All elements that equal the extreme share its derivative equally.
    """

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        is_extreme = (primals[0] == outputs[0]).astype(primals[0].dtype)
        tie_count = mx.maximum(mx.sum(is_extreme, axes, keepdims=True), 1)
        return (mx.sum(is_extreme * tangents[0], axes, keepdims=True) / tie_count,)

    def native_extreme(x: mx.array) -> mx.array:
        return native(x, axes, True)

    return dispatch_on_transform(native_extreme, with_own_derivatives(native_extreme, push_tangents))


def _extreme_op(native: Callable[..., mx.array], pair: Callable[..., mx.array]) -> Any:
    def reduce_to_extreme(x: mx.array, axis: Any = None, keepdims: bool = False, initial: Any = None) -> mx.array:
        promotion.refuse(x, _COMPLEX)
        axes = nonnegative_axes(axis, x.ndim)
        initial_tensor = (
            None if initial is None else promotion.common(x, require_scalar("initial", initial))[1].astype(x.dtype)
        )
        if not x.size:
            if initial_tensor is None:
                require_nonempty(x.shape, axes)
            # Not mx.full, whose derivative by a tensor is too large (MLX 0.32): 4 for `mx.full(2, a).sum()`.
            return mx.broadcast_to(
                mx.array(0, x.dtype) if initial_tensor is None else initial_tensor,
                shape_after_reduction(x.shape, axes, keepdims),
            )
        extremes = extreme_function(native, axes)(x) if axes else x
        extremes = extremes if keepdims or not axes else mx.squeeze(extremes, axes)
        return extremes if initial_tensor is None else pair(extremes, initial_tensor)

    return reduce_to_extreme


def _arg_op(native: Callable[..., mx.array]) -> Any:
    def index_of_extreme(x: mx.array, axis: int | None = None, keepdims: bool = False) -> mx.array:
        promotion.refuse(x, _COMPLEX)
        axes = nonnegative_axes(axis, x.ndim)
        require_nonempty(x.shape, axes)
        if not x.size or x.ndim == 0:
            return mx.zeros(shape_after_reduction(x.shape, axes, keepdims), mx.int64)
        return native(x, axis, keepdims).astype(mx.int64)

    return index_of_extreme


def _products_and_tangents(x: mx.array, tangent: mx.array, axis: int) -> tuple[mx.array, mx.array]:
    """Returns the cumulative products of `x` along an axis, and their tangents.

    A parallel prefix product of log2(length) steps combines products of 1, 2, 4, … factors. It does not divide, so
    zeros are harmless.
    """
    count, step = x.shape[axis], 1
    while step < count:
        earlier_products, earlier_tangent = (mx.split(rows, [count - step], axis)[0] for rows in (x, tangent))
        ones = mx.ones_like(mx.split(x, [step], axis)[0])
        factor = mx.concatenate([ones, earlier_products], axis)
        factor_tangent = mx.concatenate([mx.zeros_like(ones), earlier_tangent], axis)
        x, tangent, step = x * factor, tangent * factor + x * factor_tangent, 2 * step
    return x, tangent


@functools.cache
def _cumprod_function(axis: int) -> Function:
    """Returns MLX's cumulative product along an axis, with derivatives of our own.

    `mx.cumprod` (MLX 0.32) has no forward mode, and its second derivatives are NaN where an element is 0.
    """

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (_products_and_tangents(primals[0], tangents[0], axis)[1],)

    return with_own_derivatives(lambda x: mx.cumprod(x, axis), push_tangents)


@functools.cache
def _product_function(axes: tuple[int, ...]) -> Function:
    """Returns MLX's product over axes, which are kept, with derivatives of our own."""

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        axis_order = [a for a in range(primals[0].ndim) if a not in axes] + list(axes)
        kept_shape = [primals[0].shape[a] for a in axis_order if a not in axes]
        x, tangent = (
            mx.transpose(operand, axis_order).reshape(*kept_shape, -1) for operand in (primals[0], tangents[0])
        )
        return (_products_and_tangents(x, tangent, len(kept_shape))[1][..., -1].reshape(outputs[0].shape),)

    return with_own_derivatives(lambda x: mx.prod(x, axes, True), push_tangents)


def _cumulative_sum_or_product_op(native: Callable[..., mx.array]) -> Any:
    def accumulate(x: mx.array, axis: int | None = None, dtype: mx.Dtype | None = None) -> mx.array:
        x, axis = tensor_and_axis(_widen_for_sum(x, dtype), axis)
        if not x.size:
            return x
        if is_complex(x) and native is mx.cumsum:
            return accumulate(mx.real(x), axis) + 1j * accumulate(mx.imag(x), axis).astype(x.dtype)
        cumulative_function = _cumprod_function(axis) if native is mx.cumprod else lambda x: native(x, axis)
        return cumulative_function(widen(x)).astype(x.dtype)

    return accumulate


def _cumulative_extreme_op(native: Callable[..., mx.array]) -> Any:
    def accumulate(x: mx.array, axis: int | None = None) -> mx.array:
        promotion.refuse(x, _COMPLEX)
        x, axis = tensor_and_axis(x, axis)
        if not x.size:
            return x
        # In half precision mx.cummax and mx.cummin (MLX 0.32) lose NaN.
        widened_x = x.astype(mx.float32) if is_float(x) and x.itemsize == 2 else x
        return native(widened_x, axis).astype(x.dtype)

    return accumulate


@functools.cache
def _squared_deviation_summer(axes: tuple[int, ...]) -> Function:
    """Returns a function that adds up, in float64, the squared deviations of float32 or float64 from their mean.

    The axes are kept. A GPU has no float64. Derivatives of large tensors are computed in the dtype of the tensor, which
    takes half of the time; those of small ones by MLX, because a function with own derivatives takes more calls.
    """

    def sum_squared_deviations(x: mx.array) -> mx.array:
        # Two passes, because the mean of the squares minus the square of the mean would lose digits.
        widened_x, count = widen(x, few=0), math.prod(x.shape[a] for a in axes)
        deviations = widened_x - reduce_or_identity(mx.sum, _block_sums(widened_x, axes), axes, True, 0) / mx.array(
            count, widened_x.dtype
        )
        return reduce_or_identity(mx.sum, _block_sums(mx.square(deviations), axes), axes, True, 0)

    def slopes(x: mx.array) -> mx.array:
        return 2 * (x - _mean(x, axes, True))

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (wide_sum(slopes(primals[0]) * tangents[0], axes, True).astype(outputs[0].dtype),)

    def pull_cotangents(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        return (slopes(primals[0]) * cotangents[0].astype(primals[0].dtype),)

    summer_with_rule = with_own_derivatives(sum_squared_deviations, push_tangents, pull_cotangents)
    return lambda x: sum_squared_deviations(x) if op_globals.untransformed or x.size <= _FILL else summer_with_rule(x)


def _var(x: mx.array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> mx.array:
    x = promotion.floats(x)
    axes = nonnegative_axes(axis, x.ndim)
    if is_complex(x):
        return _var(mx.real(x), axis, keepdims, correction) + _var(mx.imag(x), axis, keepdims, correction)
    term_count = math.prod(x.shape[a] for a in axes)
    if axes:
        square_sum = _squared_deviation_summer(axes)(x.astype(mx.float32) if x.itemsize == 2 else x)
        sum_of_squares = square_sum if keepdims else mx.squeeze(square_sum, axes)
    else:
        # If no axis is reduced, the variance is 0, or NaN for NaN and infinity.
        sum_of_squares = widen(x - x, few=0)
    if is_number(correction):
        return sum_of_squares / mx.array(
            float(term_count - correction) if term_count > correction else math.nan, sum_of_squares.dtype
        )
    degrees_of_freedom = term_count - promotion.common(sum_of_squares, require_scalar("correction", correction))[
        1
    ].astype(sum_of_squares.dtype)
    return sum_of_squares / mx.where(degrees_of_freedom > 0, degrees_of_freedom, math.nan)


def _variance(x: mx.array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> mx.array:
    x = promotion.floats(x)
    return _var(x, axis, keepdims, correction).astype(mx.float32 if is_complex(x) else x.dtype)


def _standard_deviation(x: mx.array, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> mx.array:
    x = promotion.floats(x)
    variance = _var(x, axis, keepdims, correction)
    if op_globals.untransformed:
        return mx.sqrt(variance).astype(mx.float32 if is_complex(x) else x.dtype)
    # The derivative of the square root is infinite at 0, which would make the gradient NaN.
    is_constant = variance == 0
    deviation = mx.where(is_constant, variance, mx.sqrt(mx.where(is_constant, mx.ones_like(variance), variance)))
    return deviation.astype(mx.float32 if is_complex(x) else x.dtype)


def _variance_op(native: Callable[..., mx.array], general: Callable[..., mx.array]) -> Any:
    """Returns an op that leaves few elements of float32 to MLX's `var` or `std`, in float64 on the CPU."""

    def quick_deviation(x: mx.array, axis: int | None, keepdims: bool, correction: int) -> mx.array:
        is_small = 0 < x.size <= _FILL and x.dtype == _SINGLE
        if not is_small or (correction and not 0 < correction < _term_count(x, axis)):
            return general(x, axis, keepdims, correction)
        return native(x.astype(mx.float64) if on_cpu() else x, axis, keepdims, correction).astype(_SINGLE)

    return staticmethod(fast(quick_deviation, f"{_PLAIN} and {{3}}.__class__ is int and untransformed")(general))


def _logsumexp(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
    x = promotion.floats(x)
    promotion.refuse(x, _COMPLEX)
    axes = nonnegative_axes(axis, x.ndim)
    if not axes:
        return x
    # Subtract the maximum, so that no exponential overflows. It is a constant, because its derivative cancels out.
    maximum = _extreme_op(mx.max, mx.maximum)(mx.stop_gradient(x), axes, True, float("-inf"))
    shift = mx.where(mx.isfinite(maximum), maximum, mx.zeros_like(maximum))
    # In float64 the exponential takes as long as two in float32, whose errors an accurate sum averages.
    shifted_x = x - shift
    shifted_x = shifted_x.astype(mx.float32) if x.dtype.size == 2 else shifted_x
    exp_sum = wide_sum(exp_double(shifted_x) if shifted_x.dtype == mx.float64 else mx.exp(shifted_x), axes, True)
    # The derivative of the logarithm is infinite at 0, which would make the gradient NaN.
    is_empty_sum = exp_sum == 0
    log_sum = mx.where(is_empty_sum, -mx.inf, mx.log(mx.where(is_empty_sum, 1, exp_sum))).astype(x.dtype) + shift
    return log_sum if keepdims else mx.squeeze(log_sum, axes)


@functools.cache
def _logsumexp_function(axis: int | None) -> Function:
    """Returns `mx.logsumexp` along an axis, which is kept, with a derivative of our own.

    That of MLX 0.32 is NaN where all elements are -inf; ours is 0 there.
    """

    def term_shares(x: mx.array, y: mx.array) -> mx.array:
        return mx.where(y == -mx.inf, 0, mx.softmax(x, axis))

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (mx.sum(term_shares(primals[0], outputs[0]) * tangents[0], axis, True),)

    def pull_cotangents(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        return (term_shares(primals[0], outputs[0]) * cotangents[0],)

    return with_own_derivatives(lambda x: mx.logsumexp(x, axis, True), push_tangents, pull_cotangents)


def _quick_logsumexp(x: mx.array, axis: int | None, keepdims: bool) -> mx.array:
    term_count = _term_count(x, axis)
    block_size = min(term_count & -term_count, FEW)
    if term_count > FEW and block_size > 8 and axis is not None and op_globals.untransformed:
        # mx.logsumexp adds so few terms accurately, and is faster than mx.exp is on the same elements (MLX 0.32).
        axis %= x.ndim
        x = mx.logsumexp(mx.unflatten(x, axis, (term_count // block_size, block_size)), axis + 1)
        return _quick_logsumexp(x, axis, keepdims)
    if not 0 < term_count <= FEW:
        return _logsumexp(x, axis, keepdims)
    if op_globals.untransformed:
        return mx.logsumexp(x, axis, keepdims)
    log_sum = _logsumexp_function(axis)(x)
    return log_sum if keepdims else mx.squeeze(log_sum, axis)


class MLXReductionOps:
    """Holds the ops of `ops/reductions/reduction.py`.

    The bodies take up to 28 times as long, for few elements. Functions of ours add in float32 by blocks, to keep the
    digits that MLX's lose, and reduce no empty tensor, where MLX can hang.
    """

    sum = staticmethod(fast(_quick_sum, f"{_PLAIN} and {{3}} is None")(_sum))
    mean = staticmethod(fast(_quick_mean, _PLAIN)(_mean))
    var = _variance_op(mx.var, _variance)
    std = _variance_op(mx.std, _standard_deviation)
    logsumexp = staticmethod(fast(_quick_logsumexp, _PLAIN)(_logsumexp))
    max = staticmethod(_extreme_op(mx.max, dispatch_on_transform(mx.maximum, even_maximum)))
    min = staticmethod(_extreme_op(mx.min, dispatch_on_transform(mx.minimum, even_minimum)))
    argmax = staticmethod(_arg_op(mx.argmax))
    argmin = staticmethod(_arg_op(mx.argmin))
    cumsum = staticmethod(_cumulative_sum_or_product_op(mx.cumsum))
    cumprod = staticmethod(_cumulative_sum_or_product_op(mx.cumprod))
    cummax = staticmethod(_cumulative_extreme_op(mx.cummax))
    cummin = staticmethod(_cumulative_extreme_op(mx.cummin))

    @staticmethod
    def prod(x: mx.array, axis: Any = None, keepdims: bool = False, dtype: mx.Dtype | None = None) -> mx.array:
        x, axes = _widen_for_sum(x, dtype), nonnegative_axes(axis, x.ndim)
        widened_x = widen(x, few=1)
        if not axes or not widened_x.size:
            return (reduce_or_identity(mx.prod, widened_x, axes, keepdims, 1) if axes else widened_x).astype(x.dtype)
        products = _product_function(axes)(widened_x)
        return (products if keepdims else mx.squeeze(products, axes)).astype(x.dtype)

    @staticmethod
    def any(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
        axes = nonnegative_axes(axis, x.ndim)
        return reduce_or_identity(mx.any, x != 0, axes, keepdims, False) if axes else x != 0

    @staticmethod
    def all(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
        axes = nonnegative_axes(axis, x.ndim)
        return reduce_or_identity(mx.all, x != 0, axes, keepdims, True) if axes else x != 0
