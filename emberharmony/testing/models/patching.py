"""Hooks for libraries without hooks: the methods of module classes are wrapped while a `with` block runs."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from emberharmony.testing.models.adapter import Hook


@contextlib.contextmanager
def hook_classes(modules: Mapping[str, Any], hook: Hook, method: str = "__call__") -> Iterator[None]:
    """Calls a hook before and after each call of some modules while a `with` block runs.

    Args:
        modules: the modules by name.
        hook: the hook.
        method: the method that makes a call.
    """
    path_by_id = {id(module): path for path, module in reversed(list(modules.items()))}
    running_calls: list[int] = []  # a method that calls the same method of its base class counts as one call
    with contextlib.ExitStack() as stack:
        for owner_class in {
            owner for module in modules.values() if (owner := _class_that_defines(type(module), method))
        }:
            stack.enter_context(_wrap_method(owner_class, method, path_by_id, running_calls, hook))
        yield


def _class_that_defines(kind: type, method: str) -> type | None:
    return next((base for base in kind.__mro__ if method in vars(base) and base is not object), None)


@contextlib.contextmanager
def _wrap_method(
    kind: type, method: str, paths: dict[int, str], running_calls: list[int], hook: Hook
) -> Iterator[None]:
    original_method = vars(kind)[method]

    @functools.wraps(original_method)
    def call_with_hook(module: Any, /, *args: Any, **kwargs: Any) -> Any:
        module_path = paths.get(id(module))
        if module_path is None or (running_calls and running_calls[-1] == id(module)):
            return original_method(module, *args, **kwargs)
        running_calls.append(id(module))
        try:
            args, kwargs = hook.enter(module_path, args, kwargs)
            result = original_method(module, *args, **kwargs)
        except BaseException:
            hook.leave(module_path)
            raise
        finally:
            running_calls.pop()
        return hook.exit(module_path, result)

    setattr(kind, method, call_with_hook)
    try:
        yield
    finally:
        setattr(kind, method, original_method)


@contextlib.contextmanager
def set_attributes(owner: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Sets attributes of an object while a `with` block runs, and restores them."""
    old_value_by_name = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in old_value_by_name.items():
            setattr(owner, name, value)
