"""Models of Flax: `flax.nnx.Module`."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from emberharmony.testing.models.adapter import Hook, plain_options
from emberharmony.testing.models.adapters.jax_arrays import JaxArrays
from emberharmony.testing.models.patching import hook_classes

_TITLES = {"Linear": "Dense", "LinearGeneral": "Dense", "Embed": "Embedding", "LayerNorm": "LayerNormalization"}
_TITLES |= {"RMSNorm": "RMSNormalization", "BatchNorm": "BatchNormalization", "GroupNorm": "GroupNormalization"}
_NAMES = {"scale": "gamma", "bias": "beta", "mean": "moving_mean", "var": "moving_variance"}
_PARTS = {"query": "query_dense", "key": "key_dense", "value": "value_dense", "out": "output_dense"}
"""The names in Keras of Flax's layers and tensors, which have the layout of Keras."""


class FlaxModels(JaxArrays):
    """The adapter of Flax's NNX."""

    name = "flax"
    layout = "keras"

    def version(self) -> str:
        return f"{sys.modules['flax'].__version__}, {super().version()}"

    def channels_last(self, model: Any) -> bool:
        return True

    def modules(self, model: Any) -> dict[str, Any]:
        return {"": model, **dict(_modules_in(model, ""))}

    def own(self, module: Any) -> dict[str, Any]:
        name_by_flax_name = self._keras_names(module)
        return {name_by_flax_name.get(name, name): variable.get_raw_value() for name, variable in _variables(module)}

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        name_by_flax_name = self._keras_names(module)
        for name, variable in _variables(module):
            if name_by_flax_name.get(name, name) in tensors:
                # The raw value is set, because an assignment would make Flax check the trace.
                object.__setattr__(variable, "_raw_value", tensors[name_by_flax_name.get(name, name)])

    def is_trained(self, module: Any, name: str) -> bool:
        name_by_flax_name = self._keras_names(module)
        class_by_name = {
            name_by_flax_name.get(name, name): type(variable).__name__ for name, variable in _variables(module)
        }
        return class_by_name[name] == "Param"

    def title(self, module: Any) -> str:
        class_name = type(module).__name__
        if class_name in ("Conv", "ConvTranspose"):
            return f"Conv{len(module.kernel_size)}D" + ("Transpose" if class_name == "ConvTranspose" else "")
        return _TITLES.get(class_name, class_name)

    def _keras_names(self, module: Any) -> dict[str, str]:
        class_name = type(module).__name__
        if class_name in ("LayerNorm", "BatchNorm", "GroupNorm"):
            return _NAMES
        return {"embedding": "embeddings"} if class_name == "Embed" else {}

    def attention(self, module: Any) -> dict[str, int]:
        if type(module).__name__ != "MultiHeadAttention":
            return {}
        head_width = module.qkv_features // module.num_heads
        head_count_by_name = {"num_heads": module.num_heads, "num_kv_heads": module.num_heads}
        return {"embed_dim": module.qkv_features, "head_dim": head_width, **head_count_by_name}

    def attach(self, model: Any, hook: Hook) -> AbstractContextManager[None]:
        return hook_classes(self.modules(model), hook)

    @contextlib.contextmanager
    def keep_state(self, model: Any) -> Iterator[None]:
        variables = [variable for module in self.modules(model).values() for _, variable in _variables(module)]
        variables_and_values = [(variable, variable.get_raw_value()) for variable in variables]
        try:
            yield
        finally:
            for variable, value in variables_and_values:
                object.__setattr__(variable, "_raw_value", value)

    def options(self, module: Any) -> dict[str, Any]:
        return plain_options({name: value for name, value in vars(module).items() if not name.startswith("_")})

    def is_container(self, module: Any) -> bool:
        return type(module).__name__ in ("List", "Dict", "Sequential")


def _is_instance_of(value: Any, name: str) -> bool:
    return any(cls.__module__.startswith("flax.nnx") and cls.__name__ == name for cls in type(value).__mro__)


def _variables(module: Any) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if _is_instance_of(value, "Variable") and hasattr(value.get_raw_value(), "dtype"):
            dtype_name = str(value.get_raw_value().dtype)
            if not dtype_name.startswith(("key", "uint32")):
                yield name, value


def _modules_in(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the modules in a module, list or dict."""
    is_attention = type(value).__name__ == "MultiHeadAttention"
    names_and_items = (
        value.items() if isinstance(value, dict) else enumerate(value) if _is_list(value) else vars(value).items()
    )
    for name, item in names_and_items:
        if str(name).startswith("_"):
            continue
        full_path = f"{path}.{_PARTS.get(str(name), name) if is_attention else name}".removeprefix(".")
        if _is_instance_of(item, "Module"):
            yield full_path, item
            yield from _modules_in(item, full_path)
        elif isinstance(item, (list, tuple, dict)):
            yield from _modules_in(item, full_path)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or type(value).__name__ == "List"
