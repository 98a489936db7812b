"""Checks of the special cases of real numbers, in the words of the standard: NaN, infinities, signed zeros.

`0` and `-0` differ. On the right of an arrow, `nan` is a NaN of any sign, `?` before a number leaves its sign open, and
`|` separates two results that are both right. Numbers with `pi` are approximate. A rule for a range of numbers is
written for some numbers of that range.
"""

import math
import re
from collections.abc import Iterator
from itertools import product

import numpy as np

from emberharmony import ops
from tests.standard.harness import Check, array, supported

_SAME = "nan -> nan; 0 -> 0; -0 -> -0; inf -> inf; -inf -> -inf"
_ROUNDED = f"{_SAME}; 3 -> 3; -3 -> -3"
_LOG = "nan -> nan; -1 -> nan; -inf -> nan; 0 -> -inf; -0 -> -inf; 1 -> 0; inf -> inf"

UNARY = {
    "abs": "nan -> nan; -0 -> 0; -inf -> inf; inf -> inf; 0 -> 0",
    "acos": "nan -> nan; 1.5 -> nan; inf -> nan; -1.5 -> nan; -inf -> nan; 1 -> 0",
    "acosh": "nan -> nan; 0.5 -> nan; -1 -> nan; -inf -> nan; 1 -> 0; inf -> inf",
    "asin": "nan -> nan; 1.5 -> nan; inf -> nan; -1.5 -> nan; -inf -> nan; 0 -> 0; -0 -> -0",
    "asinh": _SAME,
    "atan": "nan -> nan; 0 -> 0; -0 -> -0; inf -> pi/2; -inf -> -pi/2",
    "atanh": "nan -> nan; -1.5 -> nan; 1.5 -> nan; -inf -> nan; inf -> nan; -1 -> -inf; 1 -> inf; 0 -> 0; -0 -> -0",
    "ceil": _ROUNDED,
    "cos": "nan -> nan; 0 -> 1; -0 -> 1; inf -> nan; -inf -> nan",
    "cosh": "nan -> nan; 0 -> 1; -0 -> 1; inf -> inf; -inf -> inf",
    "exp": "nan -> nan; 0 -> 1; -0 -> 1; inf -> inf; -inf -> 0",
    "expm1": "nan -> nan; 0 -> 0; -0 -> -0; inf -> inf; -inf -> -1",
    "floor": _ROUNDED,
    "isfinite": "inf -> False; -inf -> False; nan -> False; 1 -> True; -0 -> True",
    "isinf": "inf -> True; -inf -> True; nan -> False; 1 -> False; -0 -> False",
    "isnan": "nan -> True; inf -> False; -inf -> False; 1 -> False; -0 -> False",
    "log": _LOG,
    "log1p": "nan -> nan; -2 -> nan; -inf -> nan; -1 -> -inf; -0 -> -0; 0 -> 0; inf -> inf",
    "log2": _LOG,
    "log10": _LOG,
    "negative": "nan -> nan; 0 -> -0; -0 -> 0; inf -> -inf; -inf -> inf",
    "positive": _SAME,
    "reciprocal": "nan -> nan; 0 -> inf; -0 -> -inf; inf -> 0; -inf -> -0",
    "round": f"{_ROUNDED}; 0.5 -> 0; 1.5 -> 2; 2.5 -> 2; -1.5 -> -2; -2.5 -> -2",
    "sign": "-3 -> -1; -inf -> -1; -0 -> ?0; 0 -> ?0; 3 -> 1; inf -> 1; nan -> nan",
    "signbit": "0 -> False; -0 -> True; inf -> False; -inf -> True; 2 -> False; -2 -> True; nan -> False; -nan -> True",
    "sin": "nan -> nan; 0 -> 0; -0 -> -0; inf -> nan; -inf -> nan",
    "sinh": _SAME,
    "sqrt": "nan -> nan; -1 -> nan; -inf -> nan; 0 -> 0; -0 -> -0; inf -> inf",
    "square": "nan -> nan; 0 -> 0; -0 -> 0; inf -> inf; -inf -> inf",
    "tan": "nan -> nan; 0 -> 0; -0 -> -0; inf -> nan; -inf -> nan",
    "tanh": "nan -> nan; 0 -> 0; -0 -> -0; inf -> 1; -inf -> -1",
    "trunc": _ROUNDED,
}
_ADDED = """
inf,-inf -> nan; -inf,inf -> nan; inf,inf -> inf; -inf,-inf -> -inf; inf,2 -> inf; -inf,2 -> -inf; 2,inf -> inf;
2,-inf -> -inf; -0,-0 -> -0; -0,0 -> 0; 0,-0 -> 0; 0,0 -> 0; 0,2 -> 2; -0,2 -> 2; 2,0 -> 2; 2,-0 -> 2; 2,-2 -> 0
"""
_COMPARED = "inf,inf -> {}; -inf,-inf -> {}; -0,0 -> {}; -0,-0 -> {}; 0,0 -> {}; 0,-0 -> {}; 2,2 -> {}"
_UNEQUAL = "nan,1 -> {0}; 1,nan -> {0}; nan,nan -> {0}; inf,-inf -> {0}; -inf,inf -> {0}; 1,2 -> {0}"

