"""Fixtures of all tests: every test that asks for `backend` runs on each backend installed here."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

INSTALLED = [name for name in BUILTIN if is_installed(name)]


@pytest.fixture(params=INSTALLED)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Makes each installed backend the process's in turn, and gives its name."""
    before = ops.get_backend()
    ops.set_backend(request.param)
    yield request.param
    ops.set_backend(before)
