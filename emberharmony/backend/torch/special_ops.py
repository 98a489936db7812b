"""Special functions, on PyTorch.

PyTorch 2.13 has most of them, but only `lgamma`, `ndtri`, `i0e` and `i1e` are accurate. In float64 the errors of the
others, in units in the last place, are 3e6 for `polygamma(1, x)`, 8e6 for `gammainc`, 2e7 for `logit`, 1000 for
`log_ndtr`, 300 for `erfcx`, 25 for `digamma`; `ndtr` is 0 from -20 on, and `i1` overflows too early. Rounded to
float32, `digamma` has no error that the shared one has not.
"""

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from emberharmony.backend.shared import special, special_integrals
from emberharmony.backend.shared.special_derivatives import DERIVATIVES, refused
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.elementary_ops import TorchElementaryOps
from emberharmony.backend.torch.tracing import has_values, is_unwatched

_BLOCK = 2**14
"""The number of elements computed at once on the CPU: the intermediate results then stay in the cache."""


def _picked(mask: torch.Tensor, function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """Returns the function where the mask is true, computed for these elements only, and 0 elsewhere."""
    places = mask.nonzero().reshape(-1)
    if len(places) == len(mask):
        return function(*arguments)
    result = torch.zeros_like(arguments[0])
    return result.index_copy_(0, places, function(*(x[places] for x in arguments))) if len(places) else result


def _namespace(digits: special_integrals.Digits, picks: bool) -> types.SimpleNamespace:
    """Returns a namespace that the shared functions compute with; one that picks takes vectors of one length."""
    names = ("abs", "exp", "expm1", "floor", "isnan", "log", "log1p", "sqrt", "sum", "where")
    return types.SimpleNamespace(
        **{name: getattr(torch, name) for name in names},
        column=lambda numbers, x: torch.tensor(numbers, dtype=x.dtype, device=x.device).reshape(-1, *(1,) * x.ndim),
        digits=digits,
        entries=lambda table, index: torch.tensor(table, dtype=index.dtype, device=index.device)[index.to(torch.int64)],
        picked=_picked if picks else lambda mask, function, *arguments: function(*arguments),
        picks=picks,
        power=torch.pow,
    )


_NAMESPACES = {
    (double, picks): _namespace(special_integrals.DOUBLE if double else special_integrals.SINGLE, picks)
    for double in (False, True)
    for picks in (False, True)
}
"""By whether the results need all digits of float64, and whether the namespace picks."""
_NATIVE: dict[str, Callable[..., torch.Tensor]] = {
    "gammaln": torch.lgamma,
    "xlogy": torch.special.xlogy,
    "xlog1py": torch.special.xlog1py,
    "ndtri": torch.special.ndtri,
    "i0e": torch.special.i0e,
    "i1e": torch.special.i1e,
}
"""Functions of float64 tensors of one shape."""
_SHARED: dict[str, Callable[..., torch.Tensor]] = {
    "digamma": special.digamma,
    "polygamma": special.polygamma,
    "zeta": special.zeta,
    "gammainc": special_integrals.gammainc,
    "gammaincc": special_integrals.gammaincc,
    "beta": special.beta,
    "betaln": special.betaln,
    "betainc": special_integrals.betainc,
    "erfcx": special.erfcx,
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "i1": special.i1,
}
"""Functions of a namespace and of float64 tensors of one shape."""


def _computed(name: str, double: bool, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns a function of `backend.shared` of float64 tensors of one shape, on the CPU block by block."""
    function = _SHARED[name]
    if not all(map(has_values, tensors)):
        return function(_NAMESPACES[double, False], *tensors)
    xp, shape = _NAMESPACES[double, True], tensors[0].shape
    flat = [x.reshape(-1) for x in tensors]
    if len(flat[0]) <= _BLOCK:
        return function(xp, *flat).reshape(shape)
    blocks = zip(*(torch.split(x, _BLOCK) for x in flat), strict=True)
    return torch.cat([function(xp, *block) for block in blocks]).reshape(shape)


_INPUTS = 4
"""How many inputs `_Special` has: the name of the function and three tensors."""


class _Special(torch.autograd.Function):
    """Computes a special function in float64, with the derivatives of `backend.shared.special_derivatives`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, x: torch.Tensor, y: torch.Tensor | None, z: torch.Tensor | None) -> torch.Tensor:
        """Returns the function, in the dtype of the tensors; those that it does not take are None.

        Dynamo (PyTorch 2.13) passes the context as the first argument of a `forward` with `*tensors` if no argument
        needs a gradient.
        """
        tensors = [t for t in (x, y, z) if t is not None]
        # MPS has no float64.
        wide = torch.float32 if x.device.type == "mps" else torch.float64
        if name == "digamma" and x.dtype is not wide:
            return torch.digamma(x.to(wide)).to(x.dtype)
        together = [t.to(wide) for t in tensors]
        if len(together) > 1:
            together = list(torch.broadcast_tensors(*together))  # type: ignore[no-untyped-call]
        if name in _NATIVE:
            return _NATIVE[name](*together).to(x.dtype)
        return _computed(name, x.dtype is wide, together).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Saves the arguments and the result."""
        ctx.name, *tensors = inputs
        # Without this PyTorch passes zeros for missing tangents, also for those of arguments that have no gradient.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor | None) -> Any:
        """Returns the gradients."""
        tensors, y = _saved(ctx)
        if cotangent is None:
            return (None,) * _INPUTS
        gradients = [
            (cotangent * _slope(derivative, tensors, y)).sum_to_size(x.shape) if needed else None
            for derivative, x, needed in zip(DERIVATIVES[ctx.name], tensors, ctx.needs_input_grad[1:], strict=False)
        ]
        return None, *gradients, *(None,) * (_INPUTS - 1 - len(gradients))


class _SpecialInBothModes(_Special):
    """Adds the forward mode, which torch.compile (PyTorch 2.13) cannot trace."""

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> torch.Tensor:
        """Returns the tangent."""
        tensors, y = _saved(ctx)
        pairs = zip(DERIVATIVES[ctx.name], tangents, strict=False)
        parts = [tangent * _slope(derivative, tensors, y) for derivative, tangent in pairs if tangent is not None]
        return sum(parts, torch.zeros_like(y))


def _saved(ctx: Any) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Returns the tensors that were given to the function, and its result."""
    *given, y = ctx.saved_tensors
    return [x for x in given if x is not None], y


def _slope(derivative: Any, tensors: list[torch.Tensor], y: torch.Tensor) -> Any:
    if isinstance(derivative, str):
        raise refused(derivative)
    return derivative(_DERIVED, *tensors, y)


def _special(name: str, *arguments: Any) -> torch.Tensor:
    """Returns a special function of tensors and numbers."""
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    missing = (None,) * (_INPUTS - 1 - len(tensors))
    if is_unwatched(*tensors):
        return _Special.forward(name, *tensors, *missing)
    chosen: type[_Special] = _SpecialInBothModes
    if torch.compiler.is_compiling():
        # Dynamo (PyTorch 2.13) refuses a tensor that is passed twice.
        chosen = _Special
        tensors = [x.clone() if any(x is y for y in tensors[:i]) else x for i, x in enumerate(tensors)]
    result: torch.Tensor = chosen.apply(name, *tensors, *missing)  # type: ignore[no-untyped-call]
    return result


class TorchSpecialOps:
    """Holds the ops of `ops/special.py`."""

    gammaln = staticmethod(partial(_special, "gammaln"))
    digamma = staticmethod(partial(_special, "digamma"))
    polygamma = staticmethod(partial(_special, "polygamma"))
    zeta = staticmethod(partial(_special, "zeta"))
    gammainc = staticmethod(partial(_special, "gammainc"))
    gammaincc = staticmethod(partial(_special, "gammaincc"))
    beta = staticmethod(partial(_special, "beta"))
    betaln = staticmethod(partial(_special, "betaln"))
    betainc = staticmethod(partial(_special, "betainc"))
    xlogy = staticmethod(partial(_special, "xlogy"))
    xlog1py = staticmethod(partial(_special, "xlog1py"))
    erfcx = staticmethod(partial(_special, "erfcx"))
    ndtr = staticmethod(partial(_special, "ndtr"))
    log_ndtr = staticmethod(partial(_special, "log_ndtr"))
    ndtri = staticmethod(partial(_special, "ndtri"))
    i0e = staticmethod(partial(_special, "i0e"))
    i1 = staticmethod(partial(_special, "i1"))
    i1e = staticmethod(partial(_special, "i1e"))


_DERIVED = types.SimpleNamespace(
    **{name: getattr(TorchSpecialOps, name) for name in DERIVATIVES},
    **{name: getattr(torch, name) for name in ("exp", "full_like", "log", "log1p", "sign", "where")},
    i0=TorchElementaryOps.i0,
)
