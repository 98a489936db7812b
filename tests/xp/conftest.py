"""The namespace of each backend."""

from typing import Any

import pytest

from emberharmony.xp import namespace


@pytest.fixture
def xp(backend: str) -> Any:
    """Returns the array API namespace of each backend in turn."""
    if backend == "dask":
        pytest.skip("blocks of Dask are no arrays of a standard")
    return namespace(backend)
