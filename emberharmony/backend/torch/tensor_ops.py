"""Tensors as such, on PyTorch."""

import numpy as np
import torch

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.torch.dtypes import cast


class TorchTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)

    @staticmethod
    def convert_to_tensor(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        return x if dtype is None else cast(x, dtype)

    @staticmethod
    def to_numpy(x: torch.Tensor) -> np.ndarray:
        x = x.detach().resolve_conj().resolve_neg()
        if x.dtype is torch.bfloat16:
            return x.view(torch.uint16).cpu().numpy().view(bfloat16_of_numpy())
        return x.cpu().numpy()
