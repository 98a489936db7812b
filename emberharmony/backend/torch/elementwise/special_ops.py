"""Special functions, on PyTorch.

PyTorch 2.13 has most of them, but only `lgamma`, `ndtri`, `i0e` and `i1e` are accurate. In float64 the errors of the
others, in units in the last place, are 3e6 for `polygamma(1, x)`, 8e6 for `gammainc`, 2e7 for `logit`, 1000 for
`log_ndtr`, 300 for `erfcx`, 25 for `digamma`; `ndtr` is 0 from -9 on, and `i1` overflows too early. In float32
`digamma` loses all digits near its root, and `gammainc` up to 2e5 units.

Rounded from float64 to float32, some of them have no error that the shared ones have not (`_ROUNDED`).

Three calls of PyTorch take the place of one where float64 is used, since a kernel converts the second argument itself,
and float64 takes 1.1 to 1.4 times as long. Many positive numbers are left to `torch.lgamma` of float32 (0.83 units);
one reduction of their bits finds out.
"""

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from emberharmony.backend.shared.elementwise import special_integrals
from emberharmony.backend.shared.elementwise.special_binding import (
    compute_everywhere,
    definitions,
    function,
    namespace,
    smooth_namespace,
)
from emberharmony.backend.shared.elementwise.special_derivatives import DERIVATIVES, no_gradient_error
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.elementwise.elementary_ops import TorchElementaryOps
from emberharmony.backend.torch.tracing import HAS_VALUES, has_values, is_unwatched
from emberharmony.core.dispatch import fast

_BLOCK = 2**14
"""The number of elements computed at once on the CPU: the intermediate results then stay in the cache."""


