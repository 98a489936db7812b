"""Which ops make no NaN and no infinity of finite numbers, so that their results need no check.

`tests/transforms/checks/test_safe.py` calls each of them with the largest and the smallest numbers of the dtypes. A
Python number that is too large for the dtype counts as an infinity that was given.
"""

from emberharmony.core.registry import OpSpec

_CATEGORIES = frozenset(
    ("shape", "comparison", "bitwise", "indexing", "creation", "device", "random", "sorting", "writing", "rearranging")
)
_OVERFLOWING = frozenset(
    (
        *("logspace", "geomspace", "vander", "kaiser", "random_normal", "random_uniform", "dropout"),
        *("scatter", "scatter_update", "set_item", "put_along_axis"),  # which can add and multiply
    )
)
"""Ops of these categories that can overflow."""

_OPS = frozenset(
    (
        *("convert_to_tensor", "array", "view", "copy", "from_dlpack", "to_numpy", "eval", "synchronize"),
        "program",  # which `NonFinite.accepts` looks at
        *("negative", "positive", "maximum", "minimum", "fmax", "fmin", "clip", "heaviside", "step"),
        *("floor", "ceil", "trunc", "nan_to_num", "copysign", "fabs", "signbit", "saturate_cast"),
        *("max", "min", "any", "all", "argmax", "argmin", "cummax", "cummin", "count_nonzero"),
        *("real", "imag", "conj", "view_as_complex", "view_as_real", "max_pool", "adaptive_max_pool", "embedding"),
        *("relu", "relu6", "sigmoid", "hard_sigmoid", "hard_tanh", "hard_shrink", "soft_shrink", "threshold"),
        *("tanh", "erf", "erfc", "stop_gradient"),
    )
)
_GRADIENTS = frozenset(
    ("add", "subtract", "sum", "mean", "cast", "astype", "round", "scatter", "put_along_axis", "dropout")
)
"""Further ops whose gradients make none."""

_SAFE: dict[OpSpec, bool] = {}


def is_safe(spec: OpSpec) -> bool:
    """Returns whether an op makes only finite numbers of finite numbers, or only numbers that were given."""
    found = _SAFE.get(spec)
    if found is None:
        listed = spec.name in _OPS or (spec.category in _CATEGORIES and spec.name not in _OVERFLOWING)
        found = _SAFE[spec] = listed
    return found


def is_safe_backward(spec: OpSpec) -> bool:
    """Returns whether the gradients of an op are sums or bounded multiples of the gradient that comes in."""
    return is_safe(spec) or spec.name in _GRADIENTS
