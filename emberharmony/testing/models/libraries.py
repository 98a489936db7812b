"""The registry of the libraries of models, by the package of a model's class."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.models.adapter import Adapter

_ADAPTERS: dict[str, str | Callable[[], Adapter]] = {
    "torch": "emberharmony.testing.models.adapters.torch:TorchModels",
    "mlx": "emberharmony.testing.models.adapters.mlx:MlxModels",
    "keras": "emberharmony.testing.models.adapters.keras:KerasModels",
    "flax": "emberharmony.testing.models.adapters.flax:FlaxModels",
    "equinox": "emberharmony.testing.models.adapters.equinox:EquinoxModels",
    "emberharmony": "emberharmony.testing.models.adapters.ours:OurModels",
}
"""The adapters of models by the package in which the class of a model, or a base class, is defined."""

_ARRAYS = {"jax": "emberharmony.testing.models.adapters.jax_arrays:JaxArrays"}
"""The adapters of functions, by the package of a library that has no models."""

_made: dict[str, Adapter] = {}


def register_adapter(package: str, adapter: str | Callable[[], Adapter]) -> None:
    """Lets `emberharmony.compare` take models of another library.

    Args:
        package: the top package of the library; a model is of it if its class, or one that this is made from, is
            defined there.
        adapter: what makes the `Adapter`, or the place of it as "package.module:name", which is imported when a model
            of the library is given.

    Raises:
        ArgumentError: if the package is not the name of a top package.
    """
    if not package.isidentifier():
        raise ArgumentError(f"register_adapter() takes the name of a top package, not {package!r}")
    _ADAPTERS[package] = adapter
    _made.pop(package, None)


def package_of(model: Any) -> str | None:
    """Returns the registered package that the class of a model comes from, or None."""
    for cls in type(model).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in _ADAPTERS and cls is not object:
            return package
    return None


def adapter_for(package: str) -> Adapter:
    """Returns the adapter of a package."""
    if package not in _made:
        adapter_class = _ADAPTERS.get(package) or _ARRAYS[package]
        if isinstance(adapter_class, str):
            module_name, _, name = adapter_class.partition(":")
            adapter_class = getattr(importlib.import_module(module_name), name)
        adapter = adapter_class()
        _made[package] = adapter
    return _made[package]


def known_packages() -> Iterator[str]:
    """Yields the packages whose models can be compared."""
    yield from _ADAPTERS


def library_of(name: str) -> str | None:
    """Returns the package of which a module, function or class of some name is, if its functions can be compared."""
    top_package = name.partition(".")[0]
    return top_package if top_package in _ADAPTERS or top_package in _ARRAYS else None
