"""Batching rules of the ops that compute each element on its own, of all categories."""

from typing import Any

from emberharmony.rules.batching.forms import Rule, aligned, elementwise
from emberharmony.transforms.batch import Mapped, Rows

T = Any

_NAMES = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isclose"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"),
    *("add", "subtract", "multiply", "divide", "floor_divide", "mod", "fmod", "power", "divide_no_nan", "negative"),
    *("positive", "absolute", "sign", "square", "reciprocal", "sqrt", "rsqrt", "hypot", "maximum", "minimum", "fmax"),
    *("fmin", "heaviside", "gcd", "floor", "ceil", "trunc", "round", "nan_to_num", "copysign", "signbit"),
    *("nextafter", "ldexp", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh"),
    *("arctanh", "cbrt", "erf", "erfc", "erfinv", "i0", "real", "imag", "conj"),
    *("gammaln", "digamma", "polygamma", "zeta", "gammainc", "gammaincc", "beta", "betaln", "betainc", "xlogy"),
    *("xlog1py", "erfcx", "ndtr", "log_ndtr", "ndtri", "i0e", "i1", "i1e"),
    *("leaky_relu", "elu", "sigmoid", "log_sigmoid", "softplus", "silu", "gelu"),
    *("cast", "copy", "to_device", "convert_to_tensor", "stop_gradient", "where"),
    "empty_like",
)


def _all_close(m: Mapped, *arguments: Any) -> T:
    close = m.bound.isclose(*aligned(m, arguments))
    return m.bound.all(m.bound.reshape(close, (m.size, -1)), axis=1) if close.size else NotImplemented


def _full_like(m: Mapped, x: Any, value: Any, *options: Any) -> T:
    return NotImplemented if value.__class__ is Rows else m(x.whole, value, *options)


RULES: dict[str, Rule] = {
    **dict.fromkeys(_NAMES, elementwise),
    "allclose": _all_close,
    "full_like": _full_like,
}
