"""The adapter of the arrays of Keras on its PyTorch backend."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from emberharmony.testing.models.adapters.torch import TorchModels


class TorchOfKeras(TorchModels):
    """The adapter of Keras's arrays and gradients on PyTorch."""

    def leaf(self, tensor: Any) -> Any:
        """Returns a parameter in float64, with respect to which PyTorch can differentiate."""
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