BINARY = {
    "add": _ADDED,
    # x1 - x2 is x1 + (-x2).
    "subtract": re.sub(r",(-?)(\S+) ->", lambda m: f",{'' if m[1] else '-'}{m[2]} ->", _ADDED),
    "atan2": """
    2,0 -> pi/2; 2,-0 -> pi/2; 0,2 -> 0; 0,0 -> 0; 0,-0 -> pi; 0,-2 -> pi; -0,2 -> -0; -0,0 -> -0; -0,-0 -> -pi;
    -0,-2 -> -pi; -2,0 -> -pi/2; -2,-0 -> -pi/2; 2,inf -> 0; 2,-inf -> pi; -2,inf -> -0; -2,-inf -> -pi; inf,2 -> pi/2;
    inf,-2 -> pi/2; -inf,2 -> -pi/2; -inf,-2 -> -pi/2; inf,inf -> pi/4; inf,-inf -> 3pi/4; -inf,inf -> -pi/4;
    -inf,-inf -> -3pi/4""",
    "copysign": """
    3,-2 -> -3; -3,-2 -> -3; 3,-0 -> -3; -3,0 -> 3; 3,0 -> 3; -3,2 -> 3; 3,-nan -> -3; -3,nan -> 3; inf,-1 -> -inf;
    0,-1 -> -0; -0,1 -> 0""",
    "divide": """
    inf,inf -> nan; inf,-inf -> nan; -inf,inf -> nan; -inf,-inf -> nan; 0,0 -> nan; 0,-0 -> nan; -0,0 -> nan;
    -0,-0 -> nan; 0,2 -> 0; -0,2 -> -0; 0,-2 -> -0; -0,-2 -> 0; 2,0 -> inf; 2,-0 -> -inf; -2,0 -> -inf; -2,-0 -> inf;
    inf,2 -> inf; inf,-2 -> -inf; -inf,2 -> -inf; -inf,-2 -> inf; 2,inf -> 0; -2,-inf -> 0; 2,-inf -> -0;
    -2,inf -> -0""",
    # For an infinite operand, the standard lets a library follow Python, and prefers this.
    "floor_divide": """
    inf,inf -> nan; inf,-inf -> nan; -inf,inf -> nan; -inf,-inf -> nan; 0,0 -> nan; 0,-0 -> nan; -0,0 -> nan;
    -0,-0 -> nan; 0,2 -> 0; -0,2 -> -0; 0,-2 -> -0; -0,-2 -> 0; 2,0 -> inf; 2,-0 -> -inf; -2,0 -> -inf; -2,-0 -> inf;
    inf,2 -> inf; inf,-2 -> -inf; -inf,2 -> -inf; -inf,-2 -> inf; 2,inf -> 0; -2,-inf -> 0; 2,-inf -> -0;
    -2,inf -> -0; 7,2 -> 3; -7,2 -> -4; 7,-2 -> -4; -7,-2 -> 3; 1,2 -> 0; -1,-2 -> 0""",
    "hypot": """
    inf,2 -> inf; -inf,2 -> inf; inf,nan -> inf; -inf,nan -> inf; nan,inf -> inf; nan,-inf -> inf; 2,inf -> inf;
    0,3 -> 3; -0,-3 -> 3; 3,0 -> 3; -3,-0 -> 3; 0,0 -> 0; -0,-0 -> 0; 2,nan -> nan; nan,2 -> nan; nan,nan -> nan""",
    "logaddexp": "inf,2 -> inf; inf,-inf -> inf; inf,inf -> inf; 2,inf -> inf; -inf,inf -> inf; -inf,-inf -> -inf",
    "maximum": "1,2 -> 2; inf,1 -> inf; -inf,1 -> 1",
    "minimum": "1,2 -> 1; inf,1 -> 1; -inf,1 -> -inf",
    "multiply": """
    inf,0 -> nan; inf,-0 -> nan; -inf,0 -> nan; -inf,-0 -> nan; 0,inf -> nan; -0,inf -> nan; 0,-inf -> nan;
    -0,-inf -> nan; 0,2 -> 0; -0,2 -> -0; 0,-2 -> -0; -0,-2 -> 0; 0,0 -> 0; 0,-0 -> -0; -0,-0 -> 0; inf,inf -> inf;
    inf,-inf -> -inf; -inf,-inf -> inf; inf,2 -> inf; inf,-2 -> -inf; -inf,2 -> -inf; 2,inf -> inf; -2,inf -> -inf""",
    "nextafter": "-0,0 -> 0; 0,-0 -> -0; 1,1 -> 1; inf,inf -> inf",
    "pow": """
    2,nan -> nan; 0,nan -> nan; 3,0 -> 1; 3,-0 -> 1; nan,0 -> 1; nan,-0 -> 1; inf,0 -> 1; nan,2 -> nan; nan,inf -> nan;
    2,inf -> inf; -2,inf -> inf; inf,inf -> inf; -inf,inf -> inf; 2,-inf -> 0; -2,-inf -> 0; -inf,-inf -> 0; 1,inf -> 1;
    -1,inf -> 1; 1,-inf -> 1; -1,-inf -> 1; 1,5 -> 1; 1,-0.5 -> 1; 0.5,inf -> 0; -0.5,inf -> 0; 0,inf -> 0;
    0.5,-inf -> inf; -0.5,-inf -> inf; 0,-inf -> inf; inf,2 -> inf; inf,0.5 -> inf; inf,-2 -> 0; -inf,3 -> -inf;
    -inf,2 -> inf; -inf,0.5 -> inf; -inf,-3 -> -0; -inf,-2 -> 0; -inf,-0.5 -> 0; 0,2 -> 0; 0,3 -> 0; 0,0.5 -> 0;
    0,-2 -> inf; 0,-0.5 -> inf; -0,3 -> -0; -0,2 -> 0; -0,0.5 -> 0; -0,-3 -> -inf; -0,-2 -> inf; -0,-0.5 -> inf;
    -2,0.5 -> nan; -2,-0.5 -> nan; -2,3 -> -8; -2,2 -> 4""",
    "remainder": """
    inf,inf -> nan; inf,-inf -> nan; -inf,inf -> nan; -inf,-inf -> nan; 0,0 -> nan; 0,-0 -> nan; -0,0 -> nan;
    -0,-0 -> nan; 0,2 -> 0; -0,2 -> 0; 0,-2 -> -0; -0,-2 -> -0; 2,0 -> nan; 2,-0 -> nan; -2,0 -> nan; -2,-0 -> nan;
    inf,2 -> nan; inf,-2 -> nan; -inf,2 -> nan; -inf,-2 -> nan; 2,inf -> 2; 2,-inf -> -inf; -2,inf -> inf;
    -2,-inf -> -2; 7,2 -> 1; -7,2 -> 1; 7,-2 -> -1; -7,-2 -> -1; 6,2 -> 0; -6,2 -> 0; 6,-2 -> -0""",
    "equal": f"{_COMPARED.format(*('True',) * 7)}; {_UNEQUAL.format('False')}",
    "not_equal": f"{_COMPARED.format(*('False',) * 7)}; {_UNEQUAL.format('True')}",
    "less": f"{_COMPARED.format(*('False',) * 7)}; nan,1 -> False; 1,nan -> False; -inf,inf -> True",
    "greater": f"{_COMPARED.format(*('False',) * 7)}; nan,1 -> False; 1,nan -> False; inf,-inf -> True",
    "less_equal": f"{_COMPARED.format(*('True',) * 7)}; nan,1 -> False; 1,nan -> False; -inf,inf -> True",
    "greater_equal": f"{_COMPARED.format(*('True',) * 7)}; nan,1 -> False; 1,nan -> False; inf,-inf -> True",
}
_NAN = "nan,nan -> nan; nan,2 -> nan; 2,nan -> nan; nan,-inf -> nan; -inf,nan -> nan"
_PROPAGATING = "add subtract atan2 divide floor_divide logaddexp maximum minimum multiply nextafter remainder"
BINARY |= {name: f"{BINARY[name]}; {_NAN}" for name in _PROPAGATING.split()}


