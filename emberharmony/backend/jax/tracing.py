"""Recognises the tracers of JAX: those of tensors that are being differentiated, mapped over or compiled."""

from typing import Any

import jax
import numpy as np

from emberharmony.core.parameter import Buffer, Parameter
from emberharmony.core.tracing import TELLERS

Tracer = jax.core.Tracer
READS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""The errors that JAX raises when a program reads a value that is not computed yet."""
UNREAD = (
    "a value is read, but there is none while JAX compiles the function or maps over it: choose by ops.where or "
    "ops.cond, take what decides as a Python number, or run the function without ops.compile, jax.jit and vmap"
)
"""The message of a program that reads such a value."""


def is_traced(x: Any) -> bool:
    """Returns whether a running transform of JAX differentiates with respect to a tensor, or to an input of it.

    The tracers of a gradient have a primal and those of a map a value, which may be a tracer in turn.
    """
    while isinstance(x, Tracer):
        if hasattr(x, "primal"):
            return True
        x = getattr(x, "val", None)
    return False


def strip_tracers(x: Any) -> jax.Array | None:
    """Returns a tensor without the tracers of gradients; None if it has no values, as in a compiled function."""
    while isinstance(x, Tracer):
        x = getattr(x, "primal", None)
    return x


def array_if_on_host(x: Any) -> np.ndarray | None:
    """Returns the values of a tensor in the host's memory as a NumPy array; None for other tensors."""
    concrete_tensor = strip_tracers(x)
    if concrete_tensor is None or next(iter(concrete_tensor.devices())).platform != "cpu":
        return None
    return np.asarray(concrete_tensor)


def to_host_array(x: Any) -> np.ndarray:
    """Returns the values of a tensor as a NumPy array, without its gradient.

    Raises:
        TypeError: one of `READS`, if the tensor has no values.
    """
    concrete_tensor = strip_tracers(x)
    return np.asarray(x if concrete_tensor is None else concrete_tensor)


def bool_or_default(test: Any, otherwise: bool) -> bool:
    """Returns a boolean tensor without axes as a bool; another value if the tensor is traced and has no value."""
    concrete_test = strip_tracers(test)
    return otherwise if concrete_test is None else bool(concrete_test)


TELLERS[jax.Array] = is_traced


def _register_cells() -> None:
    """Registers parameters and buffers with JAX, so that its functions accept them in place of their tensors.

    JAX 0.10.2 asks `__jax_array__` in operators and functions that it does not compile, such as `jnp.concatenate`, and
    refuses it in the others (`jnp.exp`). A node of a tree that is rebuilt as its only leaf is a tensor there.
    """
    for cell_class in (Parameter, Buffer):
        jax.tree_util.register_pytree_node(
            cell_class, lambda cell: ((cell.value,), None), lambda _, tensors: tensors[0]
        )


_register_cells()
