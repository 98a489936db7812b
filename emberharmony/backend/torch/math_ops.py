"""Elementwise arithmetic, on PyTorch."""

import math
from typing import Any

import numpy as np
import torch

from emberharmony.backend.promote import direct
from emberharmony.backend.torch import unsigned
from emberharmony.backend.torch.dtypes import extend_by_int64, promotion
from emberharmony.backend.torch.tracing import has_values
from emberharmony.backend.torch.unsigned import Binary, support_unsigned

_NUMBERS = (bool, int, float, complex)
_HELD = 65504
"""The largest number that every floating dtype can represent: the maximum of float16."""
_FLOAT32 = "{0}.dtype is native_float32"
_multiplied = extend_by_int64(torch.mul, ordered=False)
_FLOAT64, _clamp = torch.float64, torch.clamp

_EXPONENT = f"({promotion.weak}) and ({_FLOAT32} or {{0}}.dtype.is_complex and {{1}} > 0)"
"""The condition for a number as an exponent: PyTorch multiplies `z ** 2` itself, and gives NaN for some `z ** 0`."""
_FINITE = f"({promotion.weak}) and -1e300 < {{1}} < 1e300"
"""When the native sum with a Python number is right: PyTorch adds infinity to a complex tensor with a NaN part."""


def _combine_by_component(native: Binary) -> Binary:
    """Returns a function that adds or subtracts the real and the imaginary parts of complex numbers separately.

    PyTorch 2.13 multiplies the second operand by a complex 1 (`alpha`), which turns the 0 of `inf + 0j` into NaN.
    Dispatch still calls the native op for two complex tensors, because this one is ten times slower for small tensors.
    """

    def combine_parts(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if not x1.dtype.is_complex:
            return native(x1, x2)
        return torch.view_as_complex(native(*(torch.view_as_real(x.resolve_conj()) for x in (x1, x2))))

    return combine_parts


def _sum_op(native: Binary) -> Any:
    return direct(native, extend_by_int64(_combine_by_component(native), ordered=False), weak=_FINITE)


def _floor_divide(x1: torch.Tensor, x2: Any) -> torch.Tensor:
    # `torch.floor_divide` raises where a derivative is needed (PyTorch 2.13); `torch.div` has the derivative 0.
    quotient = torch.div(x1, x2, rounding_mode="floor")
    if not quotient.dtype.is_floating_point:
        return quotient
    # PyTorch follows Python, where inf // 2 is NaN. If neither of these sums is infinite or NaN, no operand is.
    divisor = x2.detach().sum() if isinstance(x2, torch.Tensor) else x2
    if has_values(quotient) and math.isfinite(quotient.detach().sum() + divisor):
        return quotient
    is_infinite = torch.isinf(x1) | (torch.isinf(x2) if isinstance(x2, torch.Tensor) else math.isinf(x2))
    return torch.where(is_infinite, torch.floor(torch.div(x1, x2)), quotient)


def _safe_division(native: Binary) -> Binary:
    """Returns a division, or a remainder, that is 0 for an integer divided by 0, for which PyTorch raises."""

    def divide_safely(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if x1.dtype.is_floating_point:
            # A quotient that is rounded to half precision before it is floored may be one too large.
            return native(x1, x2) if x1.dtype.itemsize > 2 else native(x1.float(), x2.float()).to(x1.dtype)
        is_zero = x2 == 0
        return native(x1, torch.where(is_zero, 1, x2)).masked_fill(is_zero, 0)

    return divide_safely


def _remainder(x1: torch.Tensor, x2: Any) -> torch.Tensor:
    remainder = torch.remainder(x1, x2)
    if not remainder.dtype.is_floating_point:
        return remainder
    # A remainder of zero must have the sign of the divisor. Written like this, the derivative with respect to `x1`
    # stays 1.
    if not isinstance(x2, torch.Tensor):
        return remainder.add_(0.0) if x2 >= 0 else remainder.neg_().add_(0.0).neg_()
    sign = torch.sign(x2)
    return remainder.mul_(sign).add_(0.0).mul_(sign)


def _divide_no_nan(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    is_zero = x2 == 0
    return (x1 / torch.where(is_zero, 1, x2)).masked_fill(is_zero, 0)


def _complex_power(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    """Returns a power of complex numbers, with its derivative by an exponent of 0; a square is exactly that."""
    # PyTorch 2.13 gives NaN for 0 ** 0 and infinity ** 0 of complex numbers.
    is_zero = x2 == 0
    power = torch.pow(x1, torch.where(is_zero, 1, x2))
    correction = torch.where(x2 == 2, x1 * x1 - power, 0).detach()  # the derivatives are those of the power
    power = power + torch.where(correction.isfinite(), correction, 0)
    # The factor exp(x2 * log(x1)) is 1 where x2 is 0, and gives the derivative by the exponent.
    logarithm = torch.log(torch.where((x1 != 0) & x1.isfinite(), x1, 1))
    return torch.where(is_zero, torch.exp(torch.where(is_zero, x2, 0) * logarithm), power)


def _power(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    if x1.dtype.is_complex:
        return _complex_power(x1, x2)
    if x1.dtype.is_floating_point or not (x2 < 0).any():
        return torch.pow(x1, x2)
    # The reciprocal of an integer truncates to 0, except for 1 and -1.
    sign = torch.where(x2 % 2 == 0, 1, x1)
    truncated_power = torch.where(x1.abs() == 1, sign, 0)
    return torch.where(x2 < 0, truncated_power, torch.pow(x1, x2.clamp_min(0)))


def _heaviside(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    # torch.heaviside (PyTorch 2.13) has no derivative, and gives 0 for NaN.
    return torch.where(x1.isnan(), x1, torch.where(x1 == 0, x2, (x1 > 0).to(x1.dtype)))


def sign(x: torch.Tensor) -> torch.Tensor:
    """Returns the sign of floating numbers."""
    # torch.sign gives 0 for NaN.
    return torch.sign(x).masked_fill_(x.isnan(), math.nan)


def _hypot(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    # Where both operands are zero, PyTorch's derivative is 0 / 0, which is NaN.
    are_zero = (x1 == 0) & (x2 == 0)
    return torch.hypot(x1.masked_fill(are_zero, 1), x2).masked_fill(are_zero, 0)


def _gcd(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    # torch.gcd can be negative if an operand is the lowest integer of its dtype.
    return torch.gcd(x1, x2).abs()


def _negative(x: torch.Tensor) -> torch.Tensor:
    if x.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return (-x.to(torch.int64)).to(x.dtype)
    if x.dtype.is_complex:
        # The vectorised kernel for complex numbers (PyTorch 2.13) gives +0.0 for a part that is +0.0, not -0.0.
        return torch.view_as_complex(-torch.view_as_real(x.resolve_conj()))
    return torch.neg(x)


def _absolute(x: torch.Tensor) -> torch.Tensor:
    return torch.abs(x) if x.dtype.is_signed else x


def _sign_of_any(x: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_complex:
        return torch.sgn(x)
    if x.dtype.is_floating_point:
        return sign(x)
    return torch.sign(x) if x.dtype.is_signed else (x != 0).to(x.dtype)


def _is_clamp_number(bound: Any, dtype: torch.dtype) -> bool:
    """Returns whether torch.clamp accepts a number unchanged: it raises for those beyond the range of the dtype."""
    is_python_number = (
        bound.__class__ is float or bound.__class__ is int or (bound.__class__ is np.float64 and dtype is _FLOAT64)
    )
    return is_python_number and -_HELD <= bound <= _HELD


class TorchMathOps:
    """Holds the ops of `ops/math.py`.

    The bodies take 1.7 to 116 times as long, for few elements. Functions of ours beside a kernel give wide unsigned
    dtypes, signs of zero or the gradient that PyTorch's lack.
    """

    convert: Any

    add = _sum_op(torch.add)
    subtract = _sum_op(torch.sub)
    multiply = direct(torch.mul)
    divide = direct(torch.div)
    divide_no_nan = staticmethod(_divide_no_nan)
    # int64 modulo 2**64 is wrong for wide unsigned dtypes where an op divides.
    floor_divide = direct(
        _floor_divide, support_unsigned(_safe_division(_floor_divide), unsigned.floor_divide), guard=_FLOAT32
    )
    mod = direct(_remainder, support_unsigned(_safe_division(_remainder), unsigned.mod), guard=_FLOAT32)
    fmod = direct(torch.fmod, support_unsigned(_safe_division(torch.fmod), unsigned.mod), guard=_FLOAT32)
    power = direct(torch.pow, support_unsigned(_power, unsigned.power), guard=_FLOAT32, weak=_EXPONENT)
    hypot = direct(_hypot, weak=False)
    maximum = direct(torch.maximum, weak=False)
    minimum = direct(torch.minimum, weak=False)
    heaviside = staticmethod(_heaviside)
    gcd = staticmethod(support_unsigned(_gcd, unsigned.gcd))
    reciprocal = direct(torch.reciprocal)
    square = direct(torch.square, lambda x: _multiplied(x, x), when="{0}.dtype.is_floating_point")
    sqrt = direct(torch.sqrt)
    rsqrt = direct(torch.rsqrt)
    positive = staticmethod(lambda x: x)
    negative = direct(torch.neg, _negative, when="{0}.dtype.is_floating_point")
    absolute = direct(torch.abs, _absolute, when="{0}.dtype.is_signed")
    sign = direct(sign, _sign_of_any, when="{0}.dtype.is_floating_point")

    def clip(
        self, x: torch.Tensor, x_min: Any = None, x_max: Any = None, *, min: Any = None, max: Any = None
    ) -> torch.Tensor:
        lower, upper = min if x_min is None else x_min, max if x_max is None else x_max
        dtype = x.dtype
        is_supported = dtype.is_floating_point and (lower is None or _is_clamp_number(lower, dtype))
        if is_supported and (upper is None or _is_clamp_number(upper, dtype)):
            return x if lower is None and upper is None else _clamp(x, lower, upper)
        for bound, name, clamp_function in ((lower, "min", self.maximum), (upper, "max", self.minimum)):
            if bound is not None:
                x, bound_tensor = promotion.common(x, bound if type(bound) in _NUMBERS else self.convert(bound))
                # Where `x` equals a bound, its derivative must be 1, as in torch.clamp; that of torch.maximum is 1/2.
                x = (
                    torch.clamp(x, **{name: bound_tensor})
                    if x.dtype.is_floating_point
                    else clamp_function(x, bound_tensor)
                )
        return x