def number(token: str) -> float:
    """Returns the number that a token stands for; `?` is ignored."""
    token = token.strip().removeprefix("?")
    if token in ("True", "False"):
        return token == "True"
    if "pi" in token:
        factor, _, divisor = token.partition("pi")
        return float({"": 1, "-": -1}.get(factor, factor)) * math.pi / float(divisor[1:] or 1)
    return math.copysign(math.nan, -1) if token == "-nan" else float(token)


def same(got: float, token: str) -> bool:
    """Returns whether a result matches a token on the right of an arrow; `|` means "or"."""
    if "|" in token:
        return any(same(got, one) for one in token.split("|"))
    wanted = number(token)
    if math.isnan(wanted) or math.isnan(got):
        return math.isnan(wanted) and math.isnan(got)
    near = math.isclose(got, wanted, rel_tol=1e-6) if "pi" in token or wanted not in (0, math.inf, -math.inf) else False
    if "?" in token:
        return abs(got) == abs(wanted) or math.isclose(abs(got), abs(wanted), rel_tol=1e-6)
    return near or (got == wanted and math.copysign(1, got) == math.copysign(1, wanted))


def cases(text: str) -> Iterator[tuple[list[str], str]]:
    """Yields the operands on the left and the result on the right of each arrow."""
    for line in text.replace("\n", " ").split(";"):
        left, _, right = line.partition("->")
        yield [token.strip() for token in left.split(",")], right.strip()


def checks() -> Iterator[Check]:
    """Yields a check of each special case of real numbers, in each dtype."""
    for name, text in (*UNARY.items(), *BINARY.items()):
        for (left, right), dtype in product(cases(text), ("float32", "float64")):
            label = f"{dtype} ({', '.join(left)})"
            yield Check(name, label, lambda n=name, a=tuple(left), w=right, d=dtype: _real(n, a, w, d))


def _real(name: str, left: tuple[str, ...], right: str, dtype: str) -> None:
    if dtype not in supported():
        return
    # The vectors are long enough for vectorised kernels, whose special cases may differ from those of a single number.
    for repeats in (1, 17):
        operands = (array(ops, [number(token)] * repeats, dtype) for token in left)
        for got in np.asarray(ops.to_numpy(getattr(ops, name)(*operands))).tolist():
            assert same(got, right), f"is {got}, wanted {right}"
