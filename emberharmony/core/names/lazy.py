"""Packages whose public names are loaded on first use, so that a program pays for those that it uses."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def public_getattr_and_dir(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the `__getattr__` and the `__dir__` of a public module that has imported all it has, and documents it.

    `__getattr__` raises `AttributeError` with a hint; `__dir__` returns the names that are defined in it or below.
    """
    # Imported here, because `import emberharmony` loads nothing but names.
    from emberharmony.core.docstrings.docstring import document

    # Documents it here, not where the package loads its name, because another module may import it before.
    document(sys.modules[module])

    def list_public_names() -> list[str]:
        return sorted(
            name
            for name, value in vars(sys.modules[module]).items()
            if not name.startswith("_") and f"{getattr(value, '__module__', '')}.".startswith(f"{module}.")
        )

    return lazy_getattr_and_dir(module, {})[0], list_public_names


def lazy_getattr_and_dir(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the `__getattr__` and the `__dir__` of a package.

    `__getattr__` loads a name and keeps it in the package; for an unknown one it raises `AttributeError`, which
    suggests the nearest of `__all__`. `__dir__` returns `__all__`.

    Args:
        package: its name; `__all__` is read when a name is unknown.
        homes: by public name, the full name of the module that defines it, or of the module that it is.

    Example:
        >>> __getattr__, __dir__ = lazy_getattr_and_dir(__name__, {"sin": "library.maths", "linalg": "library.linalg"})
    """

    def load_attribute(name: str) -> Any:
        if name not in homes:
            # Imported here, because only unknown names need it.
            from emberharmony.core.names.unknown_names import unknown_name_error
            from emberharmony.core.state import hooks

            hooks.install_hooks()  # Python replaces this error by its own if the name was to be imported

            raise unknown_name_error(package, name)
        # Imported here, because `import emberharmony` loads nothing but names.
        from emberharmony.core.docstrings.docstring import document
        from emberharmony.core.state.collector import PausedCollector

        module_name = homes[name]
        with PausedCollector(lasting=True):
            module = importlib.import_module(module_name)
        attribute = module if module_name == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, attribute)
        document(attribute)
        return attribute

    return load_attribute, lambda: sorted(sys.modules[package].__all__)
