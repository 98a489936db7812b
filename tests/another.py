"""Another backend than the one of a test, for tests that switch between two."""

import pytest

from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.types import BackendName


def another(backend: str) -> BackendName:
    """Returns NumPy, or for NumPy the first other backend that is installed; without one the test is skipped."""
    others = [name for name in BUILTIN if name != backend and is_installed(name)]
    if not others:
        pytest.skip("there is no other backend")
    return BackendName(others[0])
