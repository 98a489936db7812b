"""Fixtures of all tests: a test with the parameter `backend` runs once on each installed backend."""

import gc
import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and child processes inherit this. Some tests start programs
    # and interrupt them, so SIGINT must have its default handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def backend(ember_backend: str) -> str:
    """Returns the name of the active backend: each installed one in turn. A shorter name for `ember_backend`."""
    return ember_backend


def pytest_collection_finish() -> None:
    """Exempts the millions of objects that live until the end from garbage collection, which took half a second."""
    gc.collect()
    gc.freeze()
