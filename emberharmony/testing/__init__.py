"""Tools to test that backends agree: `assert_agree`, `gradcheck`, the conformance checks, a fuzzer, a pytest plugin."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emberharmony.testing.agree import assert_agree as assert_agree
    from emberharmony.testing.gradient_check import gradcheck as gradcheck

__all__ = ["assert_agree", "gradcheck"]
_LAZY = {"assert_agree": "emberharmony.testing.agree", "gradcheck": "emberharmony.testing.gradient_check"}


def __getattr__(name: str) -> Any:
    """Imports a tool on first use.

    pytest loads this package with the plugin in every run, and many runs need no op.
    """
    if name not in _LAZY:
        raise AttributeError(f"module 'emberharmony.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
