"""Questions about dtypes, on MLX."""

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.core.dtypes import DType


class MLXDtypesOps:
    """Holds the ops of `ops/dtypes.py`."""

    @staticmethod
    def dtype(x: mx.array) -> DType:
        return DTYPES.neutral[x.dtype]
