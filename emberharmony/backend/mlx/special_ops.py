"""Special functions, on MLX, which has none of them natively."""

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import elementwise
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementary_ops import MLXElementaryOps, exp_of_double, on_cpu
from emberharmony.backend.shared import special, special_integrals
from emberharmony.backend.shared.special_derivatives import DERIVATIVES
from emberharmony.core.options import constant

_PLAIN = types.SimpleNamespace(
    **{
        name: getattr(mx, name)
        for name in ("abs", "exp", "expm1", "floor", "isnan", "log", "log1p", "power", "sqrt", "sum", "where")
    },
    column=lambda numbers, x: mx.array(numbers, x.dtype).reshape(-1, *(1,) * x.ndim),
    digits=special_integrals.DOUBLE,
    entries=lambda table, index: mx.array(table, index.dtype)[index.astype(mx.int32)],
    # To pick would read the mask.
    picked=lambda mask, function, *arguments: function(*arguments),
    picks=False,
)
# mx.exp computes float64 with the precision of float32.
_DOUBLE = types.SimpleNamespace(**(vars(_PLAIN) | {"exp": exp_of_double}))
_SINGLE = types.SimpleNamespace(**(vars(_DOUBLE) | {"digits": special_integrals.SINGLE}))


def _namespace(dtype: mx.Dtype) -> tuple[types.SimpleNamespace, mx.Dtype]:
    """Returns the namespace for results of this dtype, and the dtype that it computes in."""
    if not on_cpu():
        return _PLAIN, mx.float32
    return _DOUBLE if dtype == mx.float64 else _SINGLE, mx.float64


def _op(name: str, function: Callable[..., mx.array]) -> Callable[..., mx.array]:
    """Returns an op that computes a function of `backend.shared` in float64 on the CPU, else in float32."""

    def computed(*tensors: mx.array) -> mx.array:
        xp, wide = _namespace(tensors[0].dtype)
        return function(xp, *mx.broadcast_arrays(*(x.astype(wide) for x in tensors))).astype(tensors[0].dtype)

    fixed = {i: argument for i, argument in enumerate(DERIVATIVES[name]) if isinstance(argument, str)}
    return partial(_called, elementwise(computed, *map(_partial, DERIVATIVES[name])), fixed)


def _called(smooth: Callable[..., mx.array], fixed: dict[int, str], *arguments: Any) -> mx.array:
    for i, argument in fixed.items():
        constant(argument, arguments[i])
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    return smooth(*tensors)


def _partial(derivative: Any) -> Callable[..., mx.array]:
    if isinstance(derivative, str):
        # Transforms of MLX itself are not recognized, so give them NaN, not a wrong number.
        return lambda *known: mx.full(known[-1].shape, math.nan, known[-1].dtype)
    return lambda *known: derivative(_DERIVED, *known)


class MLXSpecialOps:
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
    **{name: getattr(MLXSpecialOps, name) for name in DERIVATIVES},
    exp=MLXElementaryOps.exp,
    full_like=lambda x, number: mx.full(x.shape, number, x.dtype),
    i0=MLXElementaryOps.i0,
    log=mx.log,
    log1p=mx.log1p,
    sign=mx.sign,
    where=mx.where,
)
