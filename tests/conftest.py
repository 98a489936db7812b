"""Fixtures of all tests: every test that asks for `backend` runs on each backend installed here."""

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and the programs that tests start and interrupt inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def backend(ember_backend: str) -> str:
    """Makes each installed backend the process's in turn, and gives its name: the plugin's fixture by a shorter one."""
    return ember_backend
