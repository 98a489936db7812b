"""Questions about dtypes, on PyTorch."""

import torch

from emberharmony.backend.torch.dtypes import DTYPES
from emberharmony.core.dtypes import DType


class TorchDtypesOps:
    """Holds the ops of `ops/dtypes.py`."""

    @staticmethod
    def dtype(x: torch.Tensor) -> DType:
        return DTYPES.neutral[x.dtype]
