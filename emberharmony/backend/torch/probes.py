"""What the checks of `ops.checked` ask PyTorch."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch._C import _functorch

from emberharmony.backend.probes import Probes

_transforms = _functorch.peek_interpreter_stack
"""Returns None outside of the transforms of `torch.func`, which hide the values."""


class TorchProbes(Probes):
    """The probes of PyTorch."""

    def computes_later(self) -> bool:
        """Returns whether the default device is an accelerator."""
        return torch.get_default_device().type != "cpu"

    def probe(self, tensor: torch.Tensor) -> Any:
        """Returns the sum, which takes a tenth of the time of `torch.isfinite` (PyTorch 2.13 on the CPU)."""
        if _transforms() is not None or tensor.is_meta:
            return 0.0  # the values are not at hand
        if tensor.requires_grad:
            tensor = tensor.detach()
        total = (torch.view_as_real(tensor.resolve_conj()) if tensor.dtype.is_complex else tensor).sum()
        return total if tensor.is_cuda else total.item()

    def failing(self, probes: Sequence[Any], needed: Sequence[Any] = ()) -> list[int]:
        """Returns the places of the probes that are not finite; those of one device are read at once."""
        if len(probes) > 1 and all(isinstance(probe, torch.Tensor) for probe in probes):
            joined = torch.stack([probe.to(probes[0].device, torch.float64) for probe in probes])
            return [int(i) for i in torch.nonzero(~torch.isfinite(joined)).flatten().tolist()]
        return [i for i, probe in enumerate(probes) if not math.isfinite(probe)]

    def loses_gradient(self, tensor: Any) -> bool:
        """Returns whether autograd records the tensor."""
        return isinstance(tensor, torch.Tensor) and tensor.requires_grad
