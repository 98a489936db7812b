"""Default bodies of creation ops: ranges and windows are computed on the host, fills by broadcasting."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import (
    body,
    float_dtype,
    joined,
    picked,
    placed,
    places_of,
    promotion_of,
    width,
)
from emberharmony.backend.shared.creation import HostMade, _points
from emberharmony.backend.shared.device import check_memory
from emberharmony.backend.shared.shape import as_shape, held, matrices
from emberharmony.core.dtypes import default_float, int64
from emberharmony.core.errors import ShapeError


class _Made(HostMade):
    """The shared creation ops, for one backend."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.dtypes = backend.dtypes  # type: ignore[misc]
        self.convert = backend.convert
        for name in ("add", "subtract", "multiply", "divide", "power", "sign", "cast", "moveaxis", "get_device"):
            setattr(self, name, getattr(backend.bound, name))
        self.to_device = backend.bound.to_device

    def _placed(self, array: np.ndarray, dtype: Any, device: Any) -> Any:
        kept = self._backend.kinds[dtype] in ("complex", "bool")
        return placed(self._backend, array if kept else array.real, dtype, device)

    def _shares(self, span: Any, num: int, endpoint: bool) -> tuple[Any, Any]:
        shares = np.linspace(0.0, 1.0, num, endpoint).reshape(-1, *(1,) * len(span.shape))
        check_memory((shares.size, *span.shape), width(self._backend, span.dtype), self._memory)
        floating = self._backend.dtypes.neutral[span.dtype].is_floating
        exact = span.dtype if floating else self.dtypes[default_float()]
        return self._placed(shares, exact, None), self._placed(1.0 - shares, exact, None)

    def vander(self, x: Any, N: int | None = None, increasing: bool = False) -> Any:
        if len(x.shape) != 1:
            raise ShapeError(f"expected a vector, got shape {tuple(x.shape)}")
        powers = np.arange(x.shape[0] if N is None else _points(N))
        check_memory((x.shape[0], powers.size), width(self._backend, x.dtype), self._memory)
        placed_powers = self._placed(powers if increasing else powers[::-1].copy(), self.dtypes[int64], None)
        return self.power(self._backend.bound.reshape(x, (-1, 1)), placed_powers)


def _made(name: str) -> None:
    def made(backend: Any, *arguments: Any, **options: Any) -> Any:
        maker = backend.__dict__.get("_maker")
        if maker is None:
            maker = backend.__dict__["_maker"] = _Made(backend)
        return getattr(maker, name)(*arguments, **options)

    made.__name__ = name
    made.__doc__ = "Computes on the host."
    body(made)


for _name in (
    *("arange", "linspace", "logspace", "geomspace", "bartlett", "blackman", "hamming", "hanning", "kaiser", "vander"),
):
    _made(_name)


def _there(backend: Any, tensor: Any, device: Any) -> Any:
    return tensor if device is None else backend.bound.to_device(tensor, device)


@body
def full(backend: Any, shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
    """Broadcasts the value."""
    value = promotion_of(backend).filling(fill_value, dtype)
    return _there(backend, backend.bound.broadcast_to(value, as_shape(shape)), device)


@body
def full_like(backend: Any, x: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
    """Broadcasts the value."""
    return backend.bound.full(tuple(x.shape), fill_value, x.dtype if dtype is None else dtype, device)


def _filled(name: str, value: int) -> None:
    def filled(backend: Any, shape: Any, dtype: Any = None, device: Any = None) -> Any:
        return backend.bound.full(shape, value, float_dtype(backend, dtype), device)

    def like(backend: Any, x: Any, dtype: Any = None, device: Any = None) -> Any:
        return getattr(backend.bound, name)(tuple(x.shape), x.dtype if dtype is None else dtype, device)

    filled.__name__, like.__name__ = name, f"{name}_like"
    filled.__doc__ = like.__doc__ = "Fills with a number."
    body(filled)
    body(like)


_filled("zeros", 0)
_filled("ones", 1)
_filled("empty", 0)


@body
def eye(
    backend: Any,
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """Computes on the host."""
    rows, columns = as_shape((N, N if M is None else M))
    return placed(backend, np.eye(rows, columns, held(k, rows, columns)), float_dtype(backend, dtype), device)


def _triangle(backend: Any, x: Any, k: int, lower: bool) -> Any:
    rows, columns = matrices(x).shape[-2:]
    k = held(k, rows, columns)
    mask = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
    return backend.bound.where(placed(backend, mask if lower else ~mask), x, _zero(backend, x))


def _zero(backend: Any, x: Any) -> Any:
    return False if backend.kind_of(x) == "bool" else 0


@body
def tril(backend: Any, x: Any, k: int = 0) -> Any:
    """Replaces the elements above a diagonal by 0."""
    return _triangle(backend, x, k, True)


@body
def triu(backend: Any, x: Any, k: int = 0) -> Any:
    """Replaces the elements below a diagonal by 0."""
    return _triangle(backend, x, k, False)


@body
def diag(backend: Any, x: Any, k: int = 0) -> Any:
    """Takes elements at places that the host knows; behind the last one is a zero."""
    if len(x.shape) not in (1, 2):
        raise ShapeError(f"expected a vector or a matrix, got shape {tuple(x.shape)}")
    if len(x.shape) == 2:
        return picked(backend, x, np.diag(places_of(x.shape), held(k, *x.shape)).copy())
    (length,) = x.shape
    side = length + abs(int(k))
    check_memory((side, side), width(backend, x.dtype))
    matrix = np.full((side, side), length)
    places = np.arange(length)
    matrix[places + max(-k, 0), places + max(k, 0)] = places
    return picked(backend, joined(backend, x, backend.bound.zeros((1,), x.dtype)), matrix)
