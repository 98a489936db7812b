"""Why an op makes a NaN or an infinity of finite numbers: the likely cause, read from its arguments."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Operands = Mapping[str, Any]
"""By the name of an argument, its `Numbers`."""

LARGEST = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float64": 1.8e308}
"""The largest number of a dtype, rounded down."""

_DIVISIONS = frozenset(("divide", "floor_divide", "mod", "fmod", "divmod", "remainder"))
_INVERSES = frozenset(("reciprocal", "rsqrt"))
_LOGS = frozenset(("log", "log2", "log10"))
_UNIT = {"arcsin": "beyond 1", "arccos": "beyond 1", "arctanh": "of 1 and beyond", "erfinv": "of 1 and beyond"}
_GROWING = frozenset(("exp", "exp2", "expm1", "sinh", "cosh", "softplus", "logaddexp", "silu", "elu", "selu", "i0"))
_MASKED = frozenset(("softmax", "log_softmax", "dot_product_attention", "cross_entropy", "sparsemax"))
_EMPTY = frozenset(("mean", "var", "std", "average", "moments", "median", "quantile"))
_NORMS = frozenset(
    ("layer_normalization", "rms_normalization", "batch_normalization", "group_normalization", "normalize")
)
_STEEP = frozenset(
    ("sqrt", "rsqrt", "norm", "vector_norm", "matrix_norm", "cdist", "std", "hypot", "cbrt", "power", "logsumexp")
)
"""Ops whose gradient is infinite, or 0 / 0, at 0."""


def _several(count: int, one: str) -> str:
    return f"{count} {one if count == 1 else one + ('es' if one.endswith('o') and one != 'zero' else 's')}"


def _zeros(operands: Operands, names: Iterable[str]) -> str:
    for name in names:
        found = operands.get(name)
        if found is not None and found.zero:
            return f"{name} holds {_several(found.zero, 'zero')}"
    return ""


def _negatives(operands: Operands, names: Iterable[str]) -> str:
    for name in names:
        found = operands.get(name)
        if found is not None and found.negative:
            return f"{name} holds {_several(found.negative, 'negative number')}"
    return ""


def _beyond_one(op: str, operands: Operands) -> str:
    for name, found in operands.items():
        if found.largest >= 1:
            return f"{name} holds magnitudes {_UNIT[op]}, up to {found.largest:.4g}"
    return ""


def _overflow(operands: Operands, dtype: str, growing: bool = False) -> str:
    """Returns the cause if an argument is large enough that a product, or an exponential function, may overflow."""
    limit = LARGEST.get(dtype)
    if not operands or limit is None:
        return ""
    name, found = max(operands.items(), key=lambda item: item[1].largest)
    if found.largest < (10 if growing else limit**0.4):
        return ""
    return f"overflow of {dtype}, whose largest number is {limit:.4g}: max|{name}| is {found.largest:.4g}"


def _infinities(operands: Operands) -> str:
    held = [
        f"{name} holds {found.infinite} infinit{'y' if found.infinite == 1 else 'ies'}"
        for name, found in operands.items()
        if found.infinite
    ]
    return " and ".join(held)


def _power(operands: Operands) -> str:
    negative, zero = _negatives(operands, ("x1",)), _zeros(operands, ("x1",))
    if negative:
        return f"{negative}, raised to a fraction"
    return f"{zero}, raised to a negative number" if zero else ""


def likely_cause(op: str, operands: Operands, nan: bool, dtype: str, backward: bool) -> str:
    """Returns the likely cause, such as "x2 holds 3 zeros"; "" if none is known.

    Args:
        op: the op.
        operands: the arguments, and in the backward pass also the result and the incoming gradient.
        nan: whether it made NaN; otherwise it made infinities.
        dtype: the name of the dtype of the result.
        backward: whether the op of the backward pass made it.
    """
    every = list(operands)
    rows: list[tuple[bool, Callable[[], str]]] = [
        (any(found.infinite for found in operands.values()), lambda: _by_infinity(op, operands)),
        (
            op in _EMPTY,
            lambda: "there are no elements to average" if any(not x.size for x in operands.values()) else "",
        ),
        (op in _DIVISIONS, lambda: _zeros(operands, ("x2", "y", *every[1:]))),
        (op in _INVERSES, lambda: _zeros(operands, every)),
        (op in _LOGS, lambda: _negatives(operands, every) if nan and not backward else _zeros(operands, every)),
        (op == "log1p", lambda: "x holds numbers of -1 and below" if operands else ""),
        (op in ("logit", "ndtri"), lambda: "x holds numbers outside of the open interval from 0 to 1"),
        (op in ("sqrt", "rsqrt", "gammaln", "arccosh"), lambda: _negatives(operands, every) if nan else ""),
        (op == "arccosh", lambda: "x holds numbers below 1"),
        (op in _UNIT, lambda: _beyond_one(op, operands)),
        (op == "power" and not backward, lambda: _power(operands)),
        (op in _NORMS, lambda: "the variance is 0 and the epsilon too" if operands else ""),
        (backward and op in _STEEP, lambda: _zeros(operands, every)),
        (op in _GROWING, lambda: "" if nan else _overflow(operands, dtype, True)),
        (not nan, lambda: _overflow(operands, dtype) if not (backward and _zeros(operands, every)) else ""),
        (backward or nan, lambda: _zeros(operands, every)),
        (nan, lambda: _overflow(operands, dtype)),
    ]
    return next(filter(None, (cause() for holds, cause in rows if holds)), "")


def _by_infinity(op: str, operands: Operands) -> str:
    """Returns the cause where arguments hold infinities, which are no NaN."""
    held = _infinities(operands)
    if op in _MASKED:
        return f"{held}, and a row of nothing but -inf has no softmax"
    zero = _zeros(operands, operands)
    return f"{held}, and {zero} (0 * inf)" if zero else f"{held} (inf - inf)"
