"""Tensors as such, on MLX."""

import mlx.core as mx
import numpy as np

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.mlx.dtypes import cast


class MLXTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)

    @staticmethod
    def convert_to_tensor(x: mx.array, dtype: mx.Dtype | None = None) -> mx.array:
        return x if dtype is None else cast(x, dtype)

    @staticmethod
    def to_numpy(x: mx.array) -> np.ndarray:
        if x.dtype == mx.bfloat16:
            array = np.asarray(x.view(mx.uint16)).view(bfloat16_of_numpy())
        else:
            array = np.asarray(x)
        # It aliases memory that other arrays may share.
        array.flags.writeable = False
        return array
