"""JAX for the tests of Keras that ask it which dtype a result has: its functions compute shapes and dtypes alone.

JAX traces a function in a hundredth of the time in which it compiles it, and these tests are thousands. With them, JAX
has its default setting, in which no number is wider than 32 bits.
"""

import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TRACED = ("jax.numpy", "jax.nn", "jax.lax", "jax.scipy.special")
"""The modules of JAX whose functions the tests call for a dtype."""

COMPUTED = ("jax.image",)
"""The modules of JAX whose functions the tests call for numbers."""


class Spec:
    """The shape and dtype of a result of JAX; its methods return specs too, and its values are refused."""

    def __init__(self, traced: Any, refuse: Callable[[str], None]) -> None:
        self.traced, self.dtype, self.shape, self._refuse = traced, traced.dtype, traced.shape, refuse

    def __array__(self, *_: Any, **__: Any) -> Any:
        self._refuse("jax.Array")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args: _result_specs(lambda x, *rest: getattr(x, name)(*rest), self._refuse, self, *args)


class Traced(types.ModuleType):
    """The stand-in for a module of JAX, whose functions take and return specs."""

    def __init__(self, name: str, refuse: Callable[[str], None]) -> None:
        super().__init__(name)
        self._module, self._refuse = importlib.import_module(name), refuse

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._module, name)
        return functools.partial(_result_specs, attribute, self._refuse) if callable(attribute) else attribute


@contextmanager
def _install_real_modules() -> Iterator[None]:
    """Puts JAX's own modules in the place of the stand-ins, because JAX imports parts of itself late."""
    stand_ins = {name: module for name, module in sys.modules.items() if name in _REAL}
    sys.modules.update(_REAL)
    try:
        yield
    finally:
        sys.modules.update(stand_ins)


_REAL: dict[str, types.ModuleType] = {}


def _result_specs(function: Any, refuse: Callable[[str], None], *args: Any, **options: Any) -> Any:
    """Returns the specs of the results of a function of JAX."""
    jax: Any = _REAL["jax"]
    leaves, tree = jax.tree.flatten((args, options))
    specs = [leaf.traced for leaf in leaves if isinstance(leaf, Spec)]

    def call_function(*given: Any) -> Any:
        remaining_values = iter(given)
        filled_leaves = [next(remaining_values) if isinstance(leaf, Spec) else leaf for leaf in leaves]
        positional, keywords = jax.tree.unflatten(tree, filled_leaves)
        return function(*positional, **keywords)

    with _install_real_modules():
        try:
            outputs = jax.eval_shape(call_function, *specs)
        except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError):
            # The shape of the result depends on the values.
            outputs = jax.tree.map(
                jax.typeof, call_function(*(jax.numpy.ones(spec.shape, spec.dtype) for spec in specs))
            )
    return jax.tree.map(lambda leaf: Spec(leaf, refuse) if hasattr(leaf, "dtype") else leaf, outputs)


def jax_modules(refuse: Callable[[str], None]) -> dict[str, types.ModuleType]:
    """Returns the stand-ins for the modules of JAX by name; none if JAX is not installed.

    Args:
        refuse: called with the name of a part of JAX that has no stand-in; it raises.
    """
    if importlib.util.find_spec("jax") is None:
        return {}
    for name in (*TRACED, *COMPUTED):
        importlib.import_module(name)
    _REAL.update({name: sys.modules[name] for name in ("jax", "jax.scipy", *TRACED)})
    return {name: Traced(name, refuse) for name in TRACED} | {name: sys.modules[name] for name in COMPUTED}
