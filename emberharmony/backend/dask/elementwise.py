"""Elementwise ops, on Dask: NumPy's, block by block; a composite such as `gelu` is one call for each block."""

from collections.abc import Callable
from functools import partial
from typing import Any

from emberharmony.backend.dask.blocks import elementwise

NAMES = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or"),
    *("logical_xor", "logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "isclose", "where"),
    *("add", "subtract", "multiply", "divide", "floor_divide", "mod", "fmod", "power", "divide_no_nan", "negative"),
    *("positive", "absolute", "sign", "square", "reciprocal", "sqrt", "rsqrt", "hypot", "maximum", "minimum", "fmax"),
    *("fmin", "clip", "step", "heaviside", "gcd", "lcm", "floor", "ceil", "trunc", "round", "nan_to_num", "copysign"),
    *("fabs", "signbit", "nextafter", "ldexp", "saturate_cast", "exp", "expm1", "exp2", "log", "log1p", "log2"),
    *("log10", "logaddexp", "logaddexp2", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh"),
    *("cosh", "tanh", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg", "cbrt", "sinc", "erf", "erfc", "erfinv"),
    *("i0", "real", "imag", "conj", "angle", "isreal", "iscomplex", "polar", "relu", "relu6", "leaky_relu", "elu"),
    *("selu", "celu", "sigmoid", "log_sigmoid", "softplus", "softsign", "silu", "gelu", "hard_sigmoid", "hard_silu"),
    *("hard_tanh", "hard_shrink", "soft_shrink", "tanh_shrink", "threshold", "squareplus", "sparse_plus"),
    *("sparse_sigmoid", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift"),
    *("bitwise_right_shift", "gammaln", "digamma", "polygamma", "zeta", "gammainc", "gammaincc", "beta", "betaln"),
    *("betainc", "xlogy", "xlog1py", "entr", "erfcx", "ndtr", "log_ndtr", "ndtri", "logit", "i0e", "i1", "i1e"),
)
"""The ops whose results depend on the elements at one place only."""


def _bound(name: str) -> Callable[..., Any]:
    return staticmethod(partial(elementwise, name))


DaskElementwiseOps: Any = type("DaskElementwiseOps", (), {name: _bound(name) for name in NAMES} | {"__doc__": __doc__})
"""The mixin that holds these ops."""
