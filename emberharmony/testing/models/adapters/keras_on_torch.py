"""Arrays of Keras on PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from emberharmony.testing.models.adapters.torch import TorchModels


class TorchOfKeras(TorchModels):
    """What the adapter of Keras needs of PyTorch."""

    def leaf(self, tensor: Any) -> Any:
        """Returns a parameter in float64."""
        if not tensor.dtype.is_floating_point:
            return tensor
        return torch.nn.Parameter(self.to_float64(tensor.detach()), requires_grad=tensor.requires_grad)

    def gradients_of(
        self,
        loss: Callable[[Sequence[Any]], Any],
        put: Callable[[Sequence[Any]], None],
        arrays: Sequence[Any],
        tensors: Sequence[Any],
    ) -> list[Any]:
        """Returns the gradients of a loss with respect to arrays and parameters."""
        probes = [array.requires_grad_() for array in arrays]
        with torch.enable_grad():
            gradients = torch.autograd.grad(loss(probes), [*probes, *tensors], allow_unused=True)
        named_gradients = zip(gradients[len(probes) :], tensors, strict=True)
        return [
            *gradients[: len(probes)],
            *(torch.zeros_like(x) if grad is None else grad for grad, x in named_gradients),
        ]
