"""Models of Keras: `keras.Layer`, on the backend that Keras has."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from emberharmony.core.errors import BackendUnavailableError
from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.adapter import Adapter, Hook, plain_options
from emberharmony.testing.models.patching import hook_classes, set_attributes

_NO_OPTIONS = ("name", "trainable", "dtype", "built", "build_config")


class KerasModels(Adapter):
    """The adapter of Keras."""

    name = "keras"
    layout = "keras"

    def __init__(self) -> None:
        self._keras: Any = sys.modules["keras"]
        self._arrays = _array_adapter(self._keras.backend.backend())

    def version(self) -> str:
        return f"{self._keras.__version__} on {self._keras.backend.backend()}"

    def channels_last(self, model: Any) -> bool:
        data_formats = [getattr(layer, "data_format", None) for layer in self.modules(model).values()]
        return next((data_format == "channels_last" for data_format in data_formats if data_format), True)

    def modules(self, model: Any) -> dict[str, Any]:
        layers_by_path = {"": model}
        for name, layer in self._modules_in(model, ""):
            if not any(layer is known_layer for known_layer in layers_by_path.values()):
                layers_by_path[name] = layer
        return layers_by_path

    def _modules_in(self, layer: Any, path: str) -> Iterator[tuple[str, Any]]:
        layer_class = self._keras.layers.Layer
        seen_items: list[Any] = []
        member_by_name = {**getattr(layer, "_modules", {}), **vars(layer)}
        for name, value in member_by_name.items():
            if name in ("_modules", "_layers", "_functional", "_metrics", "_loss_tracker"):
                continue
            keys_and_items = (
                value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            )
            layer_by_name = (
                {name.strip("_"): value}
                if isinstance(value, layer_class)
                else {f"{name}.{key}": x for key, x in keys_and_items}
            )
            for own_name, item in layer_by_name.items():
                if isinstance(item, layer_class) and not any(item is seen_item for seen_item in seen_items):
                    seen_items.append(item)
                    yield f"{path}.{own_name}".removeprefix("."), item
                    yield from self._modules_in(item, f"{path}.{own_name}".removeprefix("."))
        for item in getattr(layer, "_layers", ()):
            if not any(item is seen_item for seen_item in seen_items):
                yield f"{path}.{item.name}".removeprefix("."), item
                yield from self._modules_in(item, f"{path}.{item.name}".removeprefix("."))

    def _variables(self, layer: Any) -> list[Any]:
        return [v for v in (*layer._trainable_variables, *layer._non_trainable_variables) if "seed" not in v.path]

    def own(self, module: Any) -> dict[str, Any]:
        return {variable.name: variable._value for variable in self._variables(module)}

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        for variable in self._variables(module):
            if variable.name in tensors:
                variable._value = tensors[variable.name]

    def is_array(self, value: Any) -> bool:
        return bool(self._arrays.is_array(value))

    def host(self, array: Any) -> Host:
        host: Host = self._arrays.host(array)
        return host

    def native(self, array: np.ndarray[Any, Any], like: Any = None) -> Any:
        return self._arrays.native(array, like)

    def to_float64(self, array: Any) -> Any:
        return self._arrays.to_float64(array)

    def is_floating(self, array: Any) -> bool:
        return bool(self._arrays.is_floating(array))

    @contextlib.contextmanager
    def attach(self, model: Any, hook: Hook) -> Iterator[None]:
        layers = self.modules(model)
        with contextlib.ExitStack() as stack:
            activation_hook = _BeforeActivation(hook)
            for path, layer in layers.items():
                if _is_linear_with_activation(layer):
                    stack.enter_context(
                        set_attributes(layer, {"activation": activation_hook.activation(path, layer.activation)})
                    )
            stack.enter_context(hook_classes(layers, activation_hook))
            yield

    @contextlib.contextmanager
    def wide(self, model: Any) -> Iterator[None]:
        floatx_before = self._keras.config.floatx()
        with contextlib.ExitStack() as stack:
            for layer in self.modules(model).values() if model is not None else ():
                stack.enter_context(set_attributes(layer, {"autocast": False}))
            self._keras.config.set_floatx("float64")
            stack.callback(self._keras.config.set_floatx, floatx_before)
            stack.enter_context(self._arrays.wide(model))
            yield

    @contextlib.contextmanager
    def keep_state(self, model: Any) -> Iterator[None]:
        variables = [v for layer in self.modules(model).values() for v in layer._non_trainable_variables]
        variables_and_values = [
            (variable, variable._value, self.host(variable._value).bits.copy()) for variable in variables
        ]
        try:
            yield
        finally:
            for variable, value, bits in variables_and_values:
                variable._value = value
                if not np.array_equal(self.host(value).bits, bits):
                    variable.assign(bits)

    def call(self, model: Any, args: Any, kwargs: Any) -> Any:
        return self._arrays.call(model, args, kwargs)

    def forward(self, model: Any, args: Any, kwargs: Any) -> Any:
        return self._arrays.forward(model, args, kwargs)

    @contextlib.contextmanager
    def prepare_training(self, model: Any) -> Iterator[None]:
        layers = self.modules(model).values()
        layers_and_tensors = [(layer, self.own(layer)) for layer in layers]
        try:
            for layer, tensors in layers_and_tensors:
                self.put(layer, {name: self._arrays.leaf(tensor) for name, tensor in tensors.items()})
            yield
        finally:
            for layer, tensors in layers_and_tensors:
                self.put(layer, tensors)

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        layers = self.modules(model)
        tensors_by_name = {
            (path, variable.name): variable._value
            for path, layer in layers.items()
            for variable in layer._trainable_variables
            if variable.trainable
        }

        def put(tensors: Sequence[Any]) -> None:
            for (path, name), tensor in zip(tensors_by_name, tensors, strict=True):
                self.put(layers[path], {name: tensor})

        gradients = self._arrays.gradients_of(loss, put, list(arrays), list(tensors_by_name.values()))
        return gradients[: len(arrays)], dict(zip(tensors_by_name, gradients[len(arrays) :], strict=True))

    def attention(self, module: Any) -> dict[str, int]:
        if type(module).__name__ not in ("MultiHeadAttention", "GroupedQueryAttention"):
            return {}
        head_count = getattr(module, "num_query_heads", None) or module.num_heads
        key_head_count = getattr(module, "num_key_value_heads", head_count)
        head_width = getattr(module, "_key_dim", None) or module.head_dim
        return {
            "embed_dim": head_count * head_width,
            "head_dim": head_width,
            "num_heads": head_count,
            "num_kv_heads": key_head_count,
        }

    def options(self, module: Any) -> dict[str, Any]:
        own_options = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        if type(module).__module__.startswith("keras."):
            with contextlib.suppress(Exception):
                own_options = module.get_config()
        return plain_options({name: value for name, value in own_options.items() if name not in _NO_OPTIONS})

    def is_container(self, module: Any) -> bool:
        return type(module).__name__ == "Sequential"


def _is_linear_with_activation(layer: Any) -> bool:
    """Returns whether a layer applies an activation to a product or convolution, which is a layer alone elsewhere."""
    return (
        hasattr(layer, "kernel")
        and not hasattr(layer, "recurrent_kernel")
        and callable(getattr(layer, "activation", None))
    )


class _BeforeActivation:
    """A hook that passes on the input of a layer's activation as the result of the layer.

    `Dense(8, activation="relu")` is compared with a `Linear` of other libraries, where the activation is a call of
    its own.

    Args:
        hook: gets the calls.
    """

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._told_paths: set[str] = set()

    def activation(self, path: str, activation: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns the activation of a layer, wrapped so that the hook sees its input first."""

        def call_activation(x: Any) -> Any:
            self._told_paths.add(path)
            return activation(self._hook.exit(path, x))

        return call_activation

    def enter(self, path: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        self._told_paths.discard(path)
        return self._hook.enter(path, args, kwargs)

    def exit(self, path: str, result: Any) -> Any:
        return result if path in self._told_paths else self._hook.exit(path, result)

    def leave(self, path: str) -> None:
        if path not in self._told_paths:
            self._hook.leave(path)


def _array_adapter(backend: str) -> Any:
    """Returns the adapter of the arrays that a backend of Keras uses.

    Raises:
        BackendUnavailableError: if models of the backend cannot be compared.
    """
    if backend == "torch":
        from emberharmony.testing.models.adapters.keras_on_torch import TorchOfKeras

        return TorchOfKeras()
    if backend == "jax":
        from emberharmony.testing.models.adapters.keras_on_jax import JaxOfKeras

        return JaxOfKeras()
    raise BackendUnavailableError(
        f"compare() takes models of Keras on its backends 'torch' and 'jax', not {backend!r}: set KERAS_BACKEND"
    )
