"""Special functions, on PyTorch: its kernels where they are accurate, else those of `special`.

PyTorch 2.13 has most of them, but only `lgamma`, `ndtri`, `i0e` and `i1e` are accurate. In float64 the errors of the
others, in units in the last place, are 3e6 for `polygamma(1, x)`, 8e6 for `gammainc`, 2e7 for `logit`, 1000 for
`log_ndtr`, 300 for `erfcx`, 25 for `digamma`; `ndtr` is 0 from -9 on, and `i1` overflows too early. In float32
`digamma` loses all digits near its root, and `gammainc` up to 2e5 units.

Rounded from float64 to float32, some of them have no error that the shared ones have not (`ROUNDED`).

Three calls of PyTorch take the place of one where float64 is used, since a kernel converts the second argument itself,
and float64 takes 1.1 to 1.4 times as long. Many positive numbers are left to `torch.lgamma` of float32 (0.83 units);
one reduction of their bits finds out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from emberharmony.backend.shared.elementwise.special_derivatives import DERIVATIVES, INNER
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.tracing import HAS_VALUES, is_unwatched
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast

special: Any = Deferred("emberharmony.backend.torch.elementwise.special")  # which imports this module

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
NATIVE = {name: native for name, (native, exact) in _LIBRARY.items() if exact}
"""Functions of float64 tensors of one shape."""
ROUNDED = {name: native for name, (native, exact) in _LIBRARY.items() if not exact}
"""Functions of float64 tensors, in which they lose digits, but not those of a result that becomes float32."""
_ORDERS = 1e-7, 1e5
"""Between which first arguments that holds for the incomplete gamma functions."""
INPUTS = 4
"""How many inputs `special.Special` has: the name of the function and three tensors."""


def are_orders_moderate(a: torch.Tensor) -> bool:
    """Returns whether all orders of an incomplete gamma function are in the range `_ORDERS`."""
    lowest_order, highest_order = _ORDERS
    orders = a.numpy()
    return not orders.size or bool(
        lowest_order <= orders.item(orders.argmin()) and orders.item(orders.argmax()) <= highest_order
    )


def special_function(name: str, *arguments: Any) -> torch.Tensor:
    """Returns the result of a special function, by its name, of tensors and numbers."""
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    if len(tensors) > 1:
        first_tensor = next((x for x in arguments if isinstance(x, torch.Tensor)), tensors[0])
        tensors = [x.to(first_tensor.device) for x in tensors]  # that of a number is on the CPU
    missing_tensors = (None,) * (INPUTS - 1 - len(tensors))
    if is_unwatched(*tensors):
        return special.Special.forward(name, *tensors, *missing_tensors)
    function_class = special.SpecialInBothModes
    if torch.compiler.is_compiling():
        # Dynamo (PyTorch 2.13) refuses a tensor that is passed twice.
        function_class = special.Special
        tensors = [x.clone() if any(x is y for y in tensors[:i]) else x for i, x in enumerate(tensors)]
    result: torch.Tensor = function_class.apply(name, *tensors, *missing_tensors)
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


def _quick_rounded_function(name: str) -> Callable[..., torch.Tensor]:
    """Returns the fast path of a function of `ROUNDED` for float32 tensors."""
    native_function = ROUNDED[name]

    def quick_function_of_one(x: torch.Tensor) -> torch.Tensor:
        if forward_ad._current_level >= 0:
            raise NotImplementedError
        return native_function(x.double()).float()

    def quick_function_of_two(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if forward_ad._current_level >= 0 or not are_orders_moderate(a):
            raise NotImplementedError
        # The kernel converts `x` to the dtype of the other argument at no cost.
        return native_function(a.double(), x).float()

    return quick_function_of_two if name in ("gammainc", "gammaincc") else quick_function_of_one


_FIRST = f"{{0}}.dtype is native_float32 and not {{0}}.requires_grad and {HAS_VALUES}"
_BOTH = f"{{1}}.__class__ is native_type and {{1}}.dtype is native_float32 and not {{1}}.requires_grad and {_FIRST}"
"""When nothing needs the derivatives of `special.Special`, except those of the forward mode."""


class TorchSpecialOps:
    """Holds the ops of `ops/elementwise/special.py` and `ops/elementwise/transcendental.py`.

    Each calls one function of tensors, or a kernel of PyTorch: the bodies take up to 170 times as long, for few
    elements.
    """

    @staticmethod
    def _inner_special(name: str, *tensors: torch.Tensor) -> torch.Tensor:
        """Returns the value of one of the derivatives in `special_derivatives.INNER`, with derivatives of its own."""
        result: torch.Tensor = getattr(special.DERIVED, name)(*tensors)
        return result

    gammaln = staticmethod(fast(_quick_gammaln, _FIRST)(partial(special_function, "gammaln")))
    digamma = staticmethod(fast(_quick_rounded_function("digamma"), _FIRST)(partial(special_function, "digamma")))
    gammainc = staticmethod(fast(_quick_rounded_function("gammainc"), _BOTH)(partial(special_function, "gammainc")))
    gammaincc = staticmethod(fast(_quick_rounded_function("gammaincc"), _BOTH)(partial(special_function, "gammaincc")))
    erfcx = staticmethod(fast(_quick_rounded_function("erfcx"), _FIRST)(partial(special_function, "erfcx")))
    log_ndtr = staticmethod(fast(_quick_rounded_function("log_ndtr"), _FIRST)(partial(special_function, "log_ndtr")))


for _name in DERIVATIVES:
    if _name not in INNER and _name not in vars(TorchSpecialOps):
        setattr(TorchSpecialOps, _name, staticmethod(partial(special_function, _name)))
