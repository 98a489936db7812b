"""Reductions and cumulative ops, on PyTorch."""

import math
from typing import Any

import torch
from torch.autograd import forward_ad

from emberharmony.backend.promote import nonnegative_axes, require_nonempty, shape_after_reduction, tensor_and_axis
from emberharmony.backend.torch.dtypes import as_orderable, cast, from_orderable, promotion
from emberharmony.backend.torch.tracing import has_values
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number, require_scalar

_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
_WIDE = _UNSIGNED[1:]
_HALVES = (torch.float16, torch.bfloat16)
_COMPLEX = ("complex",)
_FLOATS = "{0}.dtype.is_floating_point and {0}.ndim"
_PLAIN = f"({{1}}.__class__ is int or {{1}} is None) and {_FLOATS}"
"""When the native reductions are right by themselves: they read `()` as all axes, and accept axis 0 of a 0-d tensor."""
_AXIS = f"{{1}}.__class__ is int and {_FLOATS}"
"""The same for native functions that do not read None as all axes."""
_SPREAD = f"{_PLAIN} and {{3}}.__class__ is int and {{3}} == 0 and {{0}}.itemsize > 2 and {{0}}.numel()"
"""When the native variance is right by itself: it warns if the count of elements is not larger than `correction`."""


def _widen_for_sum(x: torch.Tensor, dtype: torch.dtype | None) -> tuple[torch.Tensor, torch.dtype]:
    """Returns a tensor cast for its sum or product, and the dtype of the result.

    If a dtype is given, the tensor is cast to it before the reduction, as the array API standard demands.
    """
    if dtype is not None:
        return cast(x, dtype), dtype
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x, x.dtype
    return x, torch.uint64 if x.dtype in _UNSIGNED else torch.int64


