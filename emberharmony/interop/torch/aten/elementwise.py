"""Operators of ATen that work element by element, computed by ops."""

import math
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten, register_names

aten("abs")(ops.absolute)
aten("acos")(ops.arccos)
aten("acosh")(ops.arccosh)
aten("angle")(ops.angle)
aten("asin")(ops.arcsin)
aten("asinh")(ops.arcsinh)
aten("atan")(ops.arctan)
aten("atan2")(ops.arctan2)
aten("atanh")(ops.arctanh)
aten("bitwise_and", "__and__")(ops.bitwise_and)
aten("bitwise_left_shift", "__lshift__")(ops.bitwise_left_shift)
aten("bitwise_not")(ops.bitwise_invert)
aten("bitwise_or", "__or__")(ops.bitwise_or)
aten("bitwise_right_shift", "__rshift__")(ops.bitwise_right_shift)
aten("bitwise_xor", "__xor__")(ops.bitwise_xor)
aten("ceil")(ops.ceil)
aten("complex")(lambda real, imag: ops.add(real, ops.multiply(imag, 1j)))
aten("conj", "_conj", "_conj_physical", "conj_physical")(ops.conj)
aten("copysign")(ops.copysign)
aten("cos")(ops.cos)
aten("cosh")(ops.cosh)
aten("deg2rad")(ops.deg2rad)
aten("digamma", "special_digamma")(ops.digamma)
aten("eq")(ops.equal)
aten("erf", "special_erf")(ops.erf)
aten("erfc", "special_erfc")(ops.erfc)
aten("erfinv", "special_erfinv")(ops.erfinv)
aten("exp")(ops.exp)
aten("exp2", "special_exp2")(ops.exp2)
aten("expm1", "special_expm1")(ops.expm1)
aten("floor")(ops.floor)
aten("floor_divide")(ops.floor_divide)
aten("fmax")(ops.fmax)
aten("fmin")(ops.fmin)
aten("fmod")(ops.fmod)
aten("frac")(lambda x: ops.subtract(x, ops.trunc(x)))
aten("gcd")(ops.gcd)
aten("ge")(ops.greater_equal)
aten("gt")(ops.greater)
aten("heaviside")(ops.heaviside)
aten("hypot")(ops.hypot)
aten("i0", "special_i0")(ops.i0)
aten("igamma", "special_gammainc")(ops.gammainc)
aten("igammac", "special_gammaincc")(ops.gammaincc)
aten("imag")(ops.imag)
aten("isfinite")(ops.isfinite)
aten("isinf")(ops.isinf)
aten("isnan")(ops.isnan)
aten("isneginf")(ops.isneginf)
aten("isposinf")(ops.isposinf)
aten("lcm")(ops.lcm)
aten("ldexp")(lambda x, other: ops.multiply(x, ops.power(2.0, other)))
aten("le")(ops.less_equal)
aten("lgamma", "special_gammaln")(ops.gammaln)
aten("log")(ops.log)
aten("log10")(ops.log10)
aten("log1p", "special_log1p")(ops.log1p)
aten("log2")(ops.log2)
aten("logaddexp")(ops.logaddexp)
aten("logaddexp2")(ops.logaddexp2)
aten("logical_and")(ops.logical_and)
aten("logical_not")(ops.logical_not)
aten("logical_or")(ops.logical_or)
aten("logical_xor")(ops.logical_xor)
aten("lt")(ops.less)
aten("maximum", "max.other")(ops.maximum)
aten("minimum", "min.other")(ops.minimum)
aten("mul", "multiply")(ops.multiply)
aten("ne")(ops.not_equal)
aten("neg", "negative")(ops.negative)
aten("nextafter")(ops.nextafter)
aten("polygamma", "special_polygamma")(lambda n, x: ops.polygamma(n, x))
aten("pow")(ops.power)
aten("rad2deg")(ops.rad2deg)
aten("real")(ops.real)
aten("reciprocal")(ops.reciprocal)
aten("remainder")(ops.mod)
aten("round")(ops.round)
aten("round.decimals")(lambda x, decimals=0: ops.round(x, decimals))
aten("rsqrt")(ops.rsqrt)
aten("sign", "sgn")(ops.sign)
aten("signbit")(ops.signbit)
aten("sin")(ops.sin)
aten("sinc", "special_sinc")(ops.sinc)
aten("sinh")(ops.sinh)
aten("sqrt")(ops.sqrt)
aten("square")(ops.square)
aten("tan")(ops.tan)
aten("tanh")(ops.tanh)
aten("trunc", "fix")(ops.trunc)
aten("view_as_complex")(ops.view_as_complex)
aten("view_as_real")(ops.view_as_real)
aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")(ops.where)
aten("xlogy", "special_xlogy")(ops.xlogy)
aten("special_bessel_j0")(ops.j0)
aten("special_bessel_j1")(ops.j1)
aten("special_entr")(ops.entr)
aten("special_erfcx")(ops.erfcx)
aten("special_modified_bessel_i0")(ops.i0)
aten("special_modified_bessel_i1")(ops.i1)
aten("special_modified_bessel_k0")(lambda x: ops.kv(0, x))
aten("special_modified_bessel_k1")(lambda x: ops.kv(1, x))
aten("special_spherical_bessel_j0")(lambda x: ops.sinc(ops.divide(x, math.pi)))
aten("special_i0e")(ops.i0e)
aten("special_i1")(ops.i1)
aten("special_i1e")(ops.i1e)
aten("special_log_ndtr")(ops.log_ndtr)
aten("special_ndtr")(ops.ndtr)
aten("special_ndtri")(ops.ndtri)
aten("special_xlog1py")(ops.xlog1py)
aten("special_zeta")(ops.zeta)


