"""Random numbers, on MLX: always with a key of our own, for MLX's implicit state is the same in every new thread."""

import math
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.device_ops import check_memory, place
from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.backend.shared.random import DefaultStream, clone, floating
from emberharmony.backend.shared.shape import as_shape

STREAM = DefaultStream(lambda seed: np.random.Generator(np.random.Philox(seed)), clone)
"""What the keys are drawn from: the host, since a lazy key must not cross threads."""


def _key() -> mx.array:
    return mx.random.key(int(STREAM.get().integers(0, 2**63)))


class MLXRandomOps:
    """Holds the ops of `ops/random_ops.py`."""

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> mx.array:
        lengths, wanted, stream = as_shape(shape), DTYPES[floating(dtype)], place(None)
        check_memory(lengths, wanted.size)
        if wanted != mx.float64:
            return mx.random.uniform(shape=lengths, dtype=wanted, key=_key(), stream=stream)
        # MLX draws no float64: 53 of 64 bits are put together, which a split of the key gives.
        count = math.prod(lengths)
        bits = mx.random.split(_key(), max(count, 1), stream=stream)[:count].reshape(*lengths, 2)
        high, low = mx.right_shift(bits[..., 0], 5), mx.right_shift(bits[..., 1], 6)
        return (high.astype(wanted) * 2.0**26 + low.astype(wanted)) * 2.0**-53

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> mx.array:
        lengths, wanted = as_shape(shape), DTYPES[floating(dtype)]
        check_memory(lengths, wanted.size)
        return mx.random.normal(shape=lengths, dtype=wanted, key=_key(), stream=place(None))
