"""Fixtures of all tests: a test with the parameter `backend` runs once on each installed backend."""

import functools
import gc
import importlib
import os
import signal
import zlib

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# The JAX backend computes in 64 bits, and warns if it has to switch them on.
os.environ.setdefault("JAX_ENABLE_X64", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and child processes inherit this. Some tests start programs
    # and interrupt them, so SIGINT must have its default handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def backend(ember_backend: str) -> str:
    """Returns the name of the active backend: each installed one in turn. A shorter name for `ember_backend`."""
    return ember_backend


@pytest.fixture
def quick(backend: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes torch.compile only trace, because its default compiler takes seconds for each function."""
    if backend == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    return backend


def pytest_collection_finish() -> None:
    """Exempts the millions of objects that live until the end from garbage collection, which took half a second."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark of the tests that run in part."""
    config.addinivalue_line(
        "markers", "sampled(n): outside of the deep profile, an n-th of the cases on other backends"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out most cases of tests marked as `sampled` on other backends than NumPy; `make deep` runs all of them."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "deep":
        return
    left_out = [item for item in items if _is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    out = set(left_out)
    items[:] = [item for item in items if item not in out]


def _is_left_out(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("sampled")
    backend = getattr(item, "callspec", None) and item.callspec.params.get("ember_backend")  # type: ignore[attr-defined]
    if mark is None or backend in (None, "numpy"):
        return False
    return zlib.crc32(item.name.encode()) % int(mark.args[0]) != 0