def scale(x: Any, factor: Any) -> Any:
    """Returns a tensor times a factor; for the factor 1 the tensor itself."""
    return x if factor.__class__ is int and factor == 1 else ops.multiply(x, factor)


@aten("add")
def add(x: Any, other: Any, alpha: Any = 1) -> Any:
    """Returns `x + alpha * other`."""
    return ops.add(x, scale(other, alpha))


@aten("sub", "subtract")
def sub(x: Any, other: Any, alpha: Any = 1) -> Any:
    """Returns `x - alpha * other`."""
    return ops.subtract(x, scale(other, alpha))


@aten("rsub")
def rsub(x: Any, other: Any, alpha: Any = 1) -> Any:
    """Returns `other - alpha * x`."""
    return ops.subtract(other, scale(x, alpha))


@aten("addcmul")
def addcmul(x: Any, first: Any, second: Any, value: Any = 1) -> Any:
    """Returns `x + value * first * second`."""
    return ops.add(x, scale(ops.multiply(first, second), value))


@aten("addcdiv")
def addcdiv(x: Any, first: Any, second: Any, value: Any = 1) -> Any:
    """Returns `x + value * first / second`."""
    return ops.add(x, scale(ops.divide(first, second), value))


@aten("lerp")
def lerp(x: Any, end: Any, weight: Any) -> Any:
    """Returns `x + weight * (end - x)`."""
    return ops.add(x, ops.multiply(weight, ops.subtract(end, x)))


@aten("div", "divide", "true_divide")
def div(x: Any, other: Any, rounding_mode: str | None = None) -> Any:
    """Returns a quotient, which may be rounded down ("floor") or towards 0 ("trunc")."""
    if rounding_mode == "floor":
        return ops.floor_divide(x, other)
    if rounding_mode == "trunc":
        if not ops.isdtype(ops.result_type(x, other), "real floating"):
            # This is exact, while a quotient of floats could be rounded up to the next integer.
            return ops.floor_divide(ops.subtract(x, ops.fmod(x, other)), other)
        return ops.trunc(ops.divide(x, other))
    return ops.divide(x, other)


@aten("clamp", "clip", "clamp.Tensor")
def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    """Returns the elements clipped to bounds; at a bound the derivative is 1, as within the bounds."""
    return ops.clip(x, min, max)


aten("clamp_min")(lambda x, low: ops.clip(x, low, None))
aten("clamp_max")(lambda x, high: ops.clip(x, None, high))


@aten("masked_fill")
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """Returns a tensor with a value in place of the elements where a mask is true."""
    return ops.where(mask, value, x)


@aten("nan_to_num")
def nan_to_num(x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Returns the elements with numbers in the place of NaN and infinities."""
    return ops.nan_to_num(x, 0.0 if nan is None else nan, posinf, neginf)


@aten("logit", "special_logit")
def logit(x: Any, eps: float | None = None) -> Any:
    """Returns `log(x / (1 - x))`, where `x` is brought into the interval from eps to 1 - eps."""
    return ops.logit(x if eps is None else ops.clip(x, eps, 1 - eps))


@aten("isclose")
def isclose(x: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Returns booleans that tell where the elements of two tensors are equal within tolerances."""
    return ops.isclose(x, other, rtol, atol, equal_nan)


@aten("mvlgamma", "special_multigammaln")
def mvlgamma(x: Any, p: int) -> Any:
    """Returns the logarithm of the multivariate gamma function."""
    return ops.multigammaln(x, p)


@aten("polar")
def polar(abs: Any, angle: Any) -> Any:
    """Returns the complex numbers with given magnitudes and angles."""
    return ops.polar(abs, angle)


@aten("detach", "detach_copy")
def detach(x: Any) -> Any:
    """Returns a tensor whose derivative is stopped."""
    return ops.stop_gradient(x)


@aten("clone", "alias", "alias_copy", "contiguous", "lift_fresh", "lift_fresh_copy", "positive", "resolve_conj")
def identity(x: Any) -> Any:
    """Returns the tensor unchanged, for operators that only change PyTorch's memory, such as `contiguous`."""
    return x


@aten("resolve_neg", "view_as")
def view_as(x: Any, other: Any = None) -> Any:
    """Returns a tensor reshaped to the shape of another one."""
    return x if other is None else ops.reshape(x, tuple(other.shape))


@aten("_to_copy", "to")
def to(x: Any, dtype: Any = None, copy: bool = False) -> Any:
    """Returns a tensor cast to a dtype."""
    return x if dtype is None else ops.cast(x, dtype)


@register_names("prims.convert_element_type")
def convert_element_type(x: Any, dtype: Any) -> Any:
    """Returns a tensor cast to a dtype."""
    return ops.cast(x, dtype)


@aten("type_as")
def type_as(x: Any, other: Any) -> Any:
    """Returns a tensor cast to the dtype of another one."""
    return ops.cast(x, ops.dtype(other))


@aten("item", "_local_scalar_dense")
def item(x: Any) -> Any:
    """Returns the only element of a tensor as a Python number."""
    return ops.to_numpy(x).item()


@aten("copy")
def copy(x: Any, source: Any, non_blocking: bool = False) -> Any:
    """Returns the elements of `source`, broadcast to the shape and cast to the dtype of `x`."""
    return ops.broadcast_to(ops.cast(source, ops.dtype(x)), tuple(x.shape))
