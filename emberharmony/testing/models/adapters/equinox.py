"""Models of Equinox: `equinox.Module`."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from emberharmony.testing.models.adapter import Hook, plain_options
from emberharmony.testing.models.adapters.jax_arrays import JaxArrays
from emberharmony.testing.models.patching import hook_classes


class EquinoxModels(JaxArrays):
    """The adapter of Equinox, whose tensors have PyTorch's layout."""

    name = "equinox"

    def version(self) -> str:
        return f"{sys.modules['equinox'].__version__}, {super().version()}"

    def modules(self, model: Any) -> dict[str, Any]:
        modules_by_path = {"": model}
        for name, module in _modules_in(model, ""):
            if not any(module is known_module for known_module in modules_by_path.values()):
                modules_by_path[name] = module
        return modules_by_path

    def layout_of(self, module: Any) -> str:
        return "mlx" if _is_attention(module) else "torch"

    def title(self, module: Any) -> str:
        return "MultiHeadAttention" if _is_attention(module) else type(module).__name__

    def attention(self, module: Any) -> dict[str, int]:
        if not _is_attention(module):
            return {}
        head_count, query_width = module.num_heads, module.qk_size
        return {
            "embed_dim": head_count * query_width,
            "head_dim": query_width,
            "num_heads": head_count,
            "num_kv_heads": head_count,
        }

    def own(self, module: Any) -> dict[str, Any]:
        arrays_by_name = {name: value for name, value in vars(module).items() if self.is_array(value)}
        if (
            "Conv" in type(module).__name__ and "bias" in arrays_by_name
        ):  # Equinox's bias of a convolution has an axis of length 1 for each axis of the image
            arrays_by_name["bias"] = arrays_by_name["bias"].reshape(-1)
        return arrays_by_name

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        for name, tensor in tensors.items():
            object.__setattr__(module, name, tensor.reshape(vars(module)[name].shape))

    def attach(self, model: Any, hook: Hook) -> AbstractContextManager[None]:
        return hook_classes(self.modules(model), hook)

    def options(self, module: Any) -> dict[str, Any]:
        return plain_options(vars(module))


def _is_attention(module: Any) -> bool:
    """Returns whether a module is Equinox's attention, whose projections are layers as those of MLX are."""
    return type(module).__name__ == "MultiheadAttention"


def _modules_in(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the modules in a module, list, tuple or dict."""
    value_by_name = value if isinstance(value, dict) else dict(enumerate(value)) if _is_sequence(value) else vars(value)
    for name, item in value_by_name.items():
        full_path = f"{path}.{name}".removeprefix(".")
        if any(cls.__module__.startswith("equinox.") and cls.__name__ == "Module" for cls in type(item).__mro__):
            yield full_path, item
            yield from _modules_in(item, full_path)
        elif isinstance(item, (list, tuple, dict)):
            yield from _modules_in(item, full_path)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))
