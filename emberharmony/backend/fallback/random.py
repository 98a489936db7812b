"""Default bodies of random numbers: drawn on the host from a stream of the backend."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import body, placed
from emberharmony.backend.shared.random import clone
from emberharmony.backend.shared.random_parameters import below, floating
from emberharmony.backend.shared.random_streams import DefaultStream
from emberharmony.backend.shared.shape import as_shape
from emberharmony.core.dtypes import DType, float64


def stream_of(backend: Any) -> DefaultStream[np.random.Generator]:
    """Returns the default stream of a backend."""
    stream = backend.__dict__.get("_stream")
    if stream is None:
        made = DefaultStream(lambda seed: np.random.default_rng(seed), clone)
        stream = backend.__dict__.setdefault("_stream", made)
    return stream


def _drawn(draw: Any, shape: Any, dtype: DType) -> np.ndarray:
    return np.asarray(draw(as_shape(shape), np.float64 if dtype is float64 else np.float32))


@body
def standard_uniform(backend: Any, shape: Any, dtype: Any = None) -> Any:
    """Draws on the host."""
    wanted = floating(dtype)
    values = _drawn(stream_of(backend).get().random, shape, wanted)
    if wanted.bits == 16:
        # Half precision would round some numbers up to 1, which is excluded.
        values = values.clip(max=below(1.0, wanted))
    return placed(backend, values, backend.dtypes[wanted])


@body
def standard_normal(backend: Any, shape: Any, dtype: Any = None) -> Any:
    """Draws on the host."""
    wanted = floating(dtype)
    return placed(backend, _drawn(stream_of(backend).get().standard_normal, shape, wanted), backend.dtypes[wanted])
