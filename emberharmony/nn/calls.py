"""Wraps the calls of modules while ops are observed, so that watchers know the module of each op.

`Tracker` puts a wrapper on the `__call__` of each class of modules, and takes it away at the end, so the calls of a
program that observes nothing cost nothing.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from emberharmony.core.errors import EmberError
from emberharmony.core.state.locations import MADE
from emberharmony.nn.walk import Holder, named_modules
from emberharmony.transforms.observe import call_module

_ROOTS = 8
"""The most models whose module names are cached, since transforms make a new model object for each call."""


class Calls:
    """Installs and removes the wrappers of module calls, and caches the names of modules in their models."""

    def __init__(self) -> None:
        self._wrapped: dict[type, Callable[..., Any]] = {}
        self._names: dict[int, tuple[Holder, dict[int, tuple[Holder, str]]]] = {}

    def start(self) -> None:
        """Wraps `__call__` of all module classes, also of those that are defined later."""
        for holder_class in _subclasses(Holder):
            self.wrap(holder_class)
        MADE.append(self.wrap)

    def stop(self) -> None:
        """Restores the original `__call__` of all module classes."""
        if self.wrap in MADE:
            MADE.remove(self.wrap)
        for holder_class, original in self._wrapped.items():
            if vars(holder_class).get("__call__") is not original and hasattr(
                vars(holder_class).get("__call__"), "of_watching"
            ):
                setattr(holder_class, "__call__", original)  # noqa: B010  (mypy refuses the assignment)
        self._wrapped.clear()
        self._names.clear()

    def wrap(self, kind: type) -> None:
        """Wraps `__call__` of a module class, if the class itself defines it."""
        original_call = vars(kind).get("__call__")
        if not callable(original_call) or hasattr(original_call, "of_watching"):
            return

        @functools.wraps(original_call)
        def watched_call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            return call_module(module, original_call, self._module_path, args, kwargs)

        watched_call.of_watching = True  # type: ignore[attr-defined]
        self._wrapped[kind] = original_call
        setattr(kind, "__call__", watched_call)  # noqa: B010

    def _module_path(self, module: Any, root: Any, outer: str) -> str:
        """Returns the path of a module: the class of the outermost module, then the name in it."""
        if module is root:
            return type(module).__name__
        root_and_names = self._names.get(id(root))
        if root_and_names is None or root_and_names[0] is not root or not _is_named(root_and_names[1], module):
            if len(self._names) >= _ROOTS:
                self._names.clear()
            root_and_names = self._names[id(root)] = root, _modules_and_names_by_id(root)
        module_and_name = root_and_names[1].get(id(module))
        if (
            module_and_name is None or module_and_name[0] is not module
        ):  # the module was made by a call, or is in an object that is no module
            return f"{outer}.{type(module).__name__}"
        return f"{type(root).__name__}.{module_and_name[1]}"


def _is_named(names: dict[int, tuple[Holder, str]], module: Any) -> bool:
    return names.get(id(module), (None,))[0] is module


def _modules_and_names_by_id(root: Holder) -> dict[int, tuple[Holder, str]]:
    try:
        return {id(module): (module, name) for name, module in named_modules(root)}
    except EmberError:  # modules of a model that contains itself have no names
        return {}


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


CALLS = Calls()
