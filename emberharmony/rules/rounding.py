"""Rules of `ops/rounding.py`."""

from typing import Any

from emberharmony.ops.comparison import equal, isfinite
from emberharmony.ops.creation import zeros_like
from emberharmony.ops.indexing import where
from emberharmony.ops.math import negative
from emberharmony.ops.rounding import ldexp, signbit

T = Any


def _copysign(g: T, y: T, a: T, b: T) -> T:
    """Returns the rule by the size: 0 at 0, as of the absolute value."""
    turned = where(equal(signbit(a), signbit(b)), g, negative(g))
    return where(equal(a, 0), 0.0, turned)


RULES: dict[str, Any] = {
    "copysign": (_copysign, None),
    "ldexp": (lambda g, y, x, exponent: ldexp(g, exponent), None),
    # The step by a last place is constant but for the powers of two; no step is taken where the two are equal.
    "nextafter": (lambda g, y, a, b: where(equal(a, b), 0.0, g), lambda g, y, a, b: zeros_like(g)),
    "nan_to_num": (lambda g, y, x, *limits: where(isfinite(x), g, 0.0),),
}
