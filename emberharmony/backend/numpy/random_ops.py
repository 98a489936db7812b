"""Random numbers, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.indices import as_shape
from emberharmony.backend.numpy.devices_ops import place
from emberharmony.backend.numpy.dtypes import DTYPES
from emberharmony.backend.random import DEFAULT, Generator
from emberharmony.core.dtypes import default_float


class _Stream:
    """Holds the default stream, made on first use: `numpy.random` takes 15 ms to import."""

    rng: Any = None


def _stream() -> Any:
    if _Stream.rng is None:
        _Stream.rng = np.random.default_rng()
    return _Stream.rng


def _drawn(draw: Any, shape: Any, dtype: Any) -> np.ndarray:
    place(None)
    wanted = DTYPES[default_float()] if dtype is None else dtype
    native = wanted if wanted in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float32)
    return np.asarray(draw(as_shape(shape), native)).astype(wanted, copy=False)


class NumpyRandomOps:
    """Holds the ops of `ops/random.py`."""

    @staticmethod
    def random_seed(seed: int) -> None:
        DEFAULT.generator = Generator(seed)
        _Stream.rng = np.random.default_rng(seed)

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> np.ndarray:
        return _drawn(_stream().random, shape, dtype)

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> np.ndarray:
        return _drawn(_stream().standard_normal, shape, dtype)
