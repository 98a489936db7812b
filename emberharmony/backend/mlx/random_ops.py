"""Random numbers, on MLX: always with an explicit key, because MLX's implicit state is equal in every new thread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.device_ops import check_memory, requested_device
from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.backend.shared.random import clone_generator
from emberharmony.backend.shared.random_parameters import floating_dtype
from emberharmony.backend.shared.random_state import State, generator_state, restored_generator
from emberharmony.backend.shared.random_streams import DefaultStream, read_streams, restore_streams, streams_state
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

STREAM = DefaultStream(lambda seed: np.random.Generator(np.random.Philox(seed)), clone_generator)
"""The generator that keys are drawn from. It is on the host, because a lazy MLX key must not be shared by threads."""


def _next_key() -> mx.array:
    """Returns a new key of MLX's random numbers for one draw."""
    return mx.random.key(int(STREAM.get().integers(0, 2**63)))


class MLXRandomOps:
    """Holds the ops of `ops/random_ops.py`.

    The bodies draw on the host, from streams that cannot be saved.
    """

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> mx.array:
        lengths, native_dtype, stream = as_shape(shape), DTYPES[floating_dtype(dtype)], requested_device(None)
        check_memory(lengths, native_dtype.size)
        if native_dtype != mx.float64:
            return mx.random.uniform(shape=lengths, dtype=native_dtype, key=_next_key(), stream=stream)
        # mx.random.uniform (MLX 0.32) does not support float64. Splitting the key gives 64 random bits per number, of
        # which 53 fill the significand.
        element_count = math.prod(lengths)
        random_words = mx.random.split(_next_key(), max(element_count, 1), stream=stream)[:element_count].reshape(
            *lengths, 2
        )
        high_bits, low_bits = mx.right_shift(random_words[..., 0], 5), mx.right_shift(random_words[..., 1], 6)
        return (high_bits.astype(native_dtype) * 2.0**26 + low_bits.astype(native_dtype)) * 2.0**-53

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> mx.array:
        lengths, native_dtype = as_shape(shape), DTYPES[floating_dtype(dtype)]
        check_memory(lengths, native_dtype.size)
        return mx.random.normal(shape=lengths, dtype=native_dtype, key=_next_key(), stream=requested_device(None))

    @staticmethod
    def random_get_state() -> State:
        return streams_state("mlx", lambda: generator_state(STREAM.get()))

    @staticmethod
    def random_set_state(state: State) -> None:
        native_reader, seed = read_streams("mlx", state)
        restore_streams(seed, STREAM, restored_generator(native_reader, "Philox"))
