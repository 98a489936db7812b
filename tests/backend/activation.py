"""Makes backends active that are no choice of `--ember-backend`: optional ones, and one over the array API."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module

import pytest

from emberharmony import ops
from emberharmony.backend import Backend, discovery, from_array_api

LIBRARIES = {"jax": "jax", "dask": "dask", "strict": "array_api_strict"}


@contextmanager
def named_strict() -> Iterator[Backend]:
    """Makes a backend over array-api-strict, which has the name "strict" while the block runs, and yields it."""
    library = import_module(LIBRARIES["strict"])
    made = from_array_api("strict", library, tensor_type=type(library.asarray(0)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(discovery._LOADED, "strict", made)
        yield made


@contextmanager
def active(name: str) -> Iterator[Backend]:
    """Makes a backend active, or "strict" over the array API, and yields it."""
    with ExitStack() as stack:
        if name == "strict":
            stack.enter_context(named_strict())
        if name == "dask":
            # A thread of Dask's pool keeps the error of its last task, whose frames keep the backend's block alive.
            stack.enter_context(import_module("dask").config.set(scheduler="synchronous"))
        yield stack.enter_context(ops.use_backend(name))  # type: ignore[arg-type]
