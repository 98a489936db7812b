"""Checks of the special cases of complex numbers, as the standard writes them.

A case has the form `real,imaginary -> real,imaginary`, in the notation of `special`. Each case also checks the rules of
the standard for conjugates and negated arguments. A function that the standard defines by another one has its cases.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from emberharmony import ops
from tests.standard.harness import COMPLEX, Check, array, supported
from tests.standard.special import cases, number, same

_LOG = """
-inf,1 -> inf,pi; inf,1 -> inf,0; -inf,inf -> inf,3pi/4; inf,inf -> inf,pi/4; inf,nan -> inf,nan; -inf,nan -> inf,nan;
nan,1 -> nan,nan; nan,inf -> inf,nan; nan,nan -> nan,nan; 2,inf -> inf,pi/2; -2,inf -> inf,pi/2; 2,nan -> nan,nan
"""
BASE = {
    "acos": """
    0,0 -> pi/2,-0; -0,0 -> pi/2,-0; 0,nan -> pi/2,nan; -0,nan -> pi/2,nan; 2,inf -> pi/2,-inf; -2,inf -> pi/2,-inf;
    2,nan -> nan,nan; -inf,1 -> pi,-inf; inf,1 -> 0,-inf; -inf,inf -> 3pi/4,-inf; inf,inf -> pi/4,-inf;
    inf,nan -> nan,?inf; -inf,nan -> nan,?inf; nan,1 -> nan,nan; nan,inf -> nan,-inf; nan,nan -> nan,nan""",
    "acosh": """
    0,0 -> 0,pi/2; -0,0 -> 0,pi/2; 2,inf -> inf,pi/2; 2,nan -> nan,nan; 0,nan -> nan,?pi/2; -inf,1 -> inf,pi;
    inf,1 -> inf,0; -inf,inf -> inf,3pi/4; inf,inf -> inf,pi/4; inf,nan -> inf,nan; -inf,nan -> inf,nan;
    nan,1 -> nan,nan; nan,inf -> inf,nan; nan,nan -> nan,nan""",
    "asinh": """
    0,0 -> 0,0; 2,inf -> inf,pi/2; 2,nan -> nan,nan; inf,1 -> inf,0; inf,inf -> inf,pi/4; nan,0 -> nan,0;
    nan,1 -> nan,nan; nan,inf -> ?inf,nan; nan,nan -> nan,nan""",
    "atanh": """
    0,0 -> 0,0; 0,nan -> 0,nan; 1,0 -> inf,0; 2,inf -> 0,pi/2; 2,nan -> nan,nan; inf,1 -> 0,pi/2; inf,inf -> 0,pi/2;
    inf,nan -> 0,nan; nan,1 -> nan,nan; nan,inf -> ?0,pi/2; nan,nan -> nan,nan""",
    "cosh": """
    0,0 -> 1,0; 0,inf -> nan,?0; 0,nan -> nan,?0; 2,inf -> nan,nan; 2,nan -> nan,nan; inf,0 -> inf,0; inf,2 -> -inf,inf;
    inf,1 -> inf,inf; inf,inf -> ?inf,nan; inf,nan -> inf,nan; nan,0 -> nan,?0; nan,-0 -> nan,?0; nan,1 -> nan,nan;
    nan,nan -> nan,nan""",
    "exp": """
    0,0 -> 1,0; -0,0 -> 1,0; 2,inf -> nan,nan; 2,nan -> nan,nan; inf,0 -> inf,0; -inf,1 -> 0,0; -inf,2 -> -0,0;
    inf,1 -> inf,inf; inf,2 -> -inf,inf; -inf,inf -> ?0,?0; inf,inf -> ?inf,nan; -inf,nan -> ?0,?0; inf,nan -> ?inf,nan;
    nan,0 -> nan,0; nan,1 -> nan,nan; nan,nan -> nan,nan""",
    "expm1": """
    0,0 -> 0,0; -0,0 -> 0,0; 2,inf -> nan,nan; 2,nan -> nan,nan; inf,0 -> inf,0; -inf,1 -> -1,0; -inf,2 -> -1,0;
    inf,1 -> inf,inf; inf,2 -> -inf,inf; -inf,inf -> -1,?0; inf,inf -> ?inf,nan; -inf,nan -> -1,?0; inf,nan -> ?inf,nan;
    nan,0 -> nan,0; nan,1 -> nan,nan; nan,nan -> nan,nan""",
    "log": f"-0,0 -> -inf,pi; 0,0 -> -inf,0; {_LOG}",
    "log1p": f"-1,0 -> -inf,0; {_LOG}",
    "sinh": """
    0,0 -> 0,0; 0,inf -> ?0,nan; 0,nan -> ?0,nan; 2,inf -> nan,nan; 2,nan -> nan,nan; inf,0 -> inf,0;
    inf,1 -> inf,inf; inf,2 -> -inf,inf; inf,inf -> ?inf,nan; inf,nan -> ?inf,nan; nan,0 -> nan,0; nan,1 -> nan,nan;
    nan,nan -> nan,nan""",
    "sqrt": """
    0,0 -> 0,0; -0,0 -> 0,0; 2,inf -> inf,inf; -2,inf -> inf,inf; inf,inf -> inf,inf; -inf,inf -> inf,inf;
    nan,inf -> inf,inf; 2,nan -> nan,nan; -inf,1 -> 0,inf; inf,1 -> inf,0; -inf,nan -> nan,?inf; inf,nan -> inf,nan;
    nan,1 -> nan,nan; nan,nan -> nan,nan""",
    # For a zero real part and an infinite or NaN imaginary part, the standard accepts NaN instead of 0, because older
    # C libraries return NaN.
    "tanh": """
    0,0 -> 0,0; 2,inf -> nan,nan; 0,inf -> 0|nan,nan; 2,nan -> nan,nan; 0,nan -> 0|nan,nan; inf,1 -> 1,0;
    inf,inf -> 1,?0; inf,nan -> 1,?0; nan,0 -> nan,0; nan,1 -> nan,nan; nan,nan -> nan,nan""",
}
ODD = ("asinh", "atanh", "sinh", "tanh")
OTHER = {
    "abs": """
    inf,1 -> inf; -inf,1 -> inf; inf,nan -> inf; -inf,nan -> inf; 1,inf -> inf; nan,-inf -> inf; 0,-3 -> 3; -0,3 -> 3;
    -3,0 -> 3; 3,-0 -> 3; nan,1 -> nan; 1,nan -> nan; nan,nan -> nan; 0,0 -> 0""",
    "isfinite": "nan,1 -> False; 1,nan -> False; inf,nan -> False; 1,-inf -> False; 1,2 -> True",
    "isinf": "inf,nan -> True; -inf,1 -> True; nan,inf -> True; 1,-inf -> True; nan,1 -> False; 1,2 -> False",
    "isnan": "nan,1 -> True; 1,nan -> True; inf,nan -> True; inf,1 -> False; 1,2 -> False",
    "round": "0.5,1.5 -> 0,2; -2.5,nan -> -2,nan; nan,inf -> nan,inf; -0,0 -> -0,0; -inf,-1.5 -> -inf,-2",
    "sign": """
    0,0 -> ?0,?0; -0,0 -> ?0,?0; nan,1 -> nan,nan; 1,nan -> nan,nan; 3,0 -> 1,?0; 0,-2 -> ?0,-1; 3,4 -> 0.6,0.8""",
    "conj": "1,2 -> 1,-2; nan,0 -> nan,-0; -0,inf -> -0,-inf",
    "negative": "1,2 -> -1,-2; 0,0 -> -0,-0; nan,inf -> nan,-inf",
    "real": "1,nan -> 1; -0,1 -> -0",
    "imag": "nan,2 -> 2; 1,-0 -> -0",
}
_Pair = tuple[str, str]
_Map = Callable[[str, str], _Pair]


def _negated(token: str) -> str:
    """Returns the token of the negative number."""
    if "|" in token:
        return "|".join(_negated(one) for one in token.split("|"))
    return token if token.startswith("?") or token == "nan" else token[1:] if token.startswith("-") else f"-{token}"


def _scaled(token: str, base: float) -> str:
    """Returns the token of a logarithm to another base."""
    value = number(token)
    return token if value == 0 or not math.isfinite(value) else repr(value / math.log(base))


def _mirrored(text: str, odd: bool) -> Iterator[tuple[str, str, str, str]]:
    """Yields each case and that of its conjugate, and for odd functions also those of both negatives."""
    for (a, b), right in cases(text):
        x, y = right.split(",")
        yield a, b, x, y
        yield a, _negated(b), x, _negated(y)
        if odd:
            yield _negated(a), _negated(b), _negated(x), _negated(y)
            yield _negated(a), b, _negated(x), y


DERIVED: dict[str, tuple[str, _Map, _Map]] = {
    # -1j * f(1j * z): `a,b` is 1j * z for z = b - a j.
    "asin": ("asinh", lambda a, b: (b, _negated(a)), lambda x, y: (y, _negated(x))),
    "atan": ("atanh", lambda a, b: (b, _negated(a)), lambda x, y: (y, _negated(x))),
    "sin": ("sinh", lambda a, b: (b, _negated(a)), lambda x, y: (y, _negated(x))),
    "tan": ("tanh", lambda a, b: (b, _negated(a)), lambda x, y: (y, _negated(x))),
    "cos": ("cosh", lambda a, b: (b, _negated(a)), lambda x, y: (x, y)),
    "log2": ("log", lambda a, b: (a, b), lambda x, y: (_scaled(x, 2), _scaled(y, 2))),
    "log10": ("log", lambda a, b: (a, b), lambda x, y: (_scaled(x, 10), _scaled(y, 10))),
}


def _all() -> Iterator[tuple[str, _Pair, str]]:
    for name, text in OTHER.items():
        for (a, b), right in cases(text):
            yield name, (a, b), right
    for name, text in BASE.items():
        for a, b, x, y in _mirrored(text, name in ODD):
            yield name, (a, b), f"{x},{y}"
    for name, (base, argument, value) in DERIVED.items():
        for a, b, x, y in _mirrored(BASE[base], base in ODD):
            yield name, argument(a, b), ",".join(value(x, y))


def checks() -> Iterator[Check]:
    """Yields a check of each special case of complex numbers, in each dtype."""
    for (name, given, wanted), dtype in ((case, dtype) for case in dict.fromkeys(_all()) for dtype in COMPLEX):
        label = f"{dtype} ({given[0]}, {given[1]})"
        yield Check(name, label, lambda n=name, g=given, w=wanted, d=dtype: _check(n, g, w, d))


def _check(name: str, given: _Pair, wanted: str, dtype: str) -> None:
    if dtype not in supported():
        return
    for repeats in (1, 17):
        value = np.empty(repeats, dtype)
        value.real, value.imag = number(given[0]), number(given[1])
        for got in np.asarray(ops.to_numpy(getattr(ops, name)(array(ops, value, dtype)))).tolist():
            shown = (got.real, got.imag) if isinstance(got, complex) else (got,)
            tokens = wanted.split(",")
            right = len(shown) == len(tokens) and all(same(x, token) for x, token in zip(shown, tokens, strict=True))
            assert right, f"is {got}, wanted {wanted}"
