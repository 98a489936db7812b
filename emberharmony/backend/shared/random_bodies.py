"""The bodies of random numbers: drawn on the host, from a stream of the active backend."""

from typing import Any

import numpy as np

from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.backend.shared.bodies import tensor_from_host
from emberharmony.backend.shared.random import clone_generator
from emberharmony.backend.shared.random_parameters import floating_dtype, largest_below
from emberharmony.backend.shared.random_streams import DefaultStream
from emberharmony.core import op_globals
from emberharmony.core.dtypes import DType, float64


def stream_of(backend: Any) -> "DefaultStream[np.random.Generator]":  # which would import numpy.random
    """Returns the default random stream of a backend."""
    attributes = backend.without_watchers.__dict__
    stream: DefaultStream[np.random.Generator] | None = attributes.get("_stream")
    if stream is None:
        random_stream = DefaultStream(lambda seed: np.random.default_rng(seed), clone_generator)
        stream = attributes.setdefault("_stream", random_stream)
    return stream


def _draw_from_stream(name: str, shape: Any, dtype: DType) -> np.ndarray:
    draw_method = getattr(stream_of(op_globals.active().backend).get(), name)
    return np.asarray(draw_method(as_shape(shape), np.float64 if dtype is float64 else np.float32))


def uniform(shape: Any, dtype: Any) -> Any:
    """Returns random numbers, uniform in [0, 1), drawn on the host."""
    float_dtype = floating_dtype(dtype)
    draws = _draw_from_stream("random", shape, float_dtype)
    # Half precision would round some numbers up to 1, which is excluded.
    return tensor_from_host(draws.clip(max=largest_below(1.0, float_dtype)), float_dtype)


def normal(shape: Any, dtype: Any) -> Any:
    """Returns random numbers of the standard normal distribution, drawn on the host."""
    float_dtype = floating_dtype(dtype)
    return tensor_from_host(_draw_from_stream("standard_normal", shape, float_dtype), float_dtype)
