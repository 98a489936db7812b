"""The base class of the adapters through which the comparison of two models uses a library of models."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from emberharmony.testing.differences.records import Host


class Hook(Protocol):
    """The protocol of the hooks that an adapter calls before and after each call of a module."""

    def enter(self, path: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Sees the arguments of a module's call, and returns the arguments that the module gets."""

    def exit(self, path: str, result: Any) -> Any:
        """Sees the result of a module's call, and returns the result that the caller gets."""

    def leave(self, path: str) -> None:
        """Notes the end of a module's call that raised an error."""


class Adapter:
    """The base class of adapters: the functions of a library of models that the comparison of two models needs.

    Attributes:
        name: the name of the library, as reports have it.
        layout: whose layout the tensors of its layers are in: "torch", "mlx" or "keras".
    """

    name = ""
    layout = "torch"

    def version(self) -> str:
        """Returns the version of the library."""
        raise NotImplementedError

    def channels_last(self, model: Any) -> bool:
        """Returns whether the convolutions of a model take images with the channels on the last axis."""
        return False

    def modules(self, model: Any) -> dict[str, Any]:
        """Returns the modules of a model by their names, each once; the model itself has the name ""."""
        raise NotImplementedError

    def own(self, module: Any) -> dict[str, Any]:
        """Returns the parameters and buffers directly in a module by name."""
        raise NotImplementedError

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        """Replaces parameters and buffers of a module, by the names that `own` returns.

        Raises:
            NotImplementedError: if modules of the library do not change.
        """
        raise NotImplementedError

    def is_array(self, value: Any) -> bool:
        """Returns whether a value is an array of the library."""
        raise NotImplementedError

    def host(self, array: Any) -> Host:
        """Returns an array of the library as an array on the host."""
        raise NotImplementedError

    def native(self, array: np.ndarray[Any, Any], like: Any = None) -> Any:
        """Returns an array of the library, on the device and of the dtype of another one if one is given."""
        raise NotImplementedError

    def attach(self, model: Any, hook: Hook) -> AbstractContextManager[None]:
        """Calls a hook before and after each call of a module of the model while a `with` block runs."""
        raise NotImplementedError

    def wide(self, model: Any) -> AbstractContextManager[None]:
        """Makes the model compute in float64 while a `with` block runs, for inputs in float64.

        Casts of the model to narrower floating dtypes are casts to float64 in the block.
        """
        raise NotImplementedError

    def to_float64(self, array: Any) -> Any:
        """Returns a floating array in float64."""
        raise NotImplementedError

    def keep_state(self, model: Any) -> AbstractContextManager[None]:
        """Restores, after a `with` block, the state that calls of the model change, such as running statistics."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def keep_tensors(self, model: Any) -> Iterator[None]:
        """Restores all tensors of a model after a `with` block, for libraries whose calls replace arrays."""
        modules_and_tensors = [(module, self.own(module)) for module in self.modules(model).values()]
        try:
            yield
        finally:
            for module, tensors in modules_and_tensors:
                self.put(module, tensors)

    def trained_tensors(self, modules: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        """Returns the floating parameters of modules in float64, by the path of the module and their name in it."""
        return {
            (path, name): self.to_float64(tensor)
            for path, module in modules.items()
            for name, tensor in self.own(module).items()
            if self.is_floating(tensor) and self.is_trained(module, name)
        }

    def is_trained(self, module: Any, name: str) -> bool:
        """Returns whether a tensor of a module is a parameter."""
        return True

    def call(self, model: Any, args: Any, kwargs: Any) -> Any:
        """Calls a model or module without computing gradients."""
        return model(*args, **kwargs)

    def options(self, module: Any) -> dict[str, Any]:
        """Returns the options of a module: its attributes that are numbers, texts or tuples of them."""
        return plain_options(vars(module))

    def title(self, module: Any) -> str:
        """Returns the class of a module by the name that `nn.layouts` has for it in the layout."""
        return type(module).__name__

    def layout_of(self, module: Any) -> str:
        """Returns the library whose layout the tensors of a module have."""
        return self.layout

    def attention(self, module: Any) -> dict[str, int]:
        """Returns `embed_dim`, `head_dim`, `num_heads` and `num_kv_heads` of a layer of attention; {} of others."""
        return {}

    def is_container(self, module: Any) -> bool:
        """Returns whether a module only holds others, and is not called."""
        return False

    def is_floating(self, array: Any) -> bool:
        """Returns whether an array has a floating dtype."""
        return self.host(array).dtype.startswith(("float", "bfloat"))

    def forward(self, model: Any, args: Any, kwargs: Any) -> Any:
        """Calls a model so that its result can be differentiated."""
        return model(*args, **kwargs)

    def traced_as(self, traced: Any, array: Any) -> Any:
        """Returns an array as a traced one with the hidden batch axis of another array, if a library has one."""
        return array

    def add(self, x: Any, y: Any) -> Any:
        """Returns the sum of two arrays, which may be traced."""
        return x + y

    def multiply(self, x: Any, y: Any) -> Any:
        """Returns the product of two arrays, which may be traced."""
        return x * y

    def dot(self, x: Any, y: Any) -> Any:
        """Returns the sum of the products of the elements of two arrays, which may be traced."""
        return (x * y).sum()

    def prepare_training(self, model: Any) -> AbstractContextManager[None]:
        """Prepares a model for `differentiate` while a `with` block runs, and restores it after that."""
        return contextlib.nullcontext()

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        """Returns the gradients of a loss with respect to arrays and to the trained tensors of a model.

        Args:
            model: the model.
            loss: takes the arrays, calls the model and returns a scalar of the library.
            arrays: what the loss is differentiated with respect to.

        Returns:
            the gradients with respect to the arrays, None for one that the loss does not depend on; and those with
            respect to the parameters, by the names of the module and of the parameter in it.
        """
        raise NotImplementedError


def plain_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of some attributes that are options: numbers, texts and tuples of them."""
    return {str(name): value for name, value in values.items() if _is_option(value)}


def _is_option(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= 8 and all(_is_option(item) for item in value)
    return isinstance(value, (bool, int, float, str, np.integer, np.floating)) or value is None
