"""Which ops make no NaN and no infinity of finite numbers, so that their results need no check."""

from emberharmony.core.registry import OpSpec

_CATEGORIES = frozenset(
    ("shape", "comparison", "bitwise", "indexing", "creation", "device", "random", "sorting", "writing", "rearranging")
)
_OPS = frozenset(
    (
        *("convert_to_tensor", "array", "view", "copy", "from_dlpack", "to_numpy", "eval", "synchronize"),
        "program",  # which `NonFinite.accepts` looks at
        *(
            "negative",
            "positive",
            "absolute",
            "sign",
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "clip",
            "heaviside",
            "step",
        ),
        *("floor", "ceil", "trunc", "round", "nan_to_num", "copysign", "fabs", "signbit", "saturate_cast"),
        *("max", "min", "any", "all", "argmax", "argmin", "cummax", "cummin", "count_nonzero"),
        *("real", "imag", "conj", "view_as_complex", "view_as_real", "max_pool", "adaptive_max_pool", "embedding"),
        *("relu", "relu6", "sigmoid", "hard_sigmoid", "hard_tanh", "hard_shrink", "soft_shrink", "threshold"),
        *("sin", "cos", "tanh", "arctan", "erf", "erfc", "arcsinh", "stop_gradient", "divide_no_nan", "rope"),
    )
)
_GRADIENTS = frozenset(("add", "subtract", "sum", "mean", "cast", "astype"))
"""Further ops whose gradients make none."""

_SAFE: dict[OpSpec, bool] = {}


def is_safe(spec: OpSpec) -> bool:
    """Returns whether an op makes only finite numbers of finite numbers, or only numbers that were given."""
    found = _SAFE.get(spec)
    if found is None:
        found = _SAFE[spec] = spec.category in _CATEGORIES or spec.name in _OPS
    return found


def is_safe_backward(spec: OpSpec) -> bool:
    """Returns whether the gradients of an op are sums or bounded multiples of the gradient that comes in."""
    return is_safe(spec) or spec.name in _GRADIENTS
