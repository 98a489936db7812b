"""Tensors as such, on MLX."""

from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.mlx.dtypes import cast
from emberharmony.core.tree import tree_leaves


class MLXTensorOps:
    """Holds the ops of `ops/tensor.py`."""

    cast = staticmethod(cast)
    copy = staticmethod(mx.array)
    shape = staticmethod(lambda x: x.shape)
    ndim = staticmethod(lambda x: x.ndim)
    size = staticmethod(lambda x: x.size)

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

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, mx.array)

    @staticmethod
    def eval(*trees: Any) -> None:
        mx.eval([leaf for leaf in tree_leaves(trees) if isinstance(leaf, mx.array)])
