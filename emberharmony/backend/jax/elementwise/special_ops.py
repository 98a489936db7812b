"""Special functions, on JAX: those of `backend.shared`, because several of JAX 0.10 are less accurate.

Small tensors in the memory of the host are computed by NumPy: to compile one of these programs takes seconds, and on
the CPU a program of JAX 0.10 makes 0 of subnormal numbers.
"""

import types
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.jax.derivatives import elementwise_function
from emberharmony.backend.jax.dtypes import of_host, promotion
from emberharmony.backend.jax.elementwise.elementary_ops import JAXElementaryOps
from emberharmony.backend.jax.tracing import Tracer, array_if_on_host
from emberharmony.backend.shared.elementwise.special_binding import (
    partial_derivatives,
    promoted_operands,
    shared_function_of,
    smooth_namespace,
    special_namespace,
    special_ops_class,
)
from emberharmony.backend.shared.elementwise.special_derivatives import no_gradient_error
from emberharmony.backend.shared.elementwise.special_integrals import DOUBLE, SINGLE

_FEW = 2**14
"""Up to this number of elements NumPy computes a result, if the values are at hand."""


def _namespaces(library: Any) -> list[types.SimpleNamespace]:
    """Returns the namespaces for results of up to 32 and of 64 bits that the shared functions compute with."""

    def column_of(numbers: Any, x: Any) -> Any:
        return library.asarray(numbers, x.dtype).reshape(-1, *(1,) * x.ndim)

    def take_entries(table: Any, index: Any) -> Any:
        return library.asarray(table, index.dtype)[index.astype(np.int64)]

    def repeat_step(count: int, step: Callable[[Any], Any], x: Any) -> Any:
        return jax.lax.fori_loop(0, count, lambda _, x: step(x), x)

    loops = {"loop": repeat_step} if library is jnp else {}
    return [special_namespace(library, column_of, take_entries, digits, **loops) for digits in (SINGLE, DOUBLE)]


_ON_JAX, _ON_HOST = _namespaces(jnp), _namespaces(np)


def _compute_in_float64(function: Callable[..., Any], library: Any, spaces: Any, *tensors: Any) -> Any:
    """Returns the result of a function of `backend.shared`, computed in float64 by NumPy or JAX."""
    wide_tensors = library.broadcast_arrays(*(x.astype(np.float64) for x in tensors))
    return function(spaces[tensors[0].dtype.itemsize == 8], *wide_tensors).astype(tensors[0].dtype)


def _raise_no_gradient(argument: str, y: jax.Array) -> NoReturn:
    """Raises an error for the derivative by an argument that has none."""
    raise no_gradient_error(argument)


def _special_op(name: str) -> Callable[..., jax.Array]:
    """Returns an op that computes a function of `backend.shared` in float64, as one program."""
    shared_function = shared_function_of(name)
    argument_derivatives = partial_derivatives(name, lambda: _DERIVED, _raise_no_gradient)
    return partial(
        _call_promoted,
        name,
        shared_function,
        jax.jit(
            elementwise_function(partial(_compute_in_float64, shared_function, jnp, _ON_JAX), *argument_derivatives)
        ),
    )


def _call_promoted(
    name: str, function: Callable[..., Any], smooth_op: Callable[..., jax.Array], *arguments: Any
) -> jax.Array:
    tensors = promoted_operands(name, promotion, arguments)
    host_arrays = [None if isinstance(x, Tracer) or x.size > _FEW else array_if_on_host(x) for x in tensors]
    if any(x is None for x in host_arrays):
        return smooth_op(*tensors)
    with np.errstate(all="ignore"):
        return of_host(_compute_in_float64(function, np, _ON_HOST, *host_arrays))


_Defined: Any = special_ops_class(_special_op)


class JAXSpecialOps(_Defined):  # type: ignore[misc]
    """Holds the ops of `ops/elementwise/special.py` and `ops/elementwise/transcendental.py`.

    Each is one program of XLA with derivatives of its own; the bodies take 6 to 28 times as long, for few elements.
    """

    @staticmethod
    def _inner_special(name: str, *tensors: jax.Array) -> jax.Array:
        """Returns one of the derivatives in `special_derivatives.INNER`, which can be differentiated again."""
        derivative: jax.Array = getattr(_DERIVED, name)(*tensors)
        return derivative


_DERIVED = smooth_namespace(JAXSpecialOps, jnp, _special_op, i0=JAXElementaryOps.i0)
