"""Elementary and special functions, on PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.promote import direct

Unary = Callable[[torch.Tensor], torch.Tensor]
Binary = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_REAL = "{0}.dtype.is_floating_point"


def _float32_op(native: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Returns a float function that computes half precision in float32: PyTorch's kernel loses digits near zero."""

    def call_in_float32(x: torch.Tensor) -> torch.Tensor:
        return native(x) if x.dtype.itemsize > 2 else native(x.float()).to(x.dtype)

    return direct(native, call_in_float32, when="{0}.dtype is native_float32")


def _op_with_complex(
    native: Callable[[torch.Tensor], torch.Tensor], complex_function: Callable[[torch.Tensor], torch.Tensor]
) -> Any:
    """Returns a float function that calls another one for complex tensors, whose special values PyTorch has wrong."""
    return direct(native, lambda x: complex_function(x) if x.dtype.is_complex else native(x), when=_REAL)


def _expm1(x: torch.Tensor) -> torch.Tensor:
    native_expm1, exponential, is_finite = torch.expm1(x), torch.exp(x), torch.isfinite(x)
    # The real part of exp(x) - 1 is +0.0 where that of `x` is -0.0. Infinities and NaN follow the rules of exp.
    real_part = torch.where(is_finite, native_expm1.real + 0.0, exponential.real - 1)
    return torch.complex(real_part, torch.where(is_finite, native_expm1.imag, exponential.imag))


def _log1p(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isinf(x), torch.log(x), torch.log1p(x))


def _arccos(x: torch.Tensor) -> torch.Tensor:
    # PyTorch does not always keep the sign of a zero imaginary part where `x` is 0.
    angle = torch.acos(x)
    return torch.complex(angle.real, torch.where(x == 0, -x.imag, angle.imag))


class _LogOfSum(torch.autograd.Function):
    """The autograd function of `torch.logaddexp` and `torch.logaddexp2`, with correct derivatives of every order.

    The second derivatives of PyTorch itself are NaN where one term is far larger than the other.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(native: Binary, power: Unary, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        """Returns the logarithm of the sum of two powers."""
        return native(x1, x2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Binary, Unary, torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
        """Saves the result and the two terms for the derivatives."""
        _, ctx.power, x1, x2 = inputs
        ctx.save_for_backward(x1, x2, output)
        ctx.save_for_forward(x1, x2, output)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Returns the gradients: the cotangent times each term's share of the sum."""
        *terms, y = ctx.saved_tensors
        return None, None, *((cotangent * _exponential_share(ctx.power, x, y)).sum_to_size(x.shape) for x in terms)

    @staticmethod
    def jvp(ctx: Any, _native: None, _power: None, *tangents: torch.Tensor | None) -> torch.Tensor:
        """Returns the tangent: the tangents of the terms, weighted by each term's share of the sum."""
        *terms, y = ctx.saved_tensors
        tangents_and_terms = zip(tangents, terms, strict=True)
        return sum(
            (t * _exponential_share(ctx.power, x, y) for t, x in tangents_and_terms if t is not None),
            torch.zeros_like(y),
        )


def _exponential_share(power: Unary, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns the share of the term `x` in the sum whose logarithm is `y`: the derivative of `y` by `x`."""
    is_finite = y.isfinite()
    return torch.where(is_finite, power(torch.where(is_finite, x - y, 0)), (x == y).to(y.dtype))


def _log_of_sum_op(native: Binary, power: Unary) -> Binary:
    def log_of_sum(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling():
            # torch.compile (PyTorch 2.13) cannot trace an autograd.Function that defines `jvp`.
            return native(x1, x2)
        log_sum: torch.Tensor = _LogOfSum.apply(native, power, x1, x2)  # type: ignore[no-untyped-call]
        return log_sum

    return log_of_sum


def _i0(x: torch.Tensor) -> torch.Tensor:
    # torch.special.i0 multiplies exp(|x|) by a small factor. It gives infinity where exp overflows but the product does
    # not, and NaN where `x` is infinite.
    magnitude, is_infinite = x.abs(), x.isinf()
    is_far = (magnitude > math.log(torch.finfo(x.dtype).max) - 1) & ~is_infinite
    near_value = torch.where(is_infinite, magnitude, torch.special.i0(torch.where(is_far, 0, x)))
    far_magnitude = torch.where(is_far, magnitude, 80)
    scaled_i0, root_of_exp = torch.special.i0e(far_magnitude.detach()), torch.exp(far_magnitude.detach() / 2)
    # The value comes from detached tensors, so `log_growth`, of value 0, has the derivative i0' / i0 = i1 / i0.
    log_growth = torch.special.i1e(far_magnitude.detach()) / scaled_i0 * (far_magnitude - far_magnitude.detach())
    return torch.where(is_far, scaled_i0 * root_of_exp * root_of_exp * torch.exp(log_growth), near_value)


def _logaddexp2(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
    # For two equal numbers the result must be exactly x + 1, but PyTorch's can be a tenth of eps less. The correction
    # is detached, because the derivatives are right.
    log_sum = torch.logaddexp2(x1, x2)
    is_equal = (x1 == x2) & x1.isfinite()
    return log_sum + torch.where(is_equal, x1 + 1 - log_sum, 0.0).detach()


class TorchElementaryOps:
    """Holds the ops of `ops/elementwise/elementary.py`.

    The bodies take up to 210 times as long (erfinv 1,500 times), for few elements. Functions of ours beside a kernel
    correct it for complex numbers and at infinities, or give the gradient there.
    """

    exp = direct(torch.exp)
    expm1 = _op_with_complex(torch.expm1, _expm1)
    exp2 = direct(torch.exp2)
    log = direct(torch.log)
    log1p = _op_with_complex(torch.log1p, _log1p)
    log2 = direct(torch.log2)
    log10 = direct(torch.log10)
    logaddexp = direct(_log_of_sum_op(torch.logaddexp, torch.exp), weak=False, guard=_REAL)
    logaddexp2 = staticmethod(_log_of_sum_op(_logaddexp2, torch.exp2))
    sin = direct(torch.sin)
    cos = direct(torch.cos)
    tan = direct(torch.tan)
    arcsin = direct(torch.asin)
    arccos = _op_with_complex(torch.acos, _arccos)
    arctan = direct(torch.atan)
    arctan2 = direct(torch.atan2, weak=False)
    sinh = direct(torch.sinh)
    cosh = direct(torch.cosh)
    tanh = direct(torch.tanh)
    arcsinh = direct(torch.arcsinh)
    arccosh = direct(torch.arccosh)
    arctanh = direct(torch.arctanh)
    erf = _float32_op(torch.erf)
    erfc = direct(torch.erfc)
    erfinv = direct(torch.erfinv)
    i0 = direct(_i0)
