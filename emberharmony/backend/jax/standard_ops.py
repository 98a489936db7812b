"""The ops that JAX takes over from `backend/arrayapi`, with `jax.numpy` as the namespace; other mixins correct some."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp

from emberharmony.backend.arrayapi import standard_ops
from emberharmony.backend.arrayapi.library import Library
from emberharmony.backend.jax.dtypes import DTYPES, adding, cast, of_host, program, promotion
from emberharmony.backend.promote import FLOAT

F = TypeVar("F", bound=Callable[..., Any])


class _JAXLibrary(Library):
    """Functions of `jax.numpy`, which take all dtypes; those of several steps are compiled as one program."""

    takes_all: ClassVar[bool] = True
    floating: ClassVar[str] = FLOAT
    cast = staticmethod(cast)
    adding = staticmethod(adding)
    from_host = staticmethod(of_host)

    def program(self, function: F, *static: str) -> F:
        """Returns a function of tensors, compiled."""
        compiled: F = program(*static)(function)
        return compiled


STANDARD = _JAXLibrary("jax", jnp, DTYPES, promotion)
"""What the definitions over the standard call."""
JAXStandardOps: Any = type("JAXStandardOps", (), standard_ops(STANDARD, jax.Array))
"""The mixin that holds these ops."""
