"""Random numbers, on Dask: each block draws from a stream of its own, seeded by the draw and the block's number."""

import math
from typing import Any

import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import Block, Slot
from emberharmony.backend.dask.creation import default_chunks
from emberharmony.backend.dask.dtypes import DTYPES
from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.backend.shared.random import clone_generator
from emberharmony.backend.shared.random_parameters import floating_dtype, largest_below
from emberharmony.backend.shared.random_state import State, generator_state, restored_generator
from emberharmony.backend.shared.random_streams import DefaultStream, read_streams, restore_streams, streams_state
from emberharmony.core.dtypes import DType, as_dtype, float64

STREAM = DefaultStream(lambda seed: np.random.Generator(np.random.Philox(seed)), clone_generator)


def _random_block(
    number: np.ndarray, distribution: str, key: tuple[int, int], name: str, chunks: tuple[tuple[int, ...], ...]
) -> np.ndarray:
    """Returns the random numbers of a block, drawn by a stream whose counter starts at the block's number."""
    block_number = int(number.item())
    generator = np.random.Generator(np.random.Philox(key=np.asarray(key, np.uint64), counter=[0, 0, block_number, 0]))
    float_dtype = as_dtype(name)
    block_position = np.unravel_index(block_number, block_counts(chunks)) if chunks else ()
    lengths = tuple(axis_chunks[i] for axis_chunks, i in zip(chunks, block_position, strict=True))
    draws = getattr(generator, distribution)(lengths, np.float64 if float_dtype is float64 else np.float32)
    if distribution == "random" and float_dtype.bits == 16:
        # Half precision would round some numbers up to 1, which is excluded.
        draws = np.minimum(draws, np.float32(largest_below(1.0, float_dtype)))
    return np.asarray(draws)


def block_counts(chunks: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Returns the number of blocks along each axis."""
    return tuple(map(len, chunks))


def _draw_blocks(distribution: str, shape: Any, float_dtype: DType) -> da.Array:
    lengths, dtype = as_shape(shape), DTYPES[float_dtype]
    chunks = default_chunks(lengths, dtype)
    counts_per_axis, axes = block_counts(chunks), tuple(range(len(chunks)))
    philox_key = tuple(int(word) for word in STREAM.get().integers(0, 2**64, 2, np.uint64))
    block_numbers = da.from_array(np.arange(math.prod(counts_per_axis)).reshape(counts_per_axis), chunks=1)
    draw_block = Block(_random_block, (Slot(0), distribution, philox_key, float_dtype.name, chunks), {}, dtype)
    meta = np.empty((0,) * len(axes), dtype)
    chunks_by_axis = dict(zip(axes, chunks, strict=True))
    return da.blockwise(draw_block, axes, block_numbers, axes, adjust_chunks=chunks_by_axis, dtype=dtype, meta=meta)


class DaskRandomOps:
    """Holds the ops of `ops/random_ops.py`.

    Each block has a stream of its own, so that it is drawn where it is needed; the bodies draw all numbers on the host.
    """

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> da.Array:
        return _draw_blocks("random", shape, floating_dtype(dtype))

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> da.Array:
        return _draw_blocks("standard_normal", shape, floating_dtype(dtype))

    @staticmethod
    def random_get_state() -> State:
        return streams_state("dask", lambda: generator_state(STREAM.get()))

    @staticmethod
    def random_set_state(state: State) -> None:
        native_reader, seed = read_streams("dask", state)
        restore_streams(seed, STREAM, restored_generator(native_reader, "Philox"))
