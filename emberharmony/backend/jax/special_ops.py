"""Special functions, on JAX: those of `backend.shared`, because several of JAX 0.10 are less accurate."""

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from emberharmony.backend.jax.derivatives import elementwise
from emberharmony.backend.jax.dtypes import promotion
from emberharmony.backend.jax.elementary_ops import JAXElementaryOps
from emberharmony.backend.shared import special, special_integrals
from emberharmony.backend.shared.special_derivatives import DERIVATIVES
from emberharmony.core.options import constant

_DOUBLE = types.SimpleNamespace(
    **{
        name: getattr(jnp, name)
        for name in ("abs", "exp", "expm1", "floor", "isnan", "log", "log1p", "power", "sqrt", "sum", "where")
    },
    column=lambda numbers, x: jnp.asarray(numbers, x.dtype).reshape(-1, *(1,) * x.ndim),
    digits=special_integrals.DOUBLE,
    entries=lambda table, index: jnp.asarray(table, index.dtype)[index.astype(jnp.int64)],
    # To pick would read the mask.
    picked=lambda mask, function, *arguments: function(*arguments),
    picks=False,
)
_SINGLE = types.SimpleNamespace(**(vars(_DOUBLE) | {"digits": special_integrals.SINGLE}))


def _op(name: str, function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns an op that computes a function of `backend.shared` in float64, as one program."""

    def computed(*tensors: jax.Array) -> jax.Array:
        xp = _DOUBLE if tensors[0].dtype == jnp.float64 else _SINGLE
        wide = jnp.broadcast_arrays(*(x.astype(jnp.float64) for x in tensors))
        return function(xp, *wide).astype(tensors[0].dtype)

    fixed = {i: argument for i, argument in enumerate(DERIVATIVES[name]) if isinstance(argument, str)}
    return partial(_called, jax.jit(elementwise(computed, *map(_partial, DERIVATIVES[name]))), fixed)


def _called(smooth: Callable[..., jax.Array], fixed: dict[int, str], *arguments: Any) -> jax.Array:
    for i, argument in fixed.items():
        constant(argument, arguments[i])
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    return smooth(*tensors)


def _partial(derivative: Any) -> Callable[..., jax.Array]:
    if isinstance(derivative, str):
        # The transforms of JAX itself, inside of a program, are not recognized, so give them NaN, not a wrong number.
        return lambda *known: jnp.full_like(known[-1], math.nan)
    return lambda *known: derivative(_DERIVED, *known)


class JAXSpecialOps:
    """Holds the ops of `ops/special.py`."""

    gammaln = staticmethod(_op("gammaln", special.gammaln))
    digamma = staticmethod(_op("digamma", special.digamma))
    polygamma = staticmethod(_op("polygamma", special.polygamma))
    zeta = staticmethod(_op("zeta", special.zeta))
    gammainc = staticmethod(_op("gammainc", special_integrals.gammainc))
    gammaincc = staticmethod(_op("gammaincc", special_integrals.gammaincc))
    beta = staticmethod(_op("beta", special.beta))
    betaln = staticmethod(_op("betaln", special.betaln))
    betainc = staticmethod(_op("betainc", special_integrals.betainc))
    xlogy = staticmethod(_op("xlogy", special.xlogy))
    xlog1py = staticmethod(_op("xlog1py", special.xlog1py))
    erfcx = staticmethod(_op("erfcx", special.erfcx))
    ndtr = staticmethod(_op("ndtr", special.ndtr))
    log_ndtr = staticmethod(_op("log_ndtr", special.log_ndtr))
    ndtri = staticmethod(_op("ndtri", special.ndtri))
    i0e = staticmethod(_op("i0e", special.i0e))
    i1 = staticmethod(_op("i1", special.i1))
    i1e = staticmethod(_op("i1e", special.i1e))


_DERIVED = types.SimpleNamespace(
    **{name: getattr(JAXSpecialOps, name) for name in DERIVATIVES},
    **{name: getattr(jnp, name) for name in ("exp", "full_like", "log", "log1p", "sign", "where")},
    i0=JAXElementaryOps.i0,
)
