"""Models of MLX: `mlx.nn.Module`."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.nn.layers import base, transformer

from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.adapter import Adapter, Hook, plain_options
from emberharmony.testing.models.adapters.mlx_functions import compute_in_float64, to_float64
from emberharmony.testing.models.patching import hook_classes


class MlxModels(Adapter):
    """The adapter of MLX."""

    name = "mlx"
    layout = "mlx"

    def channels_last(self, model: Any) -> bool:
        return True

    def version(self) -> str:
        return str(getattr(mx, "__version__", "?"))

    def modules(self, model: Any) -> dict[str, Any]:
        modules_by_path = dict(reversed(model.named_modules()))  # MLX lists the last module of a list first
        return dict(sorted(modules_by_path.items(), key=lambda pair: pair[0].count(".") + bool(pair[0])))

    def own(self, module: Any) -> dict[str, Any]:
        return dict(_own_arrays(module))

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        for name, tensor in tensors.items():
            holder, tensor_key = module, name
            while "." in tensor_key and tensor_key not in holder:
                index_text, _, tensor_key = tensor_key.partition(".")
                holder = holder[int(index_text)] if isinstance(holder, (list, tuple)) else holder[index_text]
            holder[int(tensor_key) if isinstance(holder, list) else tensor_key] = tensor

    def is_array(self, value: Any) -> bool:
        return isinstance(value, mx.array)

    def host(self, array: Any) -> Host:
        if array.dtype == mx.bfloat16:
            return Host(np.array(array.view(mx.uint16)), "bfloat16")
        return Host(np.array(array), str(array.dtype).removeprefix("mlx.core."))

    def native(self, array: np.ndarray[Any, Any], like: Any = None) -> Any:
        tensor = mx.array(np.ascontiguousarray(array), dtype=mx.float64 if array.dtype == np.float64 else None)
        return tensor if like is None else tensor.astype(like.dtype)

    def to_float64(self, array: Any) -> Any:
        return to_float64(array)

    def attach(self, model: Any, hook: Hook) -> AbstractContextManager[None]:
        return hook_classes(self.modules(model), hook)

    @contextlib.contextmanager
    def wide(self, model: Any) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.callback(mx.clear_cache)  # frees the cached memory of float64 weights
            stack.enter_context(mx.stream(mx.cpu))
            stack.enter_context(compute_in_float64())
            mx.disable_compile()
            stack.callback(mx.enable_compile)
            yield

    keep_state = Adapter.keep_tensors

    def is_trained(self, module: Any, name: str) -> bool:
        return name not in module._no_grad

    def is_floating(self, array: Any) -> bool:
        return bool(mx.issubdtype(array.dtype, mx.floating))

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        modules = self.modules(model)
        tensors_by_name = self.trained_tensors(modules)

        def loss_at(*all_arrays: Any) -> Any:
            for (path, name), tensor in zip(tensors_by_name, all_arrays[len(arrays) :], strict=True):
                self.put(modules[path], {name: tensor})
            return loss(all_arrays[: len(arrays)])

        gradients = mx.grad(loss_at, argnums=list(range(len(arrays) + len(tensors_by_name))))(
            *arrays, *tensors_by_name.values()
        )
        gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
        return gradients[: len(arrays)], dict(zip(tensors_by_name, gradients[len(arrays) :], strict=True))

    def attention(self, module: Any) -> dict[str, int]:
        if not isinstance(module, transformer.MultiHeadAttention):
            return {}
        query_width, key_width = (getattr(module, f"{role}_proj").weight.shape[0] for role in ("query", "key"))
        head_width = query_width // module.num_heads
        return {
            "embed_dim": query_width,
            "head_dim": head_width,
            "num_heads": module.num_heads,
            "num_kv_heads": key_width // head_width,
        }

    def options(self, module: Any) -> dict[str, Any]:
        value_by_name = {name: value for name, value in {**vars(module), **module}.items() if not name.startswith("__")}
        value_by_name = {name.removeprefix("_"): value for name, value in value_by_name.items() if name != "_no_grad"}
        return plain_options(value_by_name)


def _own_arrays(module: Any) -> Iterator[tuple[str, Any]]:
    """Yields the arrays of a module, with names, without those of its submodules."""
    for name, value in module.items():
        if isinstance(value, mx.array):
            yield name, value
        elif isinstance(value, (list, dict)) and not isinstance(value, base.Module):
            keys_and_items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in keys_and_items:
                if isinstance(item, mx.array):
                    yield f"{name}.{key}", item
