"""Random numbers, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.numpy.device_ops import check_device
from emberharmony.backend.numpy.dtypes import DTYPES
from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.backend.shared.random import clone_generator
from emberharmony.backend.shared.random_parameters import floating_dtype, largest_below
from emberharmony.backend.shared.random_state import State, generator_state, restored_generator
from emberharmony.backend.shared.random_streams import DefaultStream, read_streams, restore_streams, streams_state
from emberharmony.core.dtypes import DType, float64
from emberharmony.core.state.draws import draw_or_trace

# The lambda delays the import of `numpy.random`, which takes 15 ms, until numbers are drawn.
STREAM = DefaultStream(lambda seed: np.random.default_rng(seed), clone_generator)


def _draw_numbers(draw: Any, shape: Any, dtype: DType) -> np.ndarray:
    check_device(None)
    return np.asarray(draw(as_shape(shape), np.float64 if dtype is float64 else np.float32))


class NumpyRandomOps:
    """Holds the ops of `ops/random_ops.py`.

    The bodies draw on the host, from streams that cannot be saved.
    """

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> np.ndarray:
        float_dtype = floating_dtype(dtype)

        def draw() -> np.ndarray:
            draws = _draw_numbers(STREAM.get().random, shape, float_dtype)
            if float_dtype.bits == 16:
                # Half precision would round some numbers up to 1, which is excluded.
                draws = draws.clip(max=largest_below(1.0, float_dtype))
            return draws.astype(DTYPES[float_dtype], copy=False)

        return draw_or_trace(draw)

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> np.ndarray:
        float_dtype = floating_dtype(dtype)
        return draw_or_trace(
            lambda: _draw_numbers(STREAM.get().standard_normal, shape, float_dtype).astype(
                DTYPES[float_dtype], copy=False
            )
        )

    @staticmethod
    def random_get_state() -> State:
        return streams_state("numpy", lambda: generator_state(STREAM.get()))

    @staticmethod
    def random_set_state(state: State) -> None:
        native_reader, seed = read_streams("numpy", state)
        restore_streams(seed, STREAM, restored_generator(native_reader, "PCG64"))
