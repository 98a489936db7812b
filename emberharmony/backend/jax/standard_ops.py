"""The ops that JAX takes over from `backend/arrayapi`, with `jax.numpy` as the namespace; other mixins correct some."""

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from emberharmony.backend.arrayapi import standard_ops
from emberharmony.backend.arrayapi.library import Library
from emberharmony.backend.jax.device_ops import check_memory
from emberharmony.backend.jax.dtypes import (
    DTYPES,
    FLOAT,
    cast,
    compile_by_jit,
    of_host,
    promotion,
    widen,
    widen_for_sum,
)

F = TypeVar("F", bound=Callable[..., Any])


class _JAXLibrary(Library):
    """Functions of `jax.numpy`, which take all dtypes; those of several steps are compiled as one program."""

    takes_all: ClassVar[bool] = True
    floating: ClassVar[str] = FLOAT
    cast = staticmethod(cast)
    widen_for_sum = staticmethod(widen_for_sum)
    widen_for_product = widen = staticmethod(widen)
    from_host = staticmethod(of_host)

    def __init__(self) -> None:
        super().__init__("jax", jnp, DTYPES, promotion)
        eigh = partial(jnp.linalg.eigh, UPLO="L", symmetrize_input=False)
        self.linalg = types.SimpleNamespace(**vars(jnp.linalg) | {"eigh": eigh})

    def check_memory(self, shape: Sequence[int], dtype: Any) -> None:
        """Checks that a tensor is not larger than the memory of the devices.

        Raises:
            OutOfMemoryError: if it is.
        """
        check_memory(shape, dtype.itemsize)

    def number(self, value: Any, like: Any) -> Any:
        """Returns a number as a NumPy array, which becomes a part of a program; a tensor would be an argument of it."""
        return np.asarray(value, like.dtype)

    def program(self, function: F, *static: str) -> F:
        """Returns a function of tensors, compiled by `jax.jit`."""
        compiled_function: F = compile_by_jit(*static)(function)
        return compiled_function


STANDARD = _JAXLibrary()
"""What the definitions over the standard call."""
JAXStandardOps: Any = type("JAXStandardOps", (), standard_ops(STANDARD, jax.Array))
"""The mixin that holds these ops."""