def _kernel_dtype(result_dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype to reduce in: PyTorch has no kernels for wide unsigned dtypes, so they use int64.

    Both count modulo 2**64, so the results have the same bits.
    """
    return torch.int64 if result_dtype in _WIDE else result_dtype


@fast(lambda x, axis, keepdims, dtype: torch.sum(x, axis, keepdims), f"{_PLAIN} and {{3}} is None")
def _sum(x: torch.Tensor, axis: Any = None, keepdims: bool = False, dtype: torch.dtype | None = None) -> torch.Tensor:
    x, sum_dtype = _widen_for_sum(x, dtype)
    axes = nonnegative_axes(axis, x.ndim)
    if not axes:
        return x.to(sum_dtype)
    return torch.sum(
        x.to(_kernel_dtype(sum_dtype)) if x.dtype in _WIDE else x, axes, keepdims, dtype=_kernel_dtype(sum_dtype)
    ).to(sum_dtype)


def _extreme_op(native: Any, combine_pair: Any) -> Any:
    @fast(
        lambda x, axis, keepdims, initial: native(x, () if axis is None else axis, keepdims),
        f"{_PLAIN} and {{3}} is None",
    )
    def reduce_extreme(x: torch.Tensor, axis: Any = None, keepdims: bool = False, initial: Any = None) -> torch.Tensor:
        promotion.refuse(x, _COMPLEX)
        axes = nonnegative_axes(axis, x.ndim)
        initial_tensor = (
            None
            if initial is None
            else promotion.common(x, require_scalar("initial", initial))[1].to(device=x.device, dtype=x.dtype)
        )
        if not x.numel():
            if initial_tensor is None:
                require_nonempty(x.shape, axes)
            shape = shape_after_reduction(x.shape, axes, keepdims)
            return x.new_empty(shape) if initial_tensor is None else initial_tensor.expand(shape).clone()
        # An empty tuple of axes means all axes to PyTorch.
        extremes = native(as_orderable(x), axes, keepdims) if axes else as_orderable(x)
        if initial_tensor is not None:
            extremes = combine_pair(extremes, as_orderable(initial_tensor))
        return from_orderable(extremes, x.dtype)

    return reduce_extreme


def _extreme_index_op(native: Any) -> Any:
    @fast(native, f"({{1}} is None and not {{2}} or {{1}}.__class__ is int) and {_FLOATS}")
    def extreme_index(x: torch.Tensor, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
        promotion.refuse(x, _COMPLEX)
        require_nonempty(x.shape, axis)
        if axis is None:
            return native(as_orderable(x)).reshape([1] * x.ndim if keepdims else [])
        return native(as_orderable(x), *nonnegative_axes(axis, x.ndim), keepdims)

    return extreme_index


def _accumulation_op(native: Any) -> Any:
    def accumulate(x: torch.Tensor, axis: int | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        x, axis = tensor_and_axis(x, axis)
        x, sum_dtype = _widen_for_sum(x, dtype)
        return native(x.to(_kernel_dtype(sum_dtype)), axis).to(sum_dtype)

    return accumulate


def _cumulative_extreme_op(native: Any) -> Any:
    def accumulate(x: torch.Tensor, axis: int | None = None) -> torch.Tensor:
        x, axis = tensor_and_axis(x, axis)
        return from_orderable(native(as_orderable(x), axis).values, x.dtype)

    return accumulate


def _native_deviation(native: Any, x: torch.Tensor, axis: Any, keepdims: bool, correction: Any) -> torch.Tensor:
    """Returns the variance or the standard deviation of `x`, computed by `native`; half precision in float32.

    PyTorch's kernels lose no digits, and `torch.std` does not overflow where the variance would.
    """
    x = x.to(torch.float32) if x.dtype in _HALVES else x
    axes = nonnegative_axes(axis, x.ndim)
    if not axes:
        # If no axis is reduced, reduce a new axis of length 1: the variance is 0, or NaN for NaN and infinity.
        x, axes, keepdims = x.unsqueeze(-1), (x.ndim,), False
    element_count = math.prod([x.shape[a] for a in axes])  # a list: torch.compile cannot trace a generator here
    if not x.numel():
        return torch.mean(x, axes, keepdims).real
    if not is_number(correction):
        degrees_of_freedom = element_count - promotion.common(x.real, require_scalar("correction", correction))[1].to(
            device=x.device, dtype=x.real.dtype
        )
        slope_share = element_count / torch.where(degrees_of_freedom > 0, degrees_of_freedom, math.nan)
        return native(x, axes, correction=0, keepdim=keepdims) * (
            slope_share if native is torch.var else slope_share.sqrt()
        )
    if element_count > correction:
        if native is torch.std:
            return _quick_std(x, tuple(axes), keepdims, correction)
        return native(x, axes, correction=correction, keepdim=keepdims)
    # PyTorch warns if the divisor, count - correction, is not positive. The result must be NaN then.
    return native(x, axes, correction=0, keepdim=keepdims) * math.nan


def _quick_var(x: torch.Tensor, axis: Any, keepdims: bool, correction: Any) -> torch.Tensor:
    return torch.var(x, axis, correction=correction, keepdim=keepdims)


def _quick_std(x: torch.Tensor, axis: Any, keepdims: bool, correction: Any) -> torch.Tensor:
    deviation = torch.std(x, axis, correction=correction, keepdim=keepdims)
    is_differentiated = x.requires_grad or forward_ad._current_level >= 0
    if not is_differentiated or (has_values(x) and bool(deviation.detach().all())):
        return deviation
    # Where the deviation is 0, the derivative of the derivative of torch.std (PyTorch 2.13) is NaN. So it is taken of
    # other elements there, which vary, and replaced by 0.
    axes = nonnegative_axes(axis, x.ndim)
    longest_axis = max(axes, key=x.shape.__getitem__, default=None)
    if longest_axis is None or x.shape[longest_axis] == 1:
        return deviation.detach()
    is_constant = deviation == 0
    is_constant_broadcast = (
        is_constant if keepdims else is_constant.view([1 if a in axes else n for a, n in enumerate(x.shape)])
    )
    axis_positions = torch.arange(x.shape[longest_axis], device=x.device).view(
        [-1 if a == longest_axis else 1 for a in range(x.ndim)]
    )
    varying_x = torch.where(is_constant_broadcast, axis_positions.to(x.dtype), x)
    return torch.where(is_constant, 0.0, torch.std(varying_x, axis, correction=correction, keepdim=keepdims)).to(
        deviation.dtype
    )


def _logsumexp_of_axes(x: torch.Tensor, axes: Any, keepdims: bool) -> torch.Tensor:
    """Returns the logarithm of the sum of the exponentials, whose derivative is 0 where all elements are -inf."""
    log_sum = torch.logsumexp(x, axes, keepdims)
    is_differentiated = x.requires_grad or forward_ad._current_level >= 0
    if not is_differentiated or (has_values(x) and not _has_minus_infinity(log_sum.detach())):
        return log_sum
    # If all elements are -inf, the derivative of torch.logsumexp (PyTorch 2.13) is NaN.
    is_all_minus_inf = torch.all(x == -torch.inf, axes, keepdim=True)
    log_sum = torch.logsumexp(x.masked_fill(is_all_minus_inf, 0), axes, True).masked_fill(is_all_minus_inf, -torch.inf)
    return log_sum if keepdims else log_sum.squeeze(axes)


def _has_minus_infinity(x: torch.Tensor) -> bool:
    """Returns whether an element is -inf or NaN. `torch.equal` reads no number, which transforms would refuse."""
    return not torch.equal(x, x.clamp_min(torch.finfo(x.dtype).min))


def _quick_logsumexp(x: torch.Tensor, axis: Any, keepdims: bool) -> torch.Tensor:
    return _logsumexp_of_axes(x, tuple(range(x.ndim)) if axis is None else axis, keepdims)


class TorchReductionOps:
    """Holds the ops of `ops/reductions/reduction.py`.

    The bodies take 1.8 to 33 times as long, for few elements. The kernels are corrected where they lack a dtype or
    several axes.
    """

    sum = staticmethod(_sum)
    max = staticmethod(_extreme_op(torch.amax, torch.maximum))
    min = staticmethod(_extreme_op(torch.amin, torch.minimum))
    argmax = staticmethod(_extreme_index_op(torch.argmax))
    argmin = staticmethod(_extreme_index_op(torch.argmin))
    cumsum = staticmethod(_accumulation_op(torch.cumsum))
    cumprod = staticmethod(_accumulation_op(torch.cumprod))
    cummax = staticmethod(_cumulative_extreme_op(torch.cummax))
    cummin = staticmethod(_cumulative_extreme_op(torch.cummin))

    @staticmethod
    def prod(
        x: torch.Tensor, axis: Any = None, keepdims: bool = False, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        x, product_dtype = _widen_for_sum(x, dtype)
        product = x.to(_kernel_dtype(product_dtype))
        # A wider dtype loses no digits, and intermediate products do not overflow.
        if product_dtype in (*_HALVES, torch.float32):
            product = product.to(torch.float64 if x.device.type == "cpu" else torch.float32)
        # torch.prod takes one axis at a time; starting with the last keeps the numbers of the others valid.
        for a in sorted(nonnegative_axes(axis, x.ndim), reverse=True):
            if product.shape[a] == 1:
                # torch.prod begins with 1, whose product with an infinite complex number has a part that is NaN.
                product = product if keepdims else product.squeeze(a)
            else:
                product = torch.prod(product, a, keepdims)
        return product.to(product_dtype)

    @staticmethod
    @fast(torch.mean, _PLAIN)
    def mean(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        x = promotion.floats(x)
        axes = nonnegative_axes(axis, x.ndim)
        return torch.mean(x, axes, keepdims) if axes else x

    @staticmethod
    @fast(_quick_var, _SPREAD)
    def var(x: torch.Tensor, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> torch.Tensor:
        x = promotion.floats(x)
        return _native_deviation(torch.var, x, axis, keepdims, correction).to(x.real.dtype)

    @staticmethod
    @fast(_quick_std, _SPREAD)
    def std(x: torch.Tensor, axis: Any = None, keepdims: bool = False, correction: Any = 0) -> torch.Tensor:
        x = promotion.floats(x)
        return _native_deviation(torch.std, x, axis, keepdims, correction).to(x.real.dtype)

    @staticmethod
    def any(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        axes = nonnegative_axes(axis, x.ndim)
        return torch.any(x != 0, axes, keepdims) if axes else x != 0

    @staticmethod
    def all(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        axes = nonnegative_axes(axis, x.ndim)
        return torch.all(x != 0, axes, keepdims) if axes else x != 0

    @staticmethod
    @fast(_quick_logsumexp, f"{_PLAIN} and {{0}}.itemsize > 2")
    def logsumexp(x: torch.Tensor, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
        x = promotion.floats(x)
        promotion.refuse(x, _COMPLEX)
        axes = nonnegative_axes(axis, x.ndim)
        if not axes:
            return x
        widened_x = x.to(torch.float32) if x.dtype in _HALVES else x
        return _logsumexp_of_axes(widened_x, axes, keepdims).to(x.dtype)
