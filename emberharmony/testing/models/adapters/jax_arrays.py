"""Arrays of JAX, for the libraries of models that use them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import batching  # JAX 0.10 has no public name for the tracer of `vmap`
from jax._src.interpreters.partial_eval import DynamicJaxprTracer

from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.adapter import Adapter
from emberharmony.testing.models.patching import set_attributes

_NARROW = ("float32", "float16", "bfloat16")
_STRICT = ("conv_general_dilated", "conv_transpose", "dot_general", "dot")
"""Functions of `jax.lax` that take two arrays of one dtype only."""


class JaxArrays(Adapter):
    """The base class of the adapters of libraries whose arrays are JAX arrays."""

    name = "jax"

    _compiles = False
    """Whether models compile parts of themselves, which then run op by op, so that the hooks see their values."""

    def version(self) -> str:
        return f"JAX {jax.__version__}"

    def is_array(self, value: Any) -> bool:
        if isinstance(value, DynamicJaxprTracer):
            self._compiles = True
        return isinstance(value, jax.Array)

    def host(self, array: Any) -> Host:
        if isinstance(array, batching.BatchTracer):  # `jax.vmap` hides the batch, which becomes the first axis
            batch_axis = array.batch_dim
            array = array.val if batch_axis is None else jnp.moveaxis(array.val, batch_axis, 0)
            return self.host(array)
        host_values, dtype_name = np.asarray(array), str(array.dtype)
        return Host(host_values.view(np.uint16) if dtype_name == "bfloat16" else host_values, dtype_name)

    def native(self, array: np.ndarray[Any, Any], like: Any = None) -> Any:
        tensor = jnp.asarray(np.ascontiguousarray(array))
        if like is None:
            return tensor
        return _add_batch_axes(tensor.astype(like.dtype), like)

    def to_float64(self, array: Any) -> Any:
        return array.astype(jnp.float64) if str(array.dtype) in _NARROW else array

    def traced_as(self, traced: Any, array: Any) -> Any:
        return _add_batch_axes(array, traced)

    def is_floating(self, array: Any) -> bool:
        return bool(jnp.issubdtype(array.dtype, jnp.floating))

    @contextlib.contextmanager
    def wide(self, model: Any) -> Iterator[None]:
        function_by_name = {name: _promoting_function(getattr(jax.lax, name), self.to_float64) for name in _STRICT}
        with jax.enable_x64(True), jax.disable_jit(self._compiles), set_attributes(jax.lax, function_by_name):
            yield

    keep_state = Adapter.keep_tensors

    def call(self, model: Any, args: Any, kwargs: Any) -> Any:
        with jax.disable_jit(self._compiles):
            return model(*args, **kwargs)

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        modules = self.modules(model)
        tensors_by_name = self.trained_tensors(modules)

        def loss_at(arrays: Any, tensors: Mapping[tuple[str, str], Any]) -> Any:
            for (path, name), tensor in zip(tensors_by_name, tensors, strict=True):
                self.put(modules[path], {name: tensor})
            return loss(arrays)

        gradients, tensors = jax.grad(loss_at, argnums=(0, 1))(list(arrays), list(tensors_by_name.values()))
        return list(gradients), dict(zip(tensors_by_name, tensors, strict=True))


def _promoting_function(function: Callable[..., Any], to_float64: Callable[[Any], Any]) -> Callable[..., Any]:
    def promote_argument(value: Any) -> Any:
        return to_float64(value) if isinstance(value, jax.Array) else value

    def call_promoted(*args: Any, **kwargs: Any) -> Any:
        return function(
            *map(promote_argument, args), **{name: promote_argument(value) for name, value in kwargs.items()}
        )

    return call_promoted


def _add_batch_axes(array: Any, model_array: Any) -> Any:
    """Returns an array as a tracer of the same `jax.vmap` as `model_array`, with the batch as its first axis."""
    if not isinstance(model_array, batching.BatchTracer) or model_array.batch_dim is None:
        return array
    batched_value = _add_batch_axes(array, model_array.val)
    return batching.BatchTracer(model_array._trace, batched_value, 0, None)
