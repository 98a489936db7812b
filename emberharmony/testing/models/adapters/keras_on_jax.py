"""The adapter of the arrays of Keras on its JAX backend."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from emberharmony.testing.models.adapters.jax_arrays import JaxArrays


class JaxOfKeras(JaxArrays):
    """The adapter of Keras's arrays and gradients on JAX."""

    def leaf(self, tensor: Any) -> Any:
        """Returns a parameter unchanged, because JAX differentiates functions of arrays."""
        return tensor

    def gradients_of(
        self,
        loss: Callable[[Sequence[Any]], Any],
        put: Callable[[Sequence[Any]], None],
        arrays: Sequence[Any],
        tensors: Sequence[Any],
    ) -> list[Any]:
        """Returns the gradients of a loss with respect to arrays and parameters."""

        def loss_at(arrays: Any, named_arrays: Any) -> Any:
            put(named_arrays)
            return loss(arrays)

        array_gradients, named_gradients = jax.grad(loss_at, argnums=(0, 1))(
            list(arrays), [self.to_float64(x) for x in tensors]
        )
        return [*array_gradients, *named_gradients]
