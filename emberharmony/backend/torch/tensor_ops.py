"""Tensors as such, on PyTorch."""

from typing import Any

import numpy as np
import torch

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.torch.dtypes import cast


class TorchTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)
    copy = staticmethod(torch.clone)
    shape = staticmethod(lambda x: tuple(x.shape))
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.numel())

    @staticmethod
    def convert_to_tensor(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        return x if dtype is None else cast(x, dtype)

    @staticmethod
    def to_numpy(x: torch.Tensor) -> np.ndarray:
        x = x.detach().resolve_conj().resolve_neg().cpu()
        if x.dtype is torch.bfloat16:
            return x.view(torch.uint16).numpy().view(bfloat16_of_numpy())
        return x.numpy()

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, torch.Tensor)

    @staticmethod
    def eval(*trees: Any) -> None:
        return None
