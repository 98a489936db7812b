"""SciPy's special functions for arrays of the namespaces: computed by the ops, on the device, and differentiable.

Without this SciPy computes them by NumPy in float64 and on the host, and refuses arrays that are differentiated. SciPy
(1.17) asks a namespace for `special`, in anticipation of an extension of the standard.
"""

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from emberharmony.core.registry import ALIASES, OPS, OpSpec, complete
from emberharmony.xp.array import ArrayBase
from emberharmony.xp.namespace import Namespace, set_or_remove_extension

_NAMES = {"expit": "sigmoid", "psi": "digamma"}
"""A dict from SciPy's names of special functions to our names, where they differ."""
_NEEDS = {"betainc": "stdtr"}
"""A dict from ops to further ops they need: SciPy would build these of the first, imprecisely in float32."""
_LEFT = frozenset(("polygamma",))
"""Ops that are left to SciPy, because they lose digits at high orders and negative arguments."""
_DISPATCH = "scipy.special._support_alternative_backends"


class Special(ModuleType):
    """The special functions of one namespace by SciPy's names; missing ones are computed by SciPy itself."""

    def __init__(self, space: Namespace) -> None:
        super().__init__(f"{space.__name__}.special", __doc__)
        self._space = space
        self.__dict__["__getattr__"] = self._make_attribute

    def _make_attribute(self, name: str) -> Any:
        spec = op_of(name)
        if spec is None:
            raise AttributeError(f"{self.__name__} has no {name!r}: SciPy computes it by NumPy", name=name)
        return self.__dict__.setdefault(name, _special_function(self._space, name, spec))


def op_of(name: str) -> OpSpec | None:
    """Returns the op that computes a special function, by SciPy's name; None if no op does."""
    complete()
    name = _NAMES.get(name, name)
    spec = OPS.get(ALIASES.get(name, name))
    is_elementwise = spec is not None and all(p.is_tensor and not p.keyword_only for p in spec.parameters)
    return spec if is_elementwise and name not in _LEFT and _NEEDS.get(name, name) in OPS else None


def _special_function(space: Namespace, name: str, spec: OpSpec) -> Callable[..., Any]:
    function = getattr(space, spec.name)

    @functools.wraps(function)
    def call_in_common_dtype(*args: Any) -> Any:
        arrays = [x if isinstance(x, ArrayBase) else space.asarray(x) for x in args]
        result_dtype = space.result_type(*arrays, 1.0)
        return function(*(space.astype(x, result_dtype, copy=False) for x in arrays))

    call_in_common_dtype.__name__ = call_in_common_dtype.__qualname__ = name
    return call_in_common_dtype


def enable_scipy(enabled: bool = True) -> None:
    """Lets the functions of `scipy.special` compute arrays of the namespaces by ops; False ends it.

    SciPy dispatches on arrays only if the environment variable SCIPY_ARRAY_API is 1 before it is imported. The results
    have the dtype of the arguments, where those that NumPy computes are rounded from float64.

    Args:
        enabled: whether arrays are computed by ops from now on; else by NumPy.

    Raises:
        ImportError: if SciPy is missing, or no longer dispatches as version 1.17 does.
    """
    dispatch_module = importlib.import_module(_DISPATCH)
    cached_lookup = getattr(getattr(dispatch_module, "_FuncInfo", None), "_wrapper_for", None)
    if cached_lookup is None or not hasattr(cached_lookup, "cache_clear"):
        raise ImportError("this version of SciPy finds special functions in another way: report it to EmberHarmony")
    set_or_remove_extension("special", Special if enabled else None)
    cached_lookup.cache_clear()
