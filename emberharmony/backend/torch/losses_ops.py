"""Losses, on PyTorch.

The composite computes `binary_crossentropy` of probabilities, because PyTorch's kernel is no faster.
"""

from collections.abc import Callable

import torch


class TorchLossesOps:
    """Holds the ops of `ops/losses.py`."""

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def sparse_categorical_crossentropy(
        self, target: torch.Tensor, output: torch.Tensor, from_logits: bool = False, axis: int = -1
    ) -> torch.Tensor:
        plain = target.dtype is torch.int64 and target.shape == output.shape[:-1] and output.is_floating_point()
        if not (plain and from_logits and axis == -1):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        # A label out of range has loss 0: it selects class 0 here, and is masked below.
        known = (target >= 0) & (target < output.shape[-1])
        place = torch.where(known, target, 0).unsqueeze(-1)
        lost = torch.log_softmax(output, -1).gather(-1, place).squeeze(-1).neg()
        return torch.where(known, lost, 0)
