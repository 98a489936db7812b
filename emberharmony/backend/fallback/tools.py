"""What the default bodies of ops share: their table, promotion, and the way from the host to a backend and back.

A default body takes the backend and the op's arguments, as the backend's own definition would, and calls other ops of
the same backend. So it needs nothing of the library but these.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from emberharmony.backend.promote import Promotion
from emberharmony.core.dtypes import bfloat16, default_float

BODIES: dict[str, Callable[..., Any]] = {}
"""The default bodies by the name of the op; `emberharmony.backend.fallback` fills it."""

READING: set[str] = set()
"""The names of the ops whose default bodies read tensors on the host; a library that computes later must avoid it."""

F = TypeVar("F", bound=Callable[..., Any])


def body(function: F) -> F:
    """Makes a function the default body of the op of its name; an underscore at the end avoids a name of Python."""
    BODIES[function.__name__.removesuffix("_")] = function
    return function


def reading(function: F) -> F:
    """Makes a function the default body of the op of its name, and records that it reads tensors on the host."""
    READING.add(function.__name__.removesuffix("_"))
    return body(function)


def promotion_of(backend: Any) -> Promotion:
    """Returns the promotion rules of a backend, made from its own casts if it has not published them."""
    known = backend.__dict__.get("promotion") or getattr(type(backend), "promotion", None)
    if known is None:
        known = backend.__dict__["promotion"] = Promotion(
            backend.dtypes,
            lambda x, dtype: backend.bound.cast(x, dtype),
            lambda number, dtype: placed(backend, np.asarray(number), dtype),
            same="{0}.dtype == {1}.dtype",
            weak="",
            inexact="{0}.dtype == native_float32",
            weak_inexact="",
        )
    return known


def common(backend: Any, *operands: Any, inexact: bool = True, refused: tuple[str, ...] = ()) -> list[Any]:
    """Returns operands as tensors of their common dtype; if `inexact`, the default float replaces integers.

    Raises:
        DTypeError: if the dtype is of a kind that is refused.
    """
    promotion = promotion_of(backend)
    tensors = promotion.common(*operands, inexact=inexact)
    promotion.refuse(tensors[0], refused)
    return tensors


def floats(backend: Any, x: Any, refused: tuple[str, ...] = ()) -> Any:
    """Returns a tensor if it is floating or complex, else cast to the default float.

    Raises:
        DTypeError: if the dtype is of a kind that is refused.
    """
    promotion = promotion_of(backend)
    promotion.refuse(x, refused)
    return promotion.floats(x)


def placed(backend: Any, array: Any, dtype: Any = None, device: Any = None) -> Any:
    """Returns a host array as a tensor of a native dtype; it is cast on the host, where all dtypes exist."""
    neutral = None if dtype is None else backend.dtypes.neutral[dtype]
    if neutral is bfloat16:
        tensor = backend.bound.cast(backend.from_numpy(array.astype(np.float32)), dtype)
    else:
        tensor = backend.from_numpy(array if neutral is None else array.astype(neutral.name, copy=False))
    return tensor if device is None else backend.bound.to_device(tensor, device)


def on_host(backend: Any, value: Any) -> Any:
    """Returns a tensor as a host array; other values are unchanged."""
    return backend.bound.to_numpy(value) if backend.is_tensor(value) else value


def float_dtype(backend: Any, dtype: Any) -> Any:
    """Returns a native dtype; None stands for the default float."""
    return backend.dtypes[default_float()] if dtype is None else dtype


def width(backend: Any, dtype: Any) -> int:
    """Returns the number of bytes of an element of a native dtype."""
    return max(int(backend.dtypes.neutral[dtype].bits) // 8, 1)


def is_half(backend: Any, x: Any) -> bool:
    """Returns whether a tensor is floating and has 16 bits."""
    return backend.kind_of(x) == "float" and width(backend, x.dtype) == 2


def widest(backend: Any, x: Any) -> Any:
    """Returns a floating or complex tensor in the widest dtype of its kind that the backend has, to keep digits."""
    names = ("complex128", "complex64") if backend.kind_of(x) == "complex" else ("float64", "float32")
    name = next(name for name in names if name in backend.dtypes.natives)
    return backend.bound.cast(x, backend.dtypes[name])


def along(backend: Any, x: Any, axis: Any) -> tuple[Any, Any]:
    """Returns a tensor and an axis; without an axis, the flattened tensor and 0."""
    return (flat(backend, x), 0) if axis is None else (x, axis)


def flat(backend: Any, x: Any) -> Any:
    """Returns the elements of a tensor as a vector."""
    return backend.bound.reshape(x, (-1,)) if len(x.shape) != 1 else x


def picked(backend: Any, x: Any, places: np.ndarray) -> Any:
    """Returns elements of a flattened tensor at places that the host knows, in their shape."""
    if not places.size:
        return backend.bound.zeros(places.shape, x.dtype)
    return backend.bound.take(flat(backend, x), places)


def places_of(shape: Any) -> np.ndarray:
    """Returns the places of the elements of a tensor in the flattened one."""
    shape = tuple(shape)
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def joined(backend: Any, *tensors: Any) -> Any:
    """Returns the elements of tensors of one dtype as one vector."""
    return backend.bound.concatenate([flat(backend, x) for x in tensors])
