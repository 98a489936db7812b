"""Random numbers, on MLX: always with a key of our own, for MLX's implicit state is the same in every new thread."""

import threading
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.indices import as_shape
from emberharmony.backend.mlx.devices_ops import place
from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.backend.random import DEFAULT, Generator
from emberharmony.core.dtypes import default_float

_LOCK = threading.Lock()


class _Stream:
    """Holds what the keys are drawn from: the host, since a lazy key must not cross threads."""

    rng = np.random.Generator(np.random.Philox())


def _key() -> mx.array:
    with _LOCK:
        return mx.random.key(int(_Stream.rng.integers(0, 2**63)))


def _drawn(draw: Any, shape: Any, dtype: Any) -> mx.array:
    wanted = DTYPES[default_float()] if dtype is None else dtype
    native = mx.float32 if wanted == mx.float64 else wanted
    return draw(shape=as_shape(shape), dtype=native, key=_key(), stream=place(None)).astype(wanted)


class MLXRandomOps:
    """Holds the ops of `ops/random.py`."""

    @staticmethod
    def random_seed(seed: int) -> None:
        DEFAULT.generator = Generator(seed)
        with _LOCK:
            _Stream.rng = np.random.Generator(np.random.Philox(seed))

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> mx.array:
        return _drawn(mx.random.uniform, shape, dtype)

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> mx.array:
        return _drawn(mx.random.normal, shape, dtype)
