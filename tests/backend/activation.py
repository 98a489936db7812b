"""Makes backends active that are no choice of `--ember-backend`: optional ones, and one over the array API."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module

import pytest

from emberharmony import ops
from emberharmony.backend import Backend, discovery, from_array_api

LIBRARIES = {"jax": "jax", "dask": "dask", "strict": "array_api_strict"}


@contextmanager
def active(name: str) -> Iterator[Backend]:
    """Makes a backend active, or "strict" over the array API, and yields it."""
    with ExitStack() as stack:
        if name == "strict":
            library = import_module(LIBRARIES[name])
            made = from_array_api(name, library, tensor_type=type(library.asarray(0)))
            stack.enter_context(pytest.MonkeyPatch.context()).setitem(discovery._LOADED, name, made)
        if name == "dask":
            # A thread of Dask's pool keeps the error of its last task, whose frames keep the backend's block alive.
            stack.enter_context(import_module("dask").config.set(scheduler="synchronous"))
        yield stack.enter_context(ops.use_backend(name))  # type: ignore[arg-type]
