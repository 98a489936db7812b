"""Random numbers, on JAX: drawn by NumPy's Philox on the host, because JAX compiles a program for each shape drawn."""

from typing import Any

import numpy as np

from emberharmony.backend.jax.device_ops import check_memory, requested_device
from emberharmony.backend.jax.dtypes import DTYPES, of_host
from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.backend.shared.random import clone_generator
from emberharmony.backend.shared.random_parameters import floating_dtype, largest_below
from emberharmony.backend.shared.random_state import State, generator_state, restored_generator
from emberharmony.backend.shared.random_streams import DefaultStream, read_streams, restore_streams, streams_state
from emberharmony.core.dtypes import DType, float64

STREAM = DefaultStream(lambda seed: np.random.Generator(np.random.Philox(seed)), clone_generator)


def _draw_on_host(draw: Any, shape: Any, dtype: DType) -> np.ndarray:
    lengths = as_shape(shape)
    check_memory(lengths, dtype.itemsize)
    return np.asarray(draw(lengths, np.float64 if dtype is float64 else np.float32))


class JAXRandomOps:
    """Holds the ops of `ops/random_ops.py`.

    The bodies draw on the host, from streams that cannot be saved.
    """

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> Any:
        float_dtype = floating_dtype(dtype)
        draws = _draw_on_host(STREAM.get().random, shape, float_dtype)
        if float_dtype.bits == 16:
            # Half precision would round some numbers up to 1, which is excluded.
            draws = draws.clip(max=largest_below(1.0, float_dtype))
        return of_host(draws, DTYPES[float_dtype], requested_device(None))

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> Any:
        float_dtype = floating_dtype(dtype)
        return of_host(
            _draw_on_host(STREAM.get().standard_normal, shape, float_dtype), DTYPES[float_dtype], requested_device(None)
        )

    @staticmethod
    def random_get_state() -> State:
        return streams_state("jax", lambda: generator_state(STREAM.get()))

    @staticmethod
    def random_set_state(state: State) -> None:
        native_reader, seed = read_streams("jax", state)
        restore_streams(seed, STREAM, restored_generator(native_reader, "Philox"))
