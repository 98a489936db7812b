"""Composites compiled as one program each: op by op, JAX would compile and start a program for each of their steps.

They have a cache of their own, because each call of an op looks into it: that of `LibraryFunction` follows cells, which
a composite never reads, and takes keys apart that a composite does not need.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax

from emberharmony.core.dtypes import default_float
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.core.state.checked_mode import checking
from emberharmony.core.state.draws import WithoutDraws
from emberharmony.core.tracing import TensorProxy

_ROUNDED = ("hard_sigmoid", "hard_silu")
"""Composites that XLA would round otherwise in one program: it multiplies and adds with a single rounding.

So `x / 6 + 1 / 2` would not be 0 at -3, and the derivative there would be another one.
"""
_OUTSIDE = frozenset(("device", "generator"))
"""Parameters of ops that depend on more than their tensors."""
_TENSOR = object()
_MOST = 64
"""The most programs of a composite, each for other arguments; beyond them its steps are programs.

A number that changes at each call would otherwise compile the composite at each call.
"""


class _Fused:
    """A composite op that is compiled once for each structure and each value of arguments other than tensors.

    Args:
        name: the name of the composite.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._function_by_key: dict[Any, Callable[..., Any] | None] = {}

    def __call__(self, backend: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the composite on a backend, by its compiled program."""
        leaves, structure = jax.tree.flatten((args, kwargs))
        leaf_keys = [_TENSOR if isinstance(leaf, jax.Array) else (leaf.__class__, leaf) for leaf in leaves]
        cache_key = id(backend), default_float(), structure, *leaf_keys
        tensors = [leaf for leaf, marker in zip(leaves, leaf_keys, strict=True) if marker is _TENSOR]
        try:
            program = self._function_by_key[cache_key]
        except KeyError:
            # The program must not keep the tensors of this call in memory.
            constant_leaves = [
                None if marker is _TENSOR else leaf for leaf, marker in zip(leaves, leaf_keys, strict=True)
            ]
            composite_function = functools.partial(
                _run_composite, backend.composed(self.name), structure, constant_leaves, leaf_keys
            )
            program = jax.jit(composite_function) if len(self._function_by_key) < _MOST else None
        except TypeError:  # an argument that is not hashable cannot be part of the key
            program = None
        if program is None or not tensors or checking() or any(isinstance(leaf, TensorProxy) for leaf in leaves):
            return backend.composed(self.name)(*args, **kwargs)
        try:
            with WithoutDraws():
                fused_result = program(tensors)
        except Exception as error:
            if not backend.cannot_transform(error):
                raise
            self._function_by_key[cache_key] = None
            return backend.composed(self.name)(*args, **kwargs)
        self._function_by_key[cache_key] = program
        return fused_result


def _run_composite(
    body: Callable[..., Any], structure: Any, leaves: list[Any], leaf_keys: list[Any], tensors: list[Any]
) -> Any:
    """Returns the result of a composite, called with tensors put in their places among its other arguments."""
    next_tensors = iter(tensors)
    new_leaves = [
        next(next_tensors) if marker is _TENSOR else leaf for leaf, marker in zip(leaves, leaf_keys, strict=True)
    ]
    args, kwargs = jax.tree.unflatten(structure, new_leaves)
    return body(*args, **kwargs)


def _fused_method(name: str) -> Callable[..., Any]:
    fused_op = _Fused(name)

    def call_fused(self: Any, *args: Any, **kwargs: Any) -> Any:
        return fused_op(self, *args, **kwargs)

    call_fused.__name__ = call_fused.__qualname__ = name
    return call_fused


def can_fuse(spec: OpSpec) -> bool:
    """Returns whether an op can be fused: a composite of the package that computes tensors from tensors."""
    facts, parameters = spec.facts, spec.parameters
    is_package_composite = spec.composite and spec.declared.__module__.startswith("emberharmony.")
    if not is_package_composite or facts.reads or facts.view or spec.name in _ROUNDED or spec.takes_callable:
        return False
    takes_tensors = any(p.role in ("TensorLike", "Operand", "Tensors") and not p.cast for p in parameters)
    return takes_tensors and _OUTSIDE.isdisjoint(p.name for p in parameters)


class JAXFusedOps:
    """Holds the fused composites as methods, which `add_fused_ops` adds."""


def add_fused_ops(backend: type) -> None:
    """Adds to `JAXFusedOps`, a base of the backend, the composites that it does not define, each as one program."""
    for name, spec in OPS.items():
        if not hasattr(backend, name) and can_fuse(spec):
            setattr(JAXFusedOps, name, _fused_method(name))
