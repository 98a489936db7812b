"""Why an op makes a NaN or an infinity of finite numbers: the likely cause, read from its arguments."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

Operands = Mapping[str, Any]
"""By the name of an argument, its `Numbers`."""

LARGEST = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float64": 1.8e308}
"""The largest number of a dtype, rounded down."""


class Faulty(NamedTuple):
    """A call of an op, or of its gradient rule, that made NaN or infinities.

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


def _register_cause(*ops: str) -> Callable[[Cause], Cause]:
    """Returns a decorator of a cause that some ops may have; one that is defined earlier is likelier."""

    def decorate(cause: Cause) -> Cause:
        for op in ops:
            _CAUSES.setdefault(op, []).append(cause)
        return cause

    return decorate


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else noun + ('es' if noun.endswith('o') and noun != 'zero' else 's')}"


def _zeros_text(operands: Operands, names: Iterable[str]) -> str:
    for name in names:
        operand = operands.get(name)
        if operand is not None and operand.zero:
            return f"{name} holds {_count_text(operand.zero, 'zero')}"
    return ""


def _negatives_text(operands: Operands, names: Iterable[str]) -> str:
    for name in names:
        operand = operands.get(name)
        if operand is not None and operand.negative:
            return f"{name} holds {_count_text(operand.negative, 'negative number')}"
    return ""


def _overflow_cause(operands: Operands, dtype: str, growing: bool = False) -> str:
    """Returns the cause if an argument is large enough that a product, or an exponential function, may overflow."""
    largest_number = LARGEST.get(dtype)
    if not operands or largest_number is None:
        return ""
    name, operand = max(operands.items(), key=lambda item: item[1].largest)
    if operand.largest < (10 if growing else largest_number**0.4):
        return ""
    return f"overflow of {dtype}, whose largest number is {largest_number:.4g}: max|{name}| is {operand.largest:.4g}"


def _infinities_text(operands: Operands) -> str:
    infinity_texts = [
        f"{name} holds {operand.infinite} infinit{'y' if operand.infinite == 1 else 'ies'}"
        for name, operand in operands.items()
        if operand.infinite
    ]
    return " and ".join(infinity_texts)


@_register_cause("mean", "var", "std", "average", "moments", "median", "quantile")
def _empty_cause(call: Faulty) -> str:
    return "there are no elements to average" if any(not x.size for x in call.operands.values()) else ""


@_register_cause("divide", "floor_divide", "mod", "fmod", "divmod", "remainder")
def _division_cause(call: Faulty) -> str:
    return _zeros_text(call.operands, ("x2", "y", *list(call.operands)[1:]))


@_register_cause("reciprocal", "rsqrt")
def _inverse_cause(call: Faulty) -> str:
    return _zeros_text(call.operands, call.operands)


@_register_cause("log", "log2", "log10")
def _logarithm_cause(call: Faulty) -> str:
    return (_negatives_text if call.nan and not call.backward else _zeros_text)(call.operands, call.operands)


@_register_cause("log1p")
def _log1p_cause(call: Faulty) -> str:
    return "x holds numbers of -1 and below" if call.operands else ""


@_register_cause("logit", "ndtri")
def _outside_0_to_1_cause(call: Faulty) -> str:
    return "x holds numbers outside of the open interval from 0 to 1"


@_register_cause("sqrt", "rsqrt", "gammaln", "arccosh")
def _negative_cause(call: Faulty) -> str:
    return _negatives_text(call.operands, call.operands) if call.nan else ""


@_register_cause("arccosh")
def _below_one_cause(call: Faulty) -> str:
    return "x holds numbers below 1"


@_register_cause("arcsin", "arccos", "arctanh", "erfinv")
def _beyond_one_cause(call: Faulty) -> str:
    range_text = "beyond 1" if call.op in ("arcsin", "arccos") else "of 1 and beyond"
    for name, operand in call.operands.items():
        if operand.largest >= 1:
            return f"{name} holds magnitudes {range_text}, up to {operand.largest:.4g}"
    return ""


@_register_cause("power")
def _power_cause(call: Faulty) -> str:
    if call.backward:
        return ""
    negatives_text, zeros_text = _negatives_text(call.operands, ("x1",)), _zeros_text(call.operands, ("x1",))
    if negatives_text:
        return f"{negatives_text}, raised to a fraction"
    return f"{zeros_text}, raised to a negative number" if zeros_text else ""


@_register_cause("layer_normalization", "rms_normalization", "batch_normalization", "group_normalization", "normalize")
def _no_variance_cause(call: Faulty) -> str:
    return "the variance is 0 and the epsilon too" if call.operands else ""


@_register_cause(
    "sqrt", "rsqrt", "norm", "vector_norm", "matrix_norm", "cdist", "std", "hypot", "cbrt", "power", "logsumexp"
)
def _infinite_slope_cause(call: Faulty) -> str:
    """Returns the cause of ops whose gradient is infinite, or 0 / 0, at 0."""
    return _zeros_text(call.operands, call.operands) if call.backward else ""


@_register_cause("exp", "exp2", "expm1", "sinh", "cosh", "softplus", "logaddexp", "silu", "elu", "selu", "i0")
def _exponential_cause(call: Faulty) -> str:
    return "" if call.nan else _overflow_cause(call.operands, call.dtype, growing=True)


def _infinity_cause(call: Faulty) -> str:
    """Returns the cause of a NaN made of arguments that hold infinities; "" if they hold none."""
    infinities_text = _infinities_text(call.operands)
    if not infinities_text:
        return ""
    if call.op in ("softmax", "log_softmax", "sparsemax", "dot_product_attention", "cross_entropy"):
        return f"{infinities_text}, and a row of nothing but -inf has no softmax"
    zeros_text = _zeros_text(call.operands, call.operands)
    return f"{infinities_text}, and {zeros_text} (0 * inf)" if zeros_text else f"{infinities_text} (inf - inf)"


def _general_cause(call: Faulty) -> str:
    """Returns the cause that any op may have."""
    zeros_text = _zeros_text(call.operands, call.operands)
    return (zeros_text if call.nan or call.backward else "") or _overflow_cause(call.operands, call.dtype)


def likely_cause(call: Faulty) -> str:
    """Returns the likely cause, such as "x2 holds 3 zeros"; "" if none is known."""
    causes = (_infinity_cause, *_CAUSES.get(call.op, ()), _general_cause)
    return next(filter(None, (cause(call) for cause in causes)), "")
