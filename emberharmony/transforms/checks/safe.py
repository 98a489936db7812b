"""Which ops make no NaN and no infinity of finite numbers, so that their results need no check.

Their declarations say so (`@op(finite="yes")`), but for whole categories, whose exceptions say
`finite="no"` or "gradient".

`tests/transforms/checks/test_safe.py` calls each of them with the largest and the smallest numbers of the dtypes. A
Python number that is too large for the dtype counts as an infinity that was given.
"""

from emberharmony.core.registry import OpSpec

_CATEGORIES = frozenset(
    ("shape", "comparison", "bitwise", "indexing", "creation", "device", "random", "sorting", "writing", "rearranging")
)
_SAFE: dict[OpSpec, bool] = {}


def is_safe(spec: OpSpec) -> bool:
    """Returns whether an op makes only finite numbers of finite numbers, or only numbers that were given."""
    is_safe_op = _SAFE.get(spec)
    if is_safe_op is None:
        is_declared_safe = spec.facts.finite == "yes" or spec.name == "program"  # which `NonFinite.accepts` looks at
        is_safe_op = _SAFE[spec] = is_declared_safe or (spec.category in _CATEGORIES and not spec.facts.finite)
    return is_safe_op


def is_safe_backward(spec: OpSpec) -> bool:
    """Returns whether the gradients of an op are sums or bounded multiples of the gradient that comes in."""
    return is_safe(spec) or spec.facts.finite == "gradient"
