"""The adapter of a model or function: which library a function is of, and the models that it refers to."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from emberharmony.core.errors import ArgumentTypeError, brief
from emberharmony.testing.models.adapter import Adapter, Hook
from emberharmony.testing.models.libraries import adapter_for, known_packages, library_of, package_of


def adapter_of(model: Any) -> Adapter:
    """Returns the adapter of the library of a model, or of the model that a function refers to.

    Raises:
        ArgumentTypeError: if the model is of no known library.
    """
    package = package_of(model)
    if package is None:
        adapter = adapter_of_function(model) if callable(model) else None
        if adapter is not None:
            return adapter
        names_text = ", ".join(known_packages())
        raise ArgumentTypeError(
            f"compare(): {brief(model)} is of none of the libraries {names_text}; testing.register_adapter() adds one"
        )
    return adapter_for(package)


def adapter_of_function(fn: Callable[..., Any]) -> Adapter | None:
    """Returns the adapter of a function: of the models that it refers to, or of the library that its names are of."""
    package = next((package for _, model in models_in(fn) if (package := package_of(model))), None)
    if package is None:
        package = next((package for value in _objects_referred_to(fn) if (package := _library_of_object(value))), None)
    return None if package is None else Functions(adapter_for(package))


def models_in(fn: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yields the models that a function refers to, with their names there."""
    seen_ids: set[int] = set()
    for name, value in _names_in(fn):
        if (
            not isinstance(value, type)
            and package_of(value) is not None
            and callable(value)
            and id(value) not in seen_ids
        ):
            seen_ids.add(id(value))
            yield name, value


def _names_in(fn: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(fn, partial):
        yield from _names_in(fn.func)
        yield from ((f"arg{i}", value) for i, value in enumerate(fn.args))
        yield from fn.keywords.items()
    elif not isinstance(fn, type) and package_of(getattr(fn, "__wrapped__", None)):  # `jax.vmap` wraps it
        yield "model", fn.__wrapped__
    elif isinstance(fn, MethodType):
        yield "model", fn.__self__
    elif isinstance(fn, FunctionType):
        function_code = fn.__code__
        yield from ((name, fn.__globals__[name]) for name in function_code.co_names if name in fn.__globals__)
        for name, cell in zip(function_code.co_freevars, fn.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:  # a cell of a variable that is not set yet
                continue


def _objects_referred_to(fn: Any) -> Iterator[Any]:
    yield fn
    for _, value in _names_in(fn):
        yield value
        if isinstance(value, FunctionType):
            yield from (inner_model for _, inner_model in _names_in(value))


def _library_of_object(value: Any) -> str | None:
    """Returns the registered package that a module, function or class is from."""
    module_name = getattr(value, "__name__" if type(value).__name__ == "module" else "__module__", None)
    return library_of(module_name) if isinstance(module_name, str) else None


_OF_ARRAYS = (
    *("put", "is_array", "host", "native", "to_float64", "version", "attention", "is_floating", "add", "multiply"),
    *("dot", "traced_as", "layout_of"),
)


class Functions(Adapter):
    """The adapter of a function of a library: the function is the model, and those that it refers to are its modules.

    Args:
        adapter: of the library.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._hook: Hook | None = None
        self.name, self.layout = adapter.name, adapter.layout
        for name in _OF_ARRAYS:
            setattr(self, name, getattr(adapter, name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    def modules(self, model: Any) -> dict[str, Any]:
        """Returns the function, and the modules of the models that it refers to."""
        modules_by_path = {"": model}
        for name, inner_model in _models_of_function(model):
            modules_by_path |= {
                f"{name}.{path}" if path else name: module
                for path, module in self._adapter.modules(inner_model).items()
            }
        return modules_by_path

    def own(self, module: Any) -> dict[str, Any]:
        """Returns the tensors of a module; a function has none."""
        return self._adapter.own(module) if package_of(module) else {}

    def channels_last(self, model: Any) -> bool:
        """Returns whether the convolutions of a model take images with the channels on the last axis."""
        return any(self._adapter.channels_last(inner_model) for _, inner_model in _models_of_function(model))

    def options(self, module: Any) -> dict[str, Any]:
        """Returns the options of a module."""
        return self._adapter.options(module) if package_of(module) else {}

    def is_container(self, module: Any) -> bool:
        """Returns whether a module only holds others."""
        return bool(package_of(module)) and self._adapter.is_container(module)

    def title(self, module: Any) -> str:
        """Returns the class of a module, or the name of the function."""
        return self._adapter.title(module) if package_of(module) else getattr(module, "__name__", "function")

    @contextlib.contextmanager
    def attach(self, model: Any, hook: Hook) -> Iterator[None]:
        """Calls a hook before and after each call of the function and of its models' modules while a block runs."""
        with contextlib.ExitStack() as stack:
            for name, inner_model in _models_of_function(model):
                stack.enter_context(self._adapter.attach(inner_model, _Below(hook, name)))
            self._hook = hook
            try:
                yield
            finally:
                self._hook = None

    @contextlib.contextmanager
    def wide(self, model: Any) -> Iterator[None]:
        """Makes the models of the function compute in float64 while a `with` block runs."""
        with contextlib.ExitStack() as stack:
            for _, inner_model in _models_of_function(model)[:1] or [("", None)]:
                stack.enter_context(self._adapter.wide(inner_model))
            yield

    @contextlib.contextmanager
    def keep_state(self, model: Any) -> Iterator[None]:
        """Restores the state of the function's models after a `with` block."""
        with contextlib.ExitStack() as stack:
            for _, inner_model in _models_of_function(model):
                stack.enter_context(self._adapter.keep_state(inner_model))
            yield

    @contextlib.contextmanager
    def prepare_training(self, model: Any) -> Iterator[None]:
        """Prepares the function's models for `differentiate` while a `with` block runs."""
        with contextlib.ExitStack() as stack:
            for _, inner_model in _models_of_function(model):
                stack.enter_context(self._adapter.prepare_training(inner_model))
            yield

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        """Returns the gradients of a loss, as the adapter of the library does for the modules of the function."""
        return type(self._adapter).differentiate(self, model, loss, arrays)

    def forward(self, model: Any, args: Any, kwargs: Any) -> Any:
        """Calls the function so that its result can be differentiated."""
        return self._call_unhooked(self._adapter.forward, model, args, kwargs)

    def call(self, model: Any, args: Any, kwargs: Any) -> Any:
        """Calls the function, or a module."""
        return self._call_unhooked(self._adapter.call, model, args, kwargs)

    def _call_unhooked(self, call: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> Any:
        hook, self._hook = self._hook, None
        if hook is None or package_of(model) is not None:
            return call(model, args, kwargs)
        args, kwargs = hook.enter("", args, kwargs)
        return hook.exit("", call(model, args, kwargs))


class _Below:
    """A hook that prefixes the paths of a model's modules with the model's name in a function."""

    def __init__(self, hook: Hook, name: str) -> None:
        self._hook, self._name = hook, name

    def _full_path(self, path: str) -> str:
        return f"{self._name}.{path}" if path else self._name

    def enter(self, path: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Takes the arguments of a call."""
        return self._hook.enter(self._full_path(path), args, kwargs)

    def exit(self, path: str, result: Any) -> Any:
        """Takes the result of a call."""
        return self._hook.exit(self._full_path(path), result)

    def leave(self, path: str) -> None:
        """Ends a call that raised an error."""
        self._hook.leave(self._full_path(path))


def _models_of_function(fn: Any) -> list[tuple[str, Any]]:
    return [] if package_of(fn) is not None else list(models_in(fn))
