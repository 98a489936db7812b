"""The backend over array-api-strict, for tests of backends."""

from collections.abc import Iterator

import pytest

from emberharmony import ops
from emberharmony.backend import Backend
from tests.backend.activation import LIBRARIES, named_strict


@pytest.fixture
def strict() -> Iterator[Backend]:
    pytest.importorskip(LIBRARIES["strict"])
    before = ops.get_backend()
    with named_strict() as backend:
        yield backend
        ops.set_backend(before)