def _compute_where(mask: torch.Tensor, function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """Returns the function where the mask is true, computed for these elements only, and 0 elsewhere."""
    indices = mask.nonzero().reshape(-1)
    if len(indices) == len(mask):
        return function(*arguments)
    result = torch.zeros_like(arguments[0])
    return result.index_copy_(0, indices, function(*(x[indices] for x in arguments))) if len(indices) else result


def _compute_namespace(digits: special_integrals.Digits, picks: bool) -> types.SimpleNamespace:
    """Returns a namespace that the shared functions compute with; one that picks takes vectors of one length."""
    return namespace(
        torch,
        lambda numbers, x: torch.tensor(numbers, dtype=x.dtype, device=x.device).reshape(-1, *(1,) * x.ndim),
        lambda table, index: torch.tensor(table, dtype=index.dtype, device=index.device)[index.to(torch.int64)],
        digits,
        pick=_compute_where if picks else compute_everywhere,
        picks=picks,
        power=torch.pow,
    )


_NAMESPACES = {
    (double, picks): _compute_namespace(special_integrals.DOUBLE if double else special_integrals.SINGLE, picks)
    for double in (False, True)
    for picks in (False, True)
}
"""By whether the results need all digits of float64, and whether the namespace picks."""
_LIBRARY: dict[str, tuple[Callable[..., torch.Tensor], bool]] = {
    "gammaln": (torch.lgamma, True),
    "xlogy": (torch.special.xlogy, True),
    "xlog1py": (torch.special.xlog1py, True),
    "ndtri": (torch.special.ndtri, True),
    "i0e": (torch.special.i0e, True),
    "i1e": (torch.special.i1e, True),
    "digamma": (torch.digamma, False),
    "gammainc": (torch.special.gammainc, False),
    "gammaincc": (torch.special.gammaincc, False),
    "erfcx": (torch.special.erfcx, False),
    "log_ndtr": (torch.special.log_ndtr, False),
}
"""PyTorch's functions of float64 tensors that have all digits of float64 (True), or only those of float32."""
_NATIVE = {name: native for name, (native, exact) in _LIBRARY.items() if exact}
"""Functions of float64 tensors of one shape."""
_ROUNDED = {name: native for name, (native, exact) in _LIBRARY.items() if not exact}
"""Functions of float64 tensors, in which they lose digits, but not those of a result that becomes float32."""
_ORDERS = 1e-7, 1e5
"""Between which first arguments that holds for the incomplete gamma functions."""
_SHARED = {name: function(name) for name in DERIVATIVES if name not in _NATIVE}
"""Functions of a namespace and of float64 tensors of one shape."""


def _is_moderate(a: torch.Tensor) -> bool:
    """Returns whether all first arguments of an incomplete gamma function, whose values are known, are in `_ORDERS`."""
    low, high = _ORDERS
    values = a.numpy()
    return not values.size or bool(low <= values.item(values.argmin()) and values.item(values.argmax()) <= high)


def _is_rounded(name: str, x: torch.Tensor) -> bool:
    """Returns whether the function of `_ROUNDED` may compute a result that becomes less precise than float64."""
    return name in _ROUNDED and (name not in ("gammainc", "gammaincc") or (has_values(x) and _is_moderate(x)))


def _compute_by_blocks(name: str, double: bool, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
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
    """Computes a special function in float64, with the derivatives of `shared.elementwise.special_derivatives`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, x: torch.Tensor, y: torch.Tensor | None, z: torch.Tensor | None) -> torch.Tensor:
        """Returns the function, in the dtype of the tensors; those that it does not take are None.

        Dynamo (PyTorch 2.13) passes the context as the first argument of a `forward` with `*tensors` if no argument
        needs a gradient.
        """
        tensors = [t for t in (x, y, z) if t is not None]
        # MPS has no float64.
        wide_dtype = torch.float32 if x.device.type == "mps" else torch.float64
        wide_tensors = [t.to(wide_dtype) for t in tensors]
        if len(wide_tensors) > 1:
            wide_tensors = list(torch.broadcast_tensors(*wide_tensors))  # type: ignore[no-untyped-call]
        if name in _NATIVE:
            return _NATIVE[name](*wide_tensors).to(x.dtype)
        if x.dtype is not wide_dtype and _is_rounded(name, wide_tensors[0]):
            return _ROUNDED[name](*wide_tensors).to(x.dtype)
        return _compute_by_blocks(name, x.dtype is wide_dtype, wide_tensors).to(x.dtype)

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
        tensors, y = _saved_tensors(ctx)
        if cotangent is None:
            return (None,) * _INPUTS
        gradients = [
            (cotangent * _slope_of_derivative(derivative, tensors, y)).sum_to_size(x.shape) if needs_gradient else None
            for derivative, x, needs_gradient in zip(
                DERIVATIVES[ctx.name], tensors, ctx.needs_input_grad[1:], strict=False
            )
        ]
        return None, *gradients, *(None,) * (_INPUTS - 1 - len(gradients))


class _SpecialInBothModes(_Special):
    """Adds the forward mode, which torch.compile (PyTorch 2.13) cannot trace."""

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> torch.Tensor:
        """Returns the tangent."""
        tensors, y = _saved_tensors(ctx)
        pairs = zip(DERIVATIVES[ctx.name], tangents, strict=False)
        tangent_terms = [
            tangent * _slope_of_derivative(derivative, tensors, y)
            for derivative, tangent in pairs
            if tangent is not None
        ]
        return sum(tangent_terms, torch.zeros_like(y))


def _saved_tensors(ctx: Any) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Returns the tensors that were given to the function, and its result."""
    *primals, y = ctx.saved_tensors
    return [x for x in primals if x is not None], y


def _slope_of_derivative(derivative: Any, tensors: list[torch.Tensor], y: torch.Tensor) -> Any:
    if isinstance(derivative, str):
        raise no_gradient_error(derivative)
    return derivative(_DERIVED, *tensors, y)


def _special_function(name: str, *arguments: Any) -> torch.Tensor:
    """Returns a special function of tensors and numbers."""
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    if len(tensors) > 1:
        first_tensor = next((x for x in arguments if isinstance(x, torch.Tensor)), tensors[0])
        tensors = [x.to(first_tensor.device) for x in tensors]  # that of a number is on the CPU
    missing = (None,) * (_INPUTS - 1 - len(tensors))
    if is_unwatched(*tensors):
        return _Special.forward(name, *tensors, *missing)
    function_class: type[_Special] = _SpecialInBothModes
    if torch.compiler.is_compiling():
        # Dynamo (PyTorch 2.13) refuses a tensor that is passed twice.
        function_class = _Special
        tensors = [x.clone() if any(x is y for y in tensors[:i]) else x for i, x in enumerate(tensors)]
    result: torch.Tensor = function_class.apply(name, *tensors, *missing)  # type: ignore[no-untyped-call]
    return result


_WORTH_READING = 2**12
"""From how many elements on reading all of them costs less than their conversion to float64 and its slower function."""
_RIGHT = np.float32(1e36).view(np.uint32)
"""The bits of the largest number for which `torch.lgamma` of float32 is used; a negative number and NaN have more."""


def _quick_gammaln(x: torch.Tensor) -> torch.Tensor:
    """Returns `gammaln` of float32, whose kernel has large errors below 0, and overflows from 4e36 on."""
    if forward_ad._current_level >= 0:
        raise NotImplementedError
    if x.numel() >= _WORTH_READING and x.numpy().view(np.uint32).max() <= _RIGHT:
        return torch.lgamma(x)
    return torch.lgamma(x.double()).float()


def _quick_rounded(name: str) -> Callable[..., torch.Tensor]:
    """Returns a function of `_ROUNDED`, of float32 tensors."""
    native = _ROUNDED[name]

    def rounded_of_one(x: torch.Tensor) -> torch.Tensor:
        if forward_ad._current_level >= 0:
            raise NotImplementedError
        return native(x.double()).float()

    def rounded_of_two(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if forward_ad._current_level >= 0 or not _is_moderate(a):
            raise NotImplementedError
        # The kernel converts `x` to the dtype of the other argument at no cost.
        return native(a.double(), x).float()

    return rounded_of_two if name in ("gammainc", "gammaincc") else rounded_of_one


_FIRST = f"{{0}}.dtype is native_float32 and not {{0}}.requires_grad and {HAS_VALUES}"
_BOTH = f"{{1}}.__class__ is native_type and {{1}}.dtype is native_float32 and not {{1}}.requires_grad and {_FIRST}"
"""When nothing needs the derivatives of `_Special`, except those of the forward mode."""


_Defined: Any = definitions(lambda name: partial(_special_function, name))


class TorchSpecialOps(_Defined):  # type: ignore[misc]
    """Holds the ops of `ops/elementwise/special.py` and `ops/elementwise/transcendental.py`.

    Each calls one function of tensors, or a kernel of PyTorch: the bodies take up to 170 times as long, for few
    elements.
    """

    @staticmethod
    def _inner_special(name: str, *tensors: torch.Tensor) -> torch.Tensor:
        """Returns a derivative of `special_derivatives.INNER`, with derivatives of its own."""
        result: torch.Tensor = getattr(_DERIVED, name)(*tensors)
        return result

    gammaln = staticmethod(fast(_quick_gammaln, _FIRST)(partial(_special_function, "gammaln")))
    digamma = staticmethod(fast(_quick_rounded("digamma"), _FIRST)(partial(_special_function, "digamma")))
    gammainc = staticmethod(fast(_quick_rounded("gammainc"), _BOTH)(partial(_special_function, "gammainc")))
    gammaincc = staticmethod(fast(_quick_rounded("gammaincc"), _BOTH)(partial(_special_function, "gammaincc")))
    erfcx = staticmethod(fast(_quick_rounded("erfcx"), _FIRST)(partial(_special_function, "erfcx")))
    log_ndtr = staticmethod(fast(_quick_rounded("log_ndtr"), _FIRST)(partial(_special_function, "log_ndtr")))


_DERIVED = smooth_namespace(
    TorchSpecialOps, torch, lambda name: partial(_special_function, name), i0=TorchElementaryOps.i0
)
