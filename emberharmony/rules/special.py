"""Rules of `ops/special.py`."""

import types
from collections.abc import Callable
from typing import Any

from emberharmony.backend.shared.special_derivatives import DERIVATIVES, refused
from emberharmony.ops.elementary import exp, i0, log, log1p
from emberharmony.ops.indexing import where
from emberharmony.ops.math import multiply, sign
from emberharmony.ops.special import (
    betaln,
    digamma,
    erfcx,
    gammaln,
    i0e,
    i1e,
    polygamma,
    xlog1py,
    xlogy,
    zeta,
)
from emberharmony.ops.transcendental import j0, j1
from emberharmony.rules.math import alone

T = Any
_OPS = types.SimpleNamespace(
    betaln=betaln,
    digamma=digamma,
    erfcx=erfcx,
    exp=exp,
    full_like=lambda x, number: number,
    gammaln=gammaln,
    i0=i0,
    i0e=i0e,
    i1e=i1e,
    j0=j0,
    j1=j1,
    log=log,
    log1p=log1p,
    polygamma=polygamma,
    sign=sign,
    where=where,
    xlog1py=xlog1py,
    xlogy=xlogy,
    zeta=zeta,
)


def _rule(derivative: Any) -> Callable[..., T]:
    def rule(g: T, y: T, *arguments: T) -> T:
        if isinstance(derivative, str):
            raise refused(derivative)
        return multiply(g, derivative(_OPS, *(alone(x, y) for x in arguments), y))

    return rule


RULES: dict[str, Any] = {name: tuple(map(_rule, derivatives)) for name, derivatives in DERIVATIVES.items()}
