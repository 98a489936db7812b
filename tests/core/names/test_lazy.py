"""A package whose names are loaded on first use."""

import sys
import types

import pytest

from emberharmony.core.names.lazy import lazy_getattr_and_dir


def test_a_name_is_loaded_once_and_kept_in_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("library")
    package.__all__ = ["sub", "sqrt"]  # type: ignore[attr-defined]
    part = types.ModuleType("library.sub")
    monkeypatch.setitem(sys.modules, "library", package)
    monkeypatch.setitem(sys.modules, "library.sub", part)
    vars(package)["__getattr__"], vars(package)["__dir__"] = lazy_getattr_and_dir(
        "library", {"sub": "library.sub", "sqrt": "math"}
    )
    assert "sub" not in vars(package)
    assert package.sub is part
    assert vars(package)["sub"] is part
    assert package.sqrt(4) == 2
    assert dir(package) == ["sqrt", "sub"]
    with pytest.raises(AttributeError, match="module 'library' has no attribute 'cbrt'"):
        _ = package.cbrt
