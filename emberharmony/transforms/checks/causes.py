"""Why an op makes a NaN or an infinity of finite numbers: the likely cause, read from its arguments."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

Operands = Mapping[str, Any]
"""By the name of an argument, its `Numbers`."""

LARGEST = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float64": 1.8e308}
"""The largest number of a dtype, rounded down."""


class Faulty(NamedTuple):
    """What made NaN or infinities.

    Attributes:
        op: the op.
        operands: the arguments, and in the backward pass also the result and the incoming gradient.
        nan: whether it made NaN; otherwise it made infinities.
        dtype: the name of the dtype of the result.
        backward: whether the op of the backward pass made it.
    """

    op: str
    operands: Operands
    nan: bool
    dtype: str
    backward: bool


Cause: TypeAlias = Callable[[Faulty], str]
"""Returns the likely cause, such as "x2 holds 3 zeros"; "" if it is not this one."""

_CAUSES: dict[str, list[Cause]] = {}
"""By op, the causes that it may have, the likeliest first."""


def _cause_of(*ops: str) -> Callable[[Cause], Cause]:
    """Returns a decorator of a cause that some ops may have; one that is defined earlier is likelier."""

    def decorate(cause: Cause) -> Cause:
        for op in ops:
            _CAUSES.setdefault(op, []).append(cause)
        return cause

    return decorate


def _plural(count: int, one: str) -> str:
    return f"{count} {one if count == 1 else one + ('es' if one.endswith('o') and one != 'zero' else 's')}"


def _zeros(operands: Operands, names: Iterable[str]) -> str:
    for name in names:
        operand = operands.get(name)
        if operand is not None and operand.zero:
            return f"{name} holds {_plural(operand.zero, 'zero')}"
    return ""


def _negatives(operands: Operands, names: Iterable[str]) -> str:
    for name in names:
        operand = operands.get(name)
        if operand is not None and operand.negative:
            return f"{name} holds {_plural(operand.negative, 'negative number')}"
    return ""


def _overflow(operands: Operands, dtype: str, growing: bool = False) -> str:
    """Returns the cause if an argument is large enough that a product, or an exponential function, may overflow."""
    limit = LARGEST.get(dtype)
    if not operands or limit is None:
        return ""
    name, operand = max(operands.items(), key=lambda item: item[1].largest)
    if operand.largest < (10 if growing else limit**0.4):
        return ""
    return f"overflow of {dtype}, whose largest number is {limit:.4g}: max|{name}| is {operand.largest:.4g}"


def _infinities(operands: Operands) -> str:
    texts = [
        f"{name} holds {operand.infinite} infinit{'y' if operand.infinite == 1 else 'ies'}"
        for name, operand in operands.items()
        if operand.infinite
    ]
    return " and ".join(texts)


@_cause_of("mean", "var", "std", "average", "moments", "median", "quantile")
def _empty(call: Faulty) -> str:
    return "there are no elements to average" if any(not x.size for x in call.operands.values()) else ""


@_cause_of("divide", "floor_divide", "mod", "fmod", "divmod", "remainder")
def _division(call: Faulty) -> str:
    return _zeros(call.operands, ("x2", "y", *list(call.operands)[1:]))


@_cause_of("reciprocal", "rsqrt")
def _inverse(call: Faulty) -> str:
    return _zeros(call.operands, call.operands)


@_cause_of("log", "log2", "log10")
def _logarithm(call: Faulty) -> str:
    return (_negatives if call.nan and not call.backward else _zeros)(call.operands, call.operands)


@_cause_of("log1p")
def _log1p(call: Faulty) -> str:
    return "x holds numbers of -1 and below" if call.operands else ""


@_cause_of("logit", "ndtri")
def _outside_0_to_1(call: Faulty) -> str:
    return "x holds numbers outside of the open interval from 0 to 1"


@_cause_of("sqrt", "rsqrt", "gammaln", "arccosh")
def _negative(call: Faulty) -> str:
    return _negatives(call.operands, call.operands) if call.nan else ""


@_cause_of("arccosh")
def _below_one(call: Faulty) -> str:
    return "x holds numbers below 1"


@_cause_of("arcsin", "arccos", "arctanh", "erfinv")
def _beyond_one(call: Faulty) -> str:
    range_text = "beyond 1" if call.op in ("arcsin", "arccos") else "of 1 and beyond"
    for name, operand in call.operands.items():
        if operand.largest >= 1:
            return f"{name} holds magnitudes {range_text}, up to {operand.largest:.4g}"
    return ""


@_cause_of("power")
def _power(call: Faulty) -> str:
    if call.backward:
        return ""
    negative, zero = _negatives(call.operands, ("x1",)), _zeros(call.operands, ("x1",))
    if negative:
        return f"{negative}, raised to a fraction"
    return f"{zero}, raised to a negative number" if zero else ""


@_cause_of("layer_normalization", "rms_normalization", "batch_normalization", "group_normalization", "normalize")
def _no_variance(call: Faulty) -> str:
    return "the variance is 0 and the epsilon too" if call.operands else ""


@_cause_of("sqrt", "rsqrt", "norm", "vector_norm", "matrix_norm", "cdist", "std", "hypot", "cbrt", "power", "logsumexp")
def _infinite_slope(call: Faulty) -> str:
    """Returns the cause of ops whose gradient is infinite, or 0 / 0, at 0."""
    return _zeros(call.operands, call.operands) if call.backward else ""


@_cause_of("exp", "exp2", "expm1", "sinh", "cosh", "softplus", "logaddexp", "silu", "elu", "selu", "i0")
def _growing(call: Faulty) -> str:
    return "" if call.nan else _overflow(call.operands, call.dtype, growing=True)


def _by_infinity(call: Faulty) -> str:
    """Returns the cause where arguments hold infinities, which are no NaN."""
    texts = _infinities(call.operands)
    if not texts:
        return ""
    if call.op in ("softmax", "log_softmax", "sparsemax", "dot_product_attention", "cross_entropy"):
        return f"{texts}, and a row of nothing but -inf has no softmax"
    zero = _zeros(call.operands, call.operands)
    return f"{texts}, and {zero} (0 * inf)" if zero else f"{texts} (inf - inf)"


def _of_any(call: Faulty) -> str:
    """Returns the cause that any op may have."""
    zero = _zeros(call.operands, call.operands)
    return (zero if call.nan or call.backward else "") or _overflow(call.operands, call.dtype)


def likely_cause(call: Faulty) -> str:
    """Returns the likely cause, such as "x2 holds 3 zeros"; "" if none is known."""
    causes = (_by_infinity, *_CAUSES.get(call.op, ()), _of_any)
    return next(filter(None, (cause(call) for cause in causes)), "")
