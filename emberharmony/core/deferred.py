"""Lazy imports of modules that few programs need, so that the others do not pay for them."""

import importlib
from typing import Any


class Deferred:
    """A stand-in for a module, which it imports when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, name: str) -> Any:
        # Keep the module, because torch.compile can trace an attribute but not an import. Do not take it from
        # sys.modules, where another thread may have put a module whose import has not finished.
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, name)
