"""Losses, on PyTorch.

The composite computes `binary_crossentropy` of probabilities, because PyTorch's kernel is no faster.
"""

import contextlib
from collections.abc import Callable

import torch
from torch.nn import functional

from emberharmony.backend.torch.tracing import has_values


class TorchLossesOps:
    """Holds the ops of `ops/losses.py`."""

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def categorical_crossentropy(
        self, target: torch.Tensor, output: torch.Tensor, from_logits: bool = False, axis: int = -1
    ) -> torch.Tensor:
        plain = target.dtype is output.dtype and target.shape == output.shape and output.is_floating_point()
        if not (plain and from_logits and axis == -1 and output.ndim == 2):
            return self.composed("categorical_crossentropy")(target, output, from_logits, axis)
        return functional.cross_entropy(output, target, reduction="none")

    def sparse_categorical_crossentropy(
        self, target: torch.Tensor, output: torch.Tensor, from_logits: bool = False, axis: int = -1
    ) -> torch.Tensor:
        plain = target.dtype is torch.int64 and target.shape == output.shape[:-1] and output.is_floating_point()
        if not (plain and from_logits and axis == -1):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        if output.is_cpu and output.numel() and has_values(target) and has_values(output):
            rows, labels = (output, target) if output.ndim < 3 else (output.flatten(0, -2), target.flatten())
            # The kernel raises an error for a label out of range, on a GPU one that ends the process.
            with contextlib.suppress(IndexError):
                lost = functional.cross_entropy(rows, labels, reduction="none")
                return lost if output.ndim < 3 else lost.reshape(target.shape)
        # A label out of range has loss 0: it selects class 0 here, and is masked below.
        known = (target >= 0) & (target < output.shape[-1])
        place = torch.where(known, target, 0).unsqueeze(-1)
        lost = torch.log_softmax(output, -1).gather(-1, place).squeeze(-1).neg()
        return torch.where(known, lost, 0)
