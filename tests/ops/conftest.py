"""Fixtures of the tests of ops."""

import functools
import importlib

import pytest


@pytest.fixture
def quick(backend: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes torch.compile only trace, because its default compiler takes seconds for each function."""
    if backend == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    return backend
