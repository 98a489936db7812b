"""Special functions, on JAX: those of `backend.shared`, because several of JAX 0.10 are less accurate.

Small tensors in the memory of the host are computed by NumPy: to compile one of these programs takes seconds, and on
the CPU a program of JAX 0.10 makes 0 of subnormal numbers.
"""

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.jax.derivatives import elementwise
from emberharmony.backend.jax.dtypes import of_host, promotion
from emberharmony.backend.jax.elementary_ops import JAXElementaryOps
from emberharmony.backend.jax.tracing import Tracer, at_hand
from emberharmony.backend.shared import special, special_integrals
from emberharmony.backend.shared.special_derivatives import DERIVATIVES
from emberharmony.core.options import constant

_FEW = 2**14
"""Up to this number of elements NumPy computes a result, if the values are at hand."""


def _namespace(library: Any) -> tuple[types.SimpleNamespace, types.SimpleNamespace]:
    """Returns the namespaces for results of up to 32 and of 64 bits that the shared functions compute with."""
    names = ("abs", "exp", "expm1", "floor", "isnan", "log", "log1p", "power", "sqrt", "sum", "where")
    double = types.SimpleNamespace(
        **{name: getattr(library, name) for name in names},
        column=lambda numbers, x: library.asarray(numbers, x.dtype).reshape(-1, *(1,) * x.ndim),
        digits=special_integrals.DOUBLE,
        entries=lambda table, index: library.asarray(table, index.dtype)[index.astype(np.int64)],
        # To pick would read the mask.
        picked=lambda mask, function, *arguments: function(*arguments),
        picks=False,
    )
    return types.SimpleNamespace(**(vars(double) | {"digits": special_integrals.SINGLE})), double


_ON_JAX, _ON_HOST = _namespace(jnp), _namespace(np)


def _computed(function: Callable[..., Any], library: Any, spaces: Any, *tensors: Any) -> Any:
    """Returns a function of `backend.shared`, computed in float64 by a library."""
    wide = library.broadcast_arrays(*(x.astype(np.float64) for x in tensors))
    return function(spaces[tensors[0].dtype.itemsize == 8], *wide).astype(tensors[0].dtype)


def _op(name: str, function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns an op that computes a function of `backend.shared` in float64, as one program."""
    computed = partial(_computed, function, jnp, _ON_JAX)
    fixed = {i: argument for i, argument in enumerate(DERIVATIVES[name]) if isinstance(argument, str)}
    return partial(_called, function, jax.jit(elementwise(computed, *map(_partial, DERIVATIVES[name]))), fixed)


def _called(
    function: Callable[..., Any], smooth: Callable[..., jax.Array], fixed: dict[int, str], *arguments: Any
) -> jax.Array:
    for i, argument in fixed.items():
        constant(argument, arguments[i])
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    known = [None if isinstance(x, Tracer) or x.size > _FEW else at_hand(x) for x in tensors]
    if any(x is None for x in known):
        return smooth(*tensors)
    with np.errstate(all="ignore"):
        return of_host(_computed(function, np, _ON_HOST, *known))


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
